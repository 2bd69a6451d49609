//! Form files: YAML or JSON in, the definition that the API takes out, and back.
//!
//! The only user of `serde_yaml`. What only the file has (`version`, `was`, `tests`, `x-…`) is taken off.

mod convert;
mod load;
mod raw;
mod read;
mod record;
mod spans;
mod syntax;
pub mod violations;

use std::ops::Range;
use std::sync::Arc;

use crate::cli::input::document::violations::draw_violations;
use crate::cli::output::diagnostics::{Finding, Mark};
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation};

pub use load::decode;
pub use read::{read, read_edited, read_text, read_value, text};
pub use record::{Record, record, records};

use spans::Node;

/// What codes of files mean that the API does not have, for `forms explain`.
pub const FILE_CODES: [(&str, &str); 4] = [
    (
        "malformed_file",
        "The file is neither YAML nor JSON, or nested more than 16 levels deep. The message names the place where reading ended; the mistake may be before it.",
    ),
    (
        "duplicate_field",
        "A field appears twice in one object, and readers would disagree on which counts. Take one out.",
    ),
    (
        "unsupported_yaml",
        "Merge keys (`<<`), tags of one's own and numbers like `.inf` have no counterpart in JSON. Write out what they stand for.",
    ),
    ("file_too_large", "A form file has 1 MiB at most."),
];

/// One form of a file.
#[derive(Debug)]
pub struct Document {
    /// The file's name, as it was given.
    pub file: String,
    source: Arc<str>,
    value: Value,
    root: Option<Node>,
    format_version: Option<Value>,
}

impl Document {
    /// The definition as JSON, as the API takes it.
    pub fn body(&self) -> String {
        self.value.to_string()
    }

    /// The form, once it was found fit.
    pub fn definition(&self) -> Option<Definition> {
        Definition::read(&self.value, &Limits::UNLIMITED).ok()
    }

    /// The definition, without what only the file has.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Reports everything that makes the definition unfit, but for what the form had that is edited, its `base`: a newer
    /// server may know more types and fields.
    fn check(&self, limits: &Limits, base: Option<&Value>) -> Vec<Finding> {
        let mut violations = Definition::read(&self.value, limits).err().unwrap_or_default();
        violations.retain(|violation| base.is_none_or(|base| !was_in(base, &self.value, violation)));
        if self.format_version.as_ref().is_some_and(|version| *version != Value::Number(1.into())) {
            let message = "`version` is that of the file format, and only 1 exists";
            violations.insert(0, Violation::new("/version", Rule::InvalidRange, message));
        }
        draw_violations(self, &violations)
    }

    /// Warnings about sizes above a server's default limits, one line each, with the flag of `serve` that raises the limit.
    pub fn over_default_limits(&self) -> Vec<String> {
        let violations = Definition::read(&self.value, &Limits::default()).err().unwrap_or_default();
        let line = |violation: Violation| {
            let flag = match violation.pointer.rsplit('/').next() {
                Some("title") => " with --max-title",
                Some("questions") => " with --max-questions",
                Some("options" | "rows" | "columns") => " with --max-options",
                _ => "",
            };
            let start = self.place(&violation.pointer, false).map_or(0, |place| place.start);
            let number = self.source.get(..start).map_or(1, |before| before.matches('\n').count() + 1);
            let (file, message) = (&self.file, violation.message);
            format!("{file}:{number}: {message}, unless the server was started{flag} to allow more")
        };
        violations.into_iter().map(line).collect()
    }

    /// Reports that one of the `earlier` forms of the file has the same slug.
    fn same_slug(&self, earlier: &[Self]) -> Option<Finding> {
        let slug = self.value.get("slug").filter(|slug| matches!(slug, Value::String(_)))?;
        let first = earlier.iter().find(|other| other.value.get("slug") == Some(slug))?;
        let first = first.place("/slug", false).map(|place| (place, "first used here"));
        let place = self.place("/slug", false);
        let mark = place.map(|place| self.mark(place, Some("used again here"), first));
        let message = format!("two forms of the file have the slug {slug}").replace('"', "`");
        Some(Finding { mark, ..Finding::new(Rule::SlugTaken.name(), message) })
    }

    /// Where the value that `pointer` names stands, or its key, as of a value of several lines; where it has none, the
    /// first line.
    pub fn place(&self, pointer: &str, at_key: bool) -> Option<Range<usize>> {
        let (node, key) = self.root.as_ref()?.find(pointer);
        let text = self.source.get(node.place.clone())?.trim_end();
        let place = match key {
            Some(key) if at_key || text.is_empty() || text.contains('\n') => key.clone(),
            _ => node.place.clone(),
        };
        let line = self.source.get(place.clone())?.lines().next().unwrap_or_default().trim_end();
        Some(place.start..place.start + line.len())
    }

    /// A mark in this file.
    pub fn mark(
        &self,
        place: Range<usize>,
        label: Option<&'static str>,
        earlier: Option<(Range<usize>, &'static str)>,
    ) -> Mark {
        Mark { file: self.file.clone(), source: Arc::clone(&self.source), place, label, earlier }
    }
}

/// Whether `form` has from `base` the type or field that `violation` calls unknown, or lacks as `base` does the one it
/// calls missing. A question may have moved.
fn was_in(base: &Value, form: &Value, violation: &Violation) -> bool {
    let rules = [Rule::UnknownField, Rule::UnknownQuestionType, Rule::MissingField];
    if !rules.iter().any(|rule| violation.code == *rule) {
        return false;
    }
    let mut steps = violation.pointer.splitn(4, '/').skip(2);
    let (Some(place), Some(member)) = (steps.next(), steps.next()) else { return false };
    let Some(question) = form.pointer(&format!("/questions/{place}")) else { return false };
    let questions = base.get("questions").and_then(Value::as_array).unwrap_or_default();
    let mut old = questions.iter().filter(|old| old.get("id") == question.get("id"));
    let member = format!("/{member}");
    old.any(|old| old.pointer(&member) == question.pointer(&member))
}
