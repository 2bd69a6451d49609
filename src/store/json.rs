//! Encoding and decoding of JSON in stores.

use serde::{Deserialize, Serialize};

use super::{Result, StoreError};

pub(super) fn to_json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| StoreError::Io(error.into()))
}

#[cfg(feature = "postgres")]
pub(super) fn to_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Io(error.into()))
}

/// Decodes `body`, which is `what` it is called in an error.
pub(super) fn from_json<'a, T: Deserialize<'a>>(what: &str, body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| StoreError::Undecodable(format!("{what}: {error}")))
}
