//! Enums on the wire that later servers may extend: a client accepts unknown names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name of the set `T`, or one that a newer server has added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OpenEnum<T> {
    Known(T),
    Unknown(String),
}

impl<T: Copy> OpenEnum<T> {
    /// The name, if this version knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(known) => Some(*known),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> From<T> for OpenEnum<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

impl<T: PartialEq> PartialEq<T> for OpenEnum<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(known) if known == other)
    }
}

impl<T: fmt::Display> fmt::Display for OpenEnum<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(known) => known.fmt(f),
            Self::Unknown(name) => f.write_str(name),
        }
    }
}
