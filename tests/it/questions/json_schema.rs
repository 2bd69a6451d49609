//! A validator for the subset of JSON Schema (2020-12) that our schemas use; any other keyword fails the test.

use std::cell::RefCell;
use std::collections::HashMap;

use forms::domain::json::{Number, Value};
use regex::Regex;

/// Keywords without an effect on validation.
const ANNOTATIONS: &str = "format minContains $schema $defs title description discriminator example examples default \
    readOnly writeOnly";

/// Keywords that concern only values of one type.
const OF_ONE_TYPE: &str = "minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf \
    items minItems maxItems uniqueItems contains properties patternProperties propertyNames additionalProperties \
    minProperties maxProperties required";

fn is_in(keywords: &str, keyword: &str) -> bool {
    keywords.split(' ').any(|known| known == keyword)
}

/// Whether `value` is valid against `schema`.
pub(crate) fn accepts(schema: &Value, value: &Value) -> bool {
    Root(schema).accepts(schema, value)
}

/// Whether `value` is valid against `schema`, a part of `whole`.
pub(crate) fn accepts_within(whole: &Value, schema: &Value, value: &Value) -> bool {
    Root(whole).accepts(schema, value)
}

/// The whole schema, to which references in its parts refer.
struct Root<'a>(&'a Value);

impl Root<'_> {
    fn accepts(&self, schema: &Value, value: &Value) -> bool {
        let Value::Object(keywords) = schema else { return *schema == Value::Bool(true) };
        keywords.iter().all(|(keyword, rule)| self.is_satisfied(schema, keyword, rule, value))
    }

    fn is_satisfied(&self, schema: &Value, keyword: &str, rule: &Value, value: &Value) -> bool {
        match (keyword, value) {
            ("type", _) => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_a(&text(kind), value)),
                _ => is_a(&text(rule), value),
            },
            ("const", _) => same(rule, value),
            ("enum", _) => items(rule).iter().any(|one| same(one, value)),
            ("anyOf", _) => items(rule).iter().any(|schema| self.accepts(schema, value)),
            ("oneOf", _) => items(rule).iter().filter(|schema| self.accepts(schema, value)).count() == 1,
            ("allOf", _) => items(rule).iter().all(|schema| self.accepts(schema, value)),
            ("not", _) => !self.accepts(rule, value),
            ("if", _) => !self.accepts(rule, value) || self.accepts(schema.get("then").unwrap(), value),
            ("then", _) => schema.get("if").is_some(),
            ("$ref", _) => {
                let path = text(rule);
                let part = path.split('/').skip(1).fold(self.0, |part, name| part.get(name).unwrap());
                self.accepts(part, value)
            }
            _ if is_in(ANNOTATIONS, keyword) => true,
            ("minLength", Value::String(found)) => found.chars().count() >= count(rule),
            ("maxLength", Value::String(found)) => found.chars().count() <= count(rule),
            ("pattern", Value::String(found)) => matches(&text(rule), found),
            ("minimum", Value::Number(found)) => found.exact() >= number(rule).exact(),
            ("maximum", Value::Number(found)) => found.exact() <= number(rule).exact(),
            ("exclusiveMinimum", Value::Number(found)) => found.exact() > number(rule).exact(),
            ("exclusiveMaximum", Value::Number(found)) => found.exact() < number(rule).exact(),
            ("multipleOf", Value::Number(found)) => {
                let zero = Number::from(0).exact();
                forms::domain::json::Steps::new(&zero, &number(rule).exact())
                    .unwrap()
                    .contains(&found.exact())
            }
            ("items", Value::Array(found)) => found.iter().all(|item| self.accepts(rule, item)),
            ("minItems", Value::Array(found)) => found.len() >= count(rule),
            ("maxItems", Value::Array(found)) => found.len() <= count(rule),
            ("uniqueItems", Value::Array(found)) => {
                let is_duplicate = |(place, item)| found[..place].iter().any(|earlier| same(earlier, item));
                !found.iter().enumerate().any(is_duplicate)
            }
            ("contains", Value::Array(found)) => {
                let max = schema.get("maxContains").map_or(usize::MAX, count);
                let min = schema.get("minContains").map_or(1, count);
                (min..=max).contains(&found.iter().filter(|item| self.accepts(rule, item)).count())
            }
            ("maxContains", _) => schema.get("contains").is_some(),
            ("properties" | "patternProperties" | "additionalProperties", Value::Object(found)) => {
                found.iter().all(|(name, value)| self.is_member_satisfied(schema, keyword, name, value))
            }
            ("propertyNames", Value::Object(found)) => {
                found.iter().all(|(name, _)| self.accepts(rule, &name.as_str().into()))
            }
            ("minProperties", Value::Object(found)) => found.len() >= count(rule),
            ("maxProperties", Value::Object(found)) => found.len() <= count(rule),
            ("required", Value::Object(_)) => items(rule).iter().all(|name| value.get(&text(name)).is_some()),
            _ if is_in(OF_ONE_TYPE, keyword) => true,
            _ => panic!("the keyword {keyword} is not supported"),
        }
    }

    /// Whether `schema` accepts the member `name` of an object according to `keyword`.
    fn is_member_satisfied(&self, schema: &Value, keyword: &str, name: &str, value: &Value) -> bool {
        let named = schema.get("properties").and_then(|named| named.get(name));
        let patterns = schema.get("patternProperties").unwrap_or(&Value::Null);
        let found = match keyword {
            "properties" => named,
            "patternProperties" => by_pattern(patterns, name),
            _ if named.is_some() || by_pattern(patterns, name).is_some() => None,
            _ => schema.get(keyword),
        };
        found.is_none_or(|schema| self.accepts(schema, value))
    }
}

/// Prevents Python's `$` from matching before a final line feed; the crate `regex` has neither this problem nor the syntax.
const NO_LINE_FEED: &str = r"(?!\n)";

thread_local! {
    /// Each pattern is used many times and is slow to compile.
    static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// Finds the schema in `patterns` for members called `name`; no two of our patterns match the same name.
fn by_pattern<'a>(patterns: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Object(patterns) = patterns else { return None };
    patterns.iter().find(|(pattern, _)| matches(pattern, name)).map(|(_, schema)| schema)
}

fn matches(pattern: &str, found: &str) -> bool {
    PATTERNS.with_borrow_mut(|patterns| {
        let compiled = patterns
            .entry(pattern.to_owned())
            .or_insert_with(|| Regex::new(&pattern.replace(NO_LINE_FEED, "")).unwrap());
        compiled.is_match(found)
    })
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => *value == Value::Null,
        "string" => matches!(value, Value::String(_)),
        "boolean" => matches!(value, Value::Bool(_)),
        "number" => matches!(value, Value::Number(_)),
        "integer" => matches!(value, Value::Number(number) if number.exact().is_integer()),
        "array" => matches!(value, Value::Array(_)),
        "object" => matches!(value, Value::Object(_)),
        _ => panic!("the type {kind} is not supported"),
    }
}

/// Compares values; the order of object members does not matter.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one_members), Value::Object(others)) => {
            one_members.len() == others.len()
                && one_members
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

fn items(value: &Value) -> &[Value] {
    let Value::Array(items) = value else { panic!("{value} is not a list") };
    items
}

fn text(value: &Value) -> String {
    let Value::String(text) = value else { panic!("{value} is not a text") };
    text.clone()
}

fn number(value: &Value) -> &Number {
    let Value::Number(number) = value else { panic!("{value} is not a number") };
    number
}

fn count(value: &Value) -> usize {
    usize::try_from(number(value).integer().unwrap()).unwrap()
}
