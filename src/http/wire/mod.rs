//! Requests and responses: authentication, bodies, parameters, headers, problem documents.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod conditional;
pub(crate) mod extract;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod responses;
pub(crate) mod state;
