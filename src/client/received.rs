//! A body as a server sent it: what this version knows of it, and the text with all else.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// What is known of a body, which is written as it came: with members that only a newer server has.
#[derive(Debug, Clone)]
pub struct Received<T> {
    known: T,
    text: Box<RawValue>,
}

impl<T> Deref for Received<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.known
    }
}

impl<T> Serialize for Received<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Received<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let known = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { known, text })
    }
}
