//! Parsed values of a file, with duplicate keys, so that the rest can still be checked.

use std::fmt;

use serde::de::{Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

/// A value of a YAML or JSON file.
#[derive(Debug)]
pub(super) enum Raw {
    Null,
    Bool(bool),
    /// A number as text, not necessarily as written.
    Number(String),
    String(String),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

macro_rules! visit_integers {
    ($($visit:ident: $integer:ty),*) => {
        $(fn $visit<E>(self, value: $integer) -> Result<Raw, E> {
            Ok(Raw::Number(value.to_string()))
        })*
    };
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Raw;

    visit_integers!(visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    /// Visits an empty document.
    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(serde_yaml::Number::from(value).to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(member) = members.next_entry()? {
            map.push(member);
        }
        Ok(Raw::Map(map))
    }

    /// Visits a value with a custom tag, which the walk of the file reports.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Raw, A::Error> {
        let (_, value): (String, _) = tagged.variant()?;
        value.newtype_variant()
    }
}
