//! The rules: what a form is, what an answer must be, who may do what.
//!
//! Pure code of plain values: no clock, no input or output, nothing asynchronous, no store and no HTTP. Whatever a
//! rule needs (the time, an id, a count) is handed in, so each can be tested by a table.

pub mod condition;
pub mod form;
pub mod json;
pub mod open_enum;
pub mod pattern;
pub mod question;
pub mod revision;
pub mod submission;
pub mod trash;
pub mod validation;
pub mod workspace;
