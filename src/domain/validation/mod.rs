//! Reading what was sent: each member of an object, within limits, and all that is wrong with it.

pub mod budget;
pub mod fields;
pub mod limits;
pub mod similar;
pub mod violation;
