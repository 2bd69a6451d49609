//! Validation of what clients send: members of objects, limits, and violations.

pub mod budget;
pub mod fields;
pub mod limits;
pub mod similar;
pub mod violation;
