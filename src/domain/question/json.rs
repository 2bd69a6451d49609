//! Pieces of JSON that options and schemas are put together from.

use crate::domain::json::Value;

/// The object of the members that are there.
pub(in crate::domain) fn object<const N: usize>(members: [(&'static str, Option<Value>); N]) -> Value {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// The schema of what one of `schemas` takes.
pub(super) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    object([("anyOf", Some(schemas.into_iter().collect()))])
}
