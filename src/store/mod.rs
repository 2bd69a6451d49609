//! Where state lives. One trait, [`Store`], and the stores that keep its promises.

mod error;
pub mod sled;

pub use error::StoreError;
