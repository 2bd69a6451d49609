//! Turns the values of a file into JSON, with the text of the file at hand.

use crate::cli::input::document::raw::Raw;
use crate::cli::input::document::read::Reading;
use crate::cli::input::document::spans::Node;
use crate::cli::output::diagnostics::Finding;
use crate::domain::json::{self, Object, Value};

/// Members whose value is text that people read, or a pattern: whatever it looks like.
const TEXTS: [&str; 9] = [
    "title",
    "description",
    "placeholder",
    "pattern",
    "pattern_message",
    "label",
    "text",
    "message",
    "closed_message",
];

/// `raw`, which stands at `node`, as JSON; what has no counterpart there joins `findings`.
pub(super) fn convert(
    reading: &Reading<'_>,
    raw: &Raw,
    node: Option<&Node>,
    text: Text,
    findings: &mut Vec<Finding>,
) -> Value {
    Conversion { reading, findings }.value(raw, node, text, 0)
}

/// Where text is meant, whatever a value looks like.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Text {
    /// In the members that [`TEXTS`] names, and in those of `labels`.
    Named,
    Everywhere,
    /// In a condition and among answers, whose members are called as questions are.
    Nowhere,
}

impl Text {
    /// Where it is meant in the member `name`.
    fn within(self, name: &str) -> Self {
        match self {
            Self::Named if name == "labels" || TEXTS.contains(&name) => Self::Everywhere,
            Self::Named if name == "show_if" || name == "required_if" => Self::Nowhere,
            other => other,
        }
    }
}

struct Conversion<'a> {
    reading: &'a Reading<'a>,
    findings: &'a mut Vec<Finding>,
}

impl Conversion<'_> {
    fn value(&mut self, raw: &Raw, node: Option<&Node>, text: Text, depth: usize) -> Value {
        // By aliases a value can be deeper than the file is nested.
        if depth > json::MAX_DEPTH {
            self.refuse(node, "malformed_file", format!("more than {} levels of nesting", json::MAX_DEPTH));
            return Value::Null;
        }
        match raw {
            Raw::Null | Raw::Bool(_) | Raw::Number(_)
                if text == Text::Everywhere && self.written(node).is_some() =>
            {
                Value::String(self.written(node).unwrap_or_default().to_owned())
            }
            Raw::Null => Value::Null,
            Raw::Bool(value) => Value::Bool(*value),
            Raw::Number(number) => self.number(number, node),
            Raw::String(written) => Value::String(written.clone()),
            Raw::List(items) => {
                let item = |(place, item): (usize, &Raw)| {
                    self.value(item, node.and_then(|node| node.item(place)), text, depth + 1)
                };
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            Raw::Map(members) => Value::Object(self.members(members, node, text, depth)),
        }
    }

    /// The first of equal keys counts: the others have been refused.
    fn members(&mut self, members: &[(Raw, Raw)], node: Option<&Node>, text: Text, depth: usize) -> Object {
        let mut object = Object::new();
        for (place, (key, value)) in members.iter().enumerate() {
            let member = node.and_then(|node| node.member(place));
            if member.is_some_and(|member| member.is_refused) {
                continue;
            }
            let Some(name) = key_text(key) else {
                self.refuse(node, "unsupported_yaml", "a key must be text".to_owned());
                continue;
            };
            let value = self.value(value, member.map(|member| &member.value), text.within(&name), depth + 1);
            object.push((name, value));
        }
        object
    }

    /// What stands in the file, of a scalar without quotes.
    fn written(&self, node: Option<&Node>) -> Option<&str> {
        let node = node.filter(|node| node.plain && !self.reading.is_json)?;
        self.reading.text(&node.place).filter(|text| !text.is_empty() && !text.starts_with('*'))
    }

    /// A number keeps the text it was written as, if JSON writes numbers like that.
    fn number(&mut self, text: &str, node: Option<&Node>) -> Value {
        let read = |text: &str| json::parse(text).ok().filter(|value| matches!(value, Value::Number(_)));
        match self.written(node).and_then(read).or_else(|| read(text)) {
            Some(value) => value,
            None => {
                self.refuse(node, "unsupported_yaml", format!("`{text}` is not a valid JSON number"));
                Value::Null
            }
        }
    }

    fn refuse(&mut self, node: Option<&Node>, code: &str, message: String) {
        self.findings.push(match node {
            Some(node) => self.reading.finding(code, message, node.place.clone(), None),
            None => Finding::new(code, message),
        });
    }
}

fn key_text(key: &Raw) -> Option<String> {
    match key {
        Raw::String(text) | Raw::Number(text) => Some(text.clone()),
        Raw::Bool(value) => Some(value.to_string()),
        Raw::Null | Raw::List(_) | Raw::Map(_) => None,
    }
}
