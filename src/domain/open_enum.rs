//! Enums whose values have stable names, and enums on the wire that later servers may extend.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares an enum whose values have stable names, in JSON and in text.
macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$value_meta:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$value_meta])* #[serde(rename = $text)] $value,)*
        }

        impl $name {
            pub const ALL: [Self; [$($text,)*].len()] = [$(Self::$value,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $text,)* }
            }

            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use named_enum;

/// A name of the set `T`, or one that a newer server has added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OpenEnum<T> {
    Known(T),
    Unknown(String),
}

impl<T: Copy> OpenEnum<T> {
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
