//! Pieces of JSON that settings and schemas are put together from.

use super::text::BLANK;
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
pub(in crate::domain) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    combined("anyOf", schemas, false)
}

/// The schema of what all of `schemas` take.
pub(in crate::domain) fn all_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    combined("allOf", schemas, true)
}

/// As short as can be: what decides is all there is, and what says nothing is not said.
fn combined(name: &'static str, schemas: impl IntoIterator<Item = Value>, neutral: bool) -> Value {
    let mut parts: Vec<_> = schemas.into_iter().filter(|schema| *schema != Value::Bool(neutral)).collect();
    if parts.contains(&Value::Bool(!neutral)) {
        return (!neutral).into();
    }
    match parts.len() {
        0 => neutral.into(),
        1 => parts.remove(0),
        _ => object([(name, Some(Value::Array(parts)))]),
    }
}

/// The schema of what `schema` does not take.
pub(in crate::domain) fn negated(schema: Value) -> Value {
    match schema {
        Value::Bool(takes) => (!takes).into(),
        schema => object([("not", Some(schema))]),
    }
}

/// The schema of what counts as no answer.
pub(in crate::domain) fn nothing() -> Value {
    let none = [Value::Null, Value::Array(Vec::new()), Value::Object(Vec::new())];
    any_of([
        object([("enum", Some(Value::Array(none.into())))]),
        object([("type", Some("string".into())), ("pattern", Some(BLANK.into()))]),
    ])
}
