//! Pieces of JSON that settings and schemas are put together from.

use crate::domain::json::Value;

/// The members that are there.
pub(super) fn present<const N: usize>(
    members: [(&'static str, Option<Value>); N],
) -> Vec<(&'static str, Value)> {
    members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The object of the members that are there.
pub(in crate::domain) fn object<const N: usize>(members: [(&'static str, Option<Value>); N]) -> Value {
    Value::Object(present(members).into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The schema of what one of `schemas` takes.
pub(super) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    object([("anyOf", Some(schemas.into_iter().collect()))])
}
