//! `forms`: build forms and collect answers, from a file, a script, a web page or any HTTP client.

pub mod store;
