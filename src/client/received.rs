//! A body as a server sent it: what this version knows of it, and the text with all else.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// What is known of a body, which is written as it came: with members that only a newer server has.
#[derive(Debug, Clone)]
pub struct Received<T> {
    known: T,
    text: Box<RawValue>,
}

/// Describes why an answer cannot be read, in the words of the client's users.
pub(super) fn unreadable(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        _ if error.to_string().contains("recursion limit") => "its answer is nested too deeply",
        Category::Data => "its answer lacks a field, or has one of another type",
        Category::Syntax | Category::Eof | Category::Io => "its answer is not JSON",
    }
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
