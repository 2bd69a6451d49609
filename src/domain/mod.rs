//! The rules: what a form is, what an answer must be, who may do what.
//!
//! Pure functions of plain values: no clock, no I/O, no async, no store and no HTTP. The time, ids and counts are
//! parameters, so each rule can be tested by a table.

pub mod condition;
pub mod delivery;
pub mod form;
pub mod html;
pub mod integration;
pub mod json;
pub mod language;
pub mod open_enum;
pub mod pattern;
pub mod question;
pub mod rate;
pub mod revision;
pub mod submission;
pub mod summary;
pub mod trash;
pub mod validation;
pub mod web_origin;
pub mod workspace;
