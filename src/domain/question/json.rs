//! Pieces of JSON that options and schemas are put together from.

use crate::domain::json::{Object, Value};
use crate::domain::pattern::ecma262::END;
use crate::domain::question::is_empty;

/// The object of the members that are there.
pub(in crate::domain) fn object<const N: usize>(members: [(&'static str, Option<Value>); N]) -> Value {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// The schema of what one of `schemas` takes.
pub(super) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    object([("anyOf", Some(schemas.into_iter().collect()))])
}

/// The schemas of the texts that match each of the `patterns`, for `allOf`; `None` of no patterns.
pub(super) fn patterns(patterns: impl IntoIterator<Item = String>) -> Option<Value> {
    let schema = |pattern| object([("pattern", Some(Value::String(pattern)))]);
    let schemas: Vec<_> = patterns.into_iter().map(schema).collect();
    (!schemas.is_empty()).then_some(Value::Array(schemas))
}

/// Names that every object of JavaScript has a member of.
const INHERITED: [&str; 12] = [
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// The schema of an object of these `properties`, among them those that are `required`, and of others if it `is_open`.
///
/// Validators in JavaScript, such as Ajv, find [inherited](INHERITED) names in every object. Keywords that go through the
/// names of an object find only its own, so those stand for `properties` and `required` there.
pub(in crate::domain) fn object_schema(properties: Object, required: &[&str], is_open: bool) -> Object {
    let is_inherited = |name: &str| INHERITED.contains(&name);
    let (inherited, own): (Object, Object) = properties.into_iter().partition(|(name, _)| is_inherited(name));
    let inherited = inherited.into_iter().map(|(name, schema)| (format!("^{name}{END}"), schema)).collect();
    let (needed_inherited, needed): (Vec<_>, Vec<_>) = required.iter().partition(|name| is_inherited(name));
    let has = |name: &&str| {
        let other = object([("not", Some(object([("const", Some((*name).into()))])))]);
        object([("not", Some(object([("propertyNames", Some(other))])))])
    };
    let members = [
        ("type", Value::from("object")),
        ("properties", Value::Object(own)),
        ("patternProperties", Value::Object(inherited)),
        ("required", needed.into_iter().copied().collect()),
        ("allOf", Value::Array(needed_inherited.into_iter().map(has).collect())),
        ("additionalProperties", is_open.into()),
    ];
    let said = members.into_iter().filter(|(name, value)| *name == "properties" || !is_empty(value));
    said.map(|(name, value)| (name.to_owned(), value)).collect()
}
