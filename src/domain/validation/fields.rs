//! Parsing of an object member by member, which reports every violation, not only the first.

use std::ops::RangeInclusive;

use serde_json::value::{RawValue, to_raw_value};

use crate::clock::Timestamp;
use crate::domain::json::{Number, Object, Value};
use crate::domain::validation::similar::nearest_first;
use crate::domain::validation::violation::{MAX_VIOLATIONS, Rule, Violation, join, shortened};

/// An object that is being parsed. [`close`](Self::close) reports every member that was not read.
///
/// `null` counts as a missing member.
pub struct Fields<'a, 'v> {
    members: &'a Object,
    pointer: String,
    /// The names of all members that may be present.
    pub(in crate::domain) known: Vec<&'static str>,
    /// Members whose canonical form differs from what was sent.
    normalized: Vec<(&'static str, Value)>,
    /// The violations so far, including those of other parsers.
    pub(in crate::domain) violations: &'v mut Vec<Violation>,
}

impl<'a, 'v> Fields<'a, 'v> {
    /// Starts parsing `value`, which is at `pointer` and called `what` in messages. Reports a `type_mismatch` and returns
    /// `None` if it is not an object.
    pub fn open(
        value: &'a Value,
        pointer: impl Into<String>,
        what: impl Into<String>,
        violations: &'v mut Vec<Violation>,
    ) -> Option<Self> {
        let pointer = pointer.into();
        let Value::Object(members) = value else {
            let message = format!("{} must be an object, not {}", what.into(), value.kind());
            violations.push(Violation::new(pointer, Rule::TypeMismatch, message));
            return None;
        };
        Some(Self { members, pointer, known: Vec::new(), normalized: Vec::new(), violations })
    }

    pub fn pointer_to(&self, name: &str) -> String {
        join(&self.pointer, name)
    }

    /// Sets the canonical form of the member `name`.
    pub fn normalize(&mut self, name: &'static str, value: Value) {
        self.normalized.push((name, value));
    }

    /// Returns the members that were read after the first `skipped`, as stored: in [canonical form](Self::normalize), or as
    /// sent if they have none.
    pub fn canonical(&self, skipped: usize) -> Vec<(&'static str, Box<RawValue>)> {
        let stored = |name: &&'static str| {
            let normalized = self.normalized.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            let sent = self.members.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            let value = normalized.or(sent).filter(|value| **value != Value::Null)?;
            Some((*name, to_raw_value(value).expect("what was read as JSON can be written")))
        };
        self.known[skipped..].iter().filter_map(stored).collect()
    }

    /// Reports that the member `name` breaks `rule`; returns the violation, to be completed.
    pub fn refuse(&mut self, name: &str, rule: Rule, message: impl Into<String>) -> &mut Violation {
        self.refuse_at(self.pointer_to(name), rule, message)
    }

    /// Reports that the item `place` of the list `name` breaks `rule`; returns the violation, to be completed.
    pub fn refuse_item(
        &mut self,
        name: &str,
        place: usize,
        rule: Rule,
        message: impl Into<String>,
    ) -> &mut Violation {
        self.refuse_at(format!("{}/{place}", self.pointer_to(name)), rule, message)
    }

    fn refuse_at(&mut self, pointer: String, rule: Rule, message: impl Into<String>) -> &mut Violation {
        self.violations.push(Violation::new(pointer, rule, message));
        self.violations.last_mut().expect("it was just added")
    }

    /// Returns the member `name`, including `null`.
    pub fn raw(&mut self, name: &'static str) -> Option<&'a Value> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the member `name`, unless it is `null`.
    pub fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.raw(name).filter(|value| **value != Value::Null)
    }

