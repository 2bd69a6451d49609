//! Response bodies: the fields that this version knows, and the original text.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A parsed body that serializes as it was received, with fields that only a newer server knows.
#[derive(Debug, Clone)]
pub struct ReceivedBody<T> {
    parsed: T,
    text: Box<RawValue>,
}

impl<T> Deref for ReceivedBody<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.parsed
    }
}

impl<T> Serialize for ReceivedBody<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for ReceivedBody<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let parsed = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { parsed, text })
    }
}
