//! Connections: the accept loop, deadlines, limits, and the processing common to all requests.

pub mod accept_loop;
pub(crate) mod base_url;
pub(crate) mod budget;
pub(crate) mod client_address;
pub(crate) mod connection;
pub(crate) mod connection_state;
pub(crate) mod connection_table;
pub(crate) mod cors;
pub(crate) mod http_service;
pub(crate) mod observer;
pub(crate) mod rate_limiter;
pub(crate) mod refusal;
pub(crate) mod request_head;
pub(crate) mod request_id;
pub(crate) mod response_body;
pub(crate) mod timed_stream;
pub mod tls;
pub(crate) mod tracked_body;
