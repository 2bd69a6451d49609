//! Builders for JSON objects and JSON Schemas.

use crate::domain::json::{Object, Value};
use crate::domain::pattern::ecma262::END;
use crate::domain::question::is_empty;

pub(in crate::domain) fn object<const N: usize>(members: [(&'static str, Option<Value>); N]) -> Value {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

pub(super) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    object([("anyOf", Some(schemas.into_iter().collect()))])
}

/// Returns one schema for each of the `patterns`, for `allOf`; `None` if there are no patterns.
pub(super) fn patterns(patterns: impl IntoIterator<Item = String>) -> Option<Value> {
    let schema = |pattern| object([("pattern", Some(Value::String(pattern)))]);
    let schemas: Vec<_> = patterns.into_iter().map(schema).collect();
    (!schemas.is_empty()).then_some(Value::Array(schemas))
}

/// Names of the members that every JavaScript object inherits.
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

/// Returns the schema of an object with these `properties`, of which some are `required`; others are allowed if it
/// `is_open`.
///
/// Validators in JavaScript, such as Ajv, find [inherited](INHERITED) names in every object. `patternProperties` and
/// `propertyNames` see only an object's own names, so they replace `properties` and `required` for inherited ones.
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
    let present = members.into_iter().filter(|(name, value)| *name == "properties" || !is_empty(value));
    present.map(|(name, value)| (name.to_owned(), value)).collect()
}