    pub fn required(&mut self, name: &'static str) -> Option<&'a Value> {
        let value = self.value(name);
        if value.is_none() {
            self.refuse(name, Rule::MissingField, format!("`{name}` is missing"));
        }
        value
    }

    /// Returns a text of 1 to `max` characters that is not blank. One with [control characters](control_character) is
    /// reported, but returned: existing stores contain some.
    pub fn text(&mut self, name: &'static str, max: usize) -> Option<String> {
        let (value, pointer) = (self.value(name)?, self.pointer_to(name));
        read_text(value, &pointer, name, max, self.violations)
    }

    /// Returns the text of a required member; see [`text`](Self::text).
    pub fn required_text(&mut self, name: &'static str, max: usize) -> Option<String> {
        self.required(name)?;
        self.text(name, max)
    }

    /// Converts the member `name` with `read`. If that returns `None`, reports that it must be `wanted`, with the `help` for
    /// its value.
    pub fn typed<T>(
        &mut self,
        name: &'static str,
        wanted: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
        help: fn(&Value) -> Option<String>,
    ) -> Option<T> {
        let value = self.value(name)?;
        let found = read(value);
        if found.is_none() {
            let violation = Violation::wrong_type(self.pointer_to(name), name, wanted, value);
            self.violations.push(Violation { help: help(value), ..violation });
        }
        found
    }

    /// Returns a text of any length.
    pub fn string(&mut self, name: &'static str) -> Option<&'a str> {
        self.typed(name, "text", Value::as_str, quoted)
    }

    /// Returns the value whose name is given, one of `values`; another name breaks `rule`.
    pub fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        rule: Rule,
        values: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.string(name)?;
        let found = values.iter().find(|(known, _)| *known == text);
        if found.is_none() {
            let message = format!("`{}` is not a valid `{name}`", shortened(text));
            self.refuse(name, rule, message).allowed =
                nearest_first(text, values.iter().map(|(known, _)| *known));
        }
        found.map(|(_, value)| *value)
    }

    /// Returns a date and time with an offset (RFC 3339).
    pub fn timestamp(&mut self, name: &'static str) -> Option<Timestamp> {
        let timestamp = Timestamp::parse(self.typed(name, "text", Value::as_str, no_help)?);
        if timestamp.is_none() {
            let message =
                format!("`{name}` must be a date and time with its offset, such as 2027-01-31T18:00:00Z");
            self.refuse(name, Rule::InvalidDatetime, message);
        }
        timestamp
    }

    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.typed(name, "true or false", Value::as_bool, boolean)
    }

    pub fn number(&mut self, name: &'static str) -> Option<Number> {
        self.typed(name, "a number", Value::as_number, no_help).cloned()
    }

