//! Form files: YAML or JSON to the definition that the API accepts, and back.
//!
//! Members that only files have (`version`, `was`, `tests`, `x-…`) are removed.

mod load;
mod mask;
mod read;
mod record;
mod secrets;
mod tree;
pub mod violations;

use std::ops::Range;
use std::sync::Arc;

use crate::cli::input::document::violations::locate_violations;
use crate::cli::output::diagnostics::{Diagnostic, Location, Source};
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation};

pub use load::{decode, open};
pub use read::{entry, read, read_text, read_value, text};
pub use record::{Record, record, records};
pub use secrets::FileIntegrations;

use tree::{Node, Span};

/// Codes of file problems that the API does not have, with their meanings for `forms explain`.
pub const FILE_CODES: [(&str, &str); 5] = [
    (
        "malformed_file",
        "The file is neither YAML nor JSON, or nested more than 16 levels deep. The message names where parsing stopped; the mistake may be before it.",
    ),
    (
        "duplicate_field",
        "A field appears twice in one object, and readers would disagree on which counts. Take one out.",
    ),
    (
        "unsupported_yaml",
        "Merge keys (`<<`), custom tags and keys that are not text have no counterpart in JSON. Write out their values.",
    ),
    ("file_too_large", "A form file can have at most 1 MiB."),
    (
        "unset_variable",
        "The file takes a secret from an environment variable, `{ env: NAME }`, that is not set where the command runs, or empty.",
    ),
];

/// One form of a file.
#[derive(Debug)]
pub struct Document {
    /// The file's name, as given.
    pub file: String,
    /// The definition, without members that only files have.
    pub value: Value,
    source: Arc<Source>,
    root: Option<Node>,
    format_version: Option<Value>,
}

impl Document {
    /// Returns the definition, if it is valid.
    pub fn definition(&self) -> Option<Definition> {
        Definition::read(&self.value, &Limits::UNLIMITED).ok()
    }

    /// Returns all problems of the definition but those of size. Unknown types and fields that the edited form, `base`, has
    /// too are allowed: the server may be newer.
    fn check(&self, base: Option<&Value>) -> Vec<Diagnostic> {
        let mut violations = Definition::read(&self.value, &Limits::UNLIMITED).err().unwrap_or_default();
        violations.retain(|violation| base.is_none_or(|base| !is_unchanged(base, &self.value, violation)));
        if self.format_version.as_ref().is_some_and(|version| *version != Value::Number(1.into())) {
            let message = "unknown file format `version`, expected 1";
            violations.insert(0, Violation::new("/version", Rule::InvalidRange, message));
        }
        locate_violations(self, &violations)
    }

    /// Returns a warning for each size above a server's default limits, with the flag of `serve` that raises it.
    pub fn default_limit_warnings(&self) -> Vec<String> {
        let violations = Definition::read(&self.value, &Limits::default()).err().unwrap_or_default();
        let warning = |violation: Violation| {
            let flag = match violation.pointer.rsplit('/').next() {
                Some("title") => " with --max-title",
                Some("questions") => " with --max-questions",
                Some("options" | "rows" | "columns") => " with --max-options",
                _ => "",
            };
            let (place, message) = (self.place(&violation.pointer), violation.message);
            format!("{place}: {message}, unless the server was started{flag} to allow more")
        };
        violations.into_iter().map(warning).collect()
    }

    /// Reports that an `earlier` form of the file has the same slug.
    fn duplicate_slug(&self, earlier: &[Self]) -> Option<Diagnostic> {
        let slug = self.slug()?;
        let first = earlier.iter().find(|other| other.slug() == Some(slug))?.span("/slug", false);
        let first = first.map(|span| (span, "first used here"));
        let span = self.span("/slug", false);
        let location = span.map(|span| self.location(span, Some("used again here"), first));
        let message = format!("two forms of the file have the slug `{slug}`");
        Some(Diagnostic { location, ..Diagnostic::new(Rule::SlugTaken.name(), message) })
    }

    /// Reports that a form of another file, among `others`, has the same slug.
    pub fn shared_slug(&self, others: &[Self]) -> Option<Diagnostic> {
        let slug = self.slug()?;
        let other = others.iter().find(|other| other.slug() == Some(slug) && other.file != self.file)?;
        let message = format!("{} and {} both have the slug `{slug}`", other.file, self.file);
        let location = self.span("/slug", false).map(|span| self.location(span, None, None));
        Some(Diagnostic { location, ..Diagnostic::new(Rule::SlugTaken.name(), message) })
    }

    fn slug(&self) -> Option<&str> {
        self.value.get("slug")?.as_str()
    }

    /// Returns where the value at `pointer` is in the source: its first line, or its key if it spans several lines.
    pub fn span(&self, pointer: &str, at_key: bool) -> Option<Range<usize>> {
        let (node, key) = self.root.as_ref()?.find(pointer);
        let text = self.source.get(node.span.clone())?.trim_end();
        let span = match key {
            Some(key) if at_key || text.is_empty() || text.contains('\n') => key.clone(),
            _ => node.span.clone(),
        };
        let line = self.source.get(span.clone())?.lines().next().unwrap_or_default().trim_end();
        Some(span.start..span.start + line.len())
    }

    /// Creates a location in this file.
    fn location(
        &self,
        span: Span,
        label: Option<&'static str>,
        earlier: Option<(Span, &'static str)>,
    ) -> Location {
        Location { file: self.file.clone(), source: Arc::clone(&self.source), span, label, earlier }
    }
}

/// Whether `base` has the same unknown type or field, or lacks the same member, as `violation` reports in `form`.
/// Questions are matched by id.
fn is_unchanged(base: &Value, form: &Value, violation: &Violation) -> bool {
    let rule = violation.code.known();
    if !matches!(rule, Some(Rule::UnknownField | Rule::UnknownQuestionType | Rule::MissingField)) {
        return false;
    }
    let mut steps = violation.pointer.splitn(4, '/').skip(2);
    let (Some(index), Some(member)) = (steps.next(), steps.next()) else { return false };
    let Some(question) = form.pointer(&format!("/questions/{index}")) else { return false };
    let questions = base.get("questions").and_then(Value::as_array).unwrap_or_default();
    let mut old = questions.iter().filter(|old| old.get("id") == question.get("id"));
    let member = format!("/{member}");
    old.any(|old| old.pointer(&member) == question.pointer(&member))
}
