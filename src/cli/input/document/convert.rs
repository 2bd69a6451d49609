//! Conversion of parsed YAML to JSON, with access to the source text.

use crate::cli::input::document::raw::Raw;
use crate::cli::input::document::read::FileReader;
use crate::cli::input::document::spans::Node;
use crate::cli::output::diagnostics::Diagnostic;
use crate::domain::json::{self, Object, Value};

/// Members that are always text or patterns, whatever their value looks like.
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

/// Which members are always text.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TextMode {
    /// Those in [`TEXTS`], and all below `labels`.
    Named,
    Everywhere,
    /// None: in conditions and answers, whose members are question ids.
    Nowhere,
}

impl TextMode {
    fn within(self, name: &str) -> Self {
        match self {
            Self::Named if name == "labels" || TEXTS.contains(&name) => Self::Everywhere,
            Self::Named if ["show_if", "required_if", "when"].contains(&name) => Self::Nowhere,
            other => other,
        }
    }
}

/// Converts parsed values to JSON; adds those without a JSON counterpart to `diagnostics`.
pub(super) struct Converter<'a> {
    pub(super) reader: &'a FileReader<'a>,
    pub(super) diagnostics: &'a mut Vec<Diagnostic>,
}

impl Converter<'_> {
    /// Converts `raw`, whose source is at `node`.
    pub(super) fn value(&mut self, raw: &Raw, node: Option<&Node>, text: TextMode, depth: usize) -> Value {
        // Aliases can make a value deeper than the nesting of the file.
        if depth > json::MAX_DEPTH {
            self.refuse(node, "malformed_file", format!("more than {} levels of nesting", json::MAX_DEPTH));
            return Value::Null;
        }
        if text == TextMode::Everywhere
            && matches!(raw, Raw::Null | Raw::Bool(_) | Raw::Number(_))
            && let Some(source) = self.source_text(node)
        {
            return source.into();
        }
        match raw {
            Raw::Null => Value::Null,
            Raw::Bool(value) => Value::Bool(*value),
            Raw::Number(number) => self.number(number, node),
            Raw::String(text) => Value::String(text.clone()),
            Raw::List(items) => {
                let item = |(index, item): (usize, &Raw)| {
                    self.value(item, node.and_then(|node| node.item(index)), text, depth + 1)
                };
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            Raw::Map(members) => Value::Object(self.members(members, node, text, depth)),
        }
    }

    /// The first of duplicate keys wins: the others have been reported.
    fn members(
        &mut self,
        members: &[(Raw, Raw)],
        node: Option<&Node>,
        text: TextMode,
        depth: usize,
    ) -> Object {
        let mut object = Object::new();
        for (index, (key, value)) in members.iter().enumerate() {
            let member = node.and_then(|node| node.member(index));
            if member.is_some_and(|member| member.key.is_refused) {
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

    /// Returns the source text of a plain scalar.
    fn source_text(&self, node: Option<&Node>) -> Option<&str> {
        let node = node.filter(|node| node.is_plain && !self.reader.is_json)?;
        let text = self.reader.source.get(node.span.clone())?;
        (!text.is_empty() && !text.starts_with('*')).then_some(text)
    }

    /// Keeps the source text of a number if it is valid JSON.
    fn number(&mut self, text: &str, node: Option<&Node>) -> Value {
        let read = |text: &str| json::parse(text).ok().filter(|value| matches!(value, Value::Number(_)));
        self.source_text(node).and_then(read).or_else(|| read(text)).unwrap_or_else(|| {
            self.refuse(node, "unsupported_yaml", format!("`{text}` is not a valid JSON number"));
            Value::Null
        })
    }

    fn refuse(&mut self, node: Option<&Node>, code: &str, message: String) {
        self.diagnostics.push(match node {
            Some(node) => self.reader.diagnostic(code, message, &node.span, None),
            None => Diagnostic::new(code, message),
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