    /// Returns a whole number within `range`.
    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let number = self.typed(name, "a whole number", Value::as_number, no_help)?;
        let integer = number.integer().filter(|integer| range.contains(integer));
        if integer.is_none() {
            let (from, to) = range.into_inner();
            let message =
                format!("`{name}` must be a whole number from {from} to {to}, not {}", number.text());
            self.refuse(name, Rule::InvalidRange, message);
        }
        integer.inspect(|integer| self.normalize(name, (*integer).into()))
    }

    /// Returns a whole number within `range`, as a size.
    pub fn count(&mut self, name: &'static str, range: RangeInclusive<usize>) -> Option<usize> {
        let bound = |bound: usize| i64::try_from(bound).unwrap_or(i64::MAX);
        let found = self.integer(name, bound(*range.start())..=bound(*range.end()))?;
        usize::try_from(found).ok()
    }

    /// Returns a list of 1 to `max` items.
    pub fn list(&mut self, name: &'static str, max: usize) -> Option<&'a [Value]> {
        let items = self.typed(name, "a list", Value::as_array, no_help)?;
        if items.is_empty() {
            self.refuse(name, Rule::Empty, format!("`{name}` must not be empty"));
            return None;
        }
        if items.len() > max {
            let message = format!("`{name}` has {} items, {max} are allowed", items.len());
            self.refuse(name, Rule::TooMany, message);
            return None;
        }
        Some(items)
    }

    /// Returns a list of texts of 1 to `max` characters each.
    pub fn texts(&mut self, name: &'static str, max: usize) -> Option<Vec<String>> {
        let items = self.list(name, usize::MAX)?;
        let pointer = self.pointer_to(name);
        let mut item = |(place, item): (usize, &Value)| {
            read_text(item, &join(&pointer, &place.to_string()), name, max, self.violations)
        };
        // Collected first, so that every item is checked.
        let texts: Vec<_> = items.iter().enumerate().map(&mut item).collect();
        texts.into_iter().collect()
    }

    /// Reports members that were not read: those in `read_only` as such, all others as unknown.
    pub fn close(self, read_only: &[&str]) {
        for (key, _) in self.members {
            if self.known.contains(&key.as_str()) {
                continue;
            }
            if self.violations.len() > MAX_VIOLATIONS {
                return;
            }
            let pointer = join(&self.pointer, key);
            self.violations.push(if read_only.contains(&key.as_str()) {
                let message = format!("`{key}` is set by the server");
                let violation = Violation::new(pointer, Rule::ReadOnlyField, message);
                match key.as_str() {
                    "status" => violation.help(PUBLISH),
                    _ => violation,
                }
            } else {
                Violation::new(pointer, Rule::UnknownField, format!("unknown field `{}`", shortened(key)))
                    .allowed(key, self.known.iter().copied())
            });
        }
    }
}

/// Whether `character` is forbidden in any text: C0, DEL and C1, except tab, line feed and carriage return.
pub(in crate::domain) fn is_forbidden(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n' | '\r')
}

/// Returns a violation if `text`, at `pointer` and called `what`, has a [forbidden](is_forbidden) character.
pub(in crate::domain) fn control_character(what: &str, text: &str, pointer: &str) -> Option<Violation> {
    let found = text.chars().find(|character| is_forbidden(*character))?;
    let message =
        format!("{what} has the control character U+{:04X}, which is not allowed", u32::from(found));
    Some(Violation::new(pointer, Rule::InvalidCharacter, message))
}

/// Help for a definition that sets the status.
const PUBLISH: &str = "leave it out: a new form is a draft, and `forms publish` or PATCH with `{\"status\":\"published\"}` publishes it";

/// Help for a type of value that is rarely confused with another.
pub(in crate::domain) fn no_help(_: &Value) -> Option<String> {
    None
}

/// Suggests quotes for `value` where text is expected.
pub(in crate::domain) fn quoted(value: &Value) -> Option<String> {
    match value {
        Value::Bool(_) | Value::Number(_) => Some(format!("quote it: \"{value}\"")),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Suggests `true` or `false` for a text such as `yes`.
fn boolean(value: &Value) -> Option<String> {
    let meant = match value.as_str()?.to_lowercase().as_str() {
        "true" | "yes" | "on" => true,
        "false" | "no" | "off" => false,
        _ => return None,
    };
    Some(format!("write `{meant}`"))
}

/// Parses `value`, called `name`, as a text of 1 to `max` characters that is not blank.
pub(in crate::domain) fn read_text(
    value: &Value,
    pointer: &str,
    name: &str,
    max: usize,
    violations: &mut Vec<Violation>,
) -> Option<String> {
    let (rule, message) = match value {
        Value::String(text) if text.trim().is_empty() => (Rule::Empty, format!("`{name}` must not be empty")),
        Value::String(text) => {
            violations.extend(control_character(&format!("`{name}`"), text, pointer));
            let length = text.chars().count();
            if length <= max {
                return Some(text.clone());
            }
            (Rule::TooLong, format!("`{name}` has {length} characters, {max} are allowed"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            (Rule::TypeMismatch, format!("`{name}` must be text, not {}", value.kind()))
        }
    };
    violations.push(Violation { help: quoted(value), ..Violation::new(pointer, rule, message) });
    None
}
