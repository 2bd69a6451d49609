//! `forms`: build forms and collect answers, from a file, a script, a web page or any HTTP client.

pub mod api;
pub mod app;
pub mod clock;
pub mod domain;
pub mod id;
pub mod secret;
pub mod store;
