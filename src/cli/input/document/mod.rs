//! Form files: YAML or JSON to the definition that the API accepts, and back.
//!
//! Members that only files have (`version`, `status`, `tests`, `x-…`) are removed.

mod cases;
mod files;
mod logo;
mod mask;
mod read;
mod record;
mod secrets;
mod tree;
pub mod violations;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::cli::input::document::violations::locate_violations;
use crate::cli::output::diagnostics::{Diagnostic, Location, Report, Source};
use crate::cli::output::exit::CliError;
use crate::domain::form::definition::Definition;
use crate::domain::form::slug::is_slug;
use crate::domain::json::Value;
use crate::domain::open_enum::named_enum;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation};

named_enum! {
    /// The state of a form, as `status` in a file.
    FormState {
        Draft = "draft",
        Published = "published",
        /// Published, but closed by its settings.
        Closed = "closed",
    }
}

pub use cases::{Case, read_tested, tested_form};
pub use files::files;
pub use read::{decode, entry, open, read, read_text, read_value, text};
pub use record::{Record, record, records};

use tree::{Node, Span};

/// Codes of file problems that the API does not have, with their meanings for `forms explain`.
pub const FILE_CODES: [(&str, &str); 7] = [
    (
        "ambiguous_id",
        "A question of the file has no `id`, and one of the form is not in the file: they may be the same one. Write the ids that `forms show FORM -o yaml` prints into the file.",
    ),
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
        "invalid_logo",
        "The picture that the file names as `theme.logo` cannot be read, or has more than 16 KiB. Its name is relative to the file's folder.",
    ),
    (
        "unset_variable",
        "The file takes a secret from an environment variable, `{ env: NAME }`, that is not set where the command runs, or empty.",
    ),
];

/// One form of a file.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file's name, as given.
    pub file: String,
    /// The definition, without members that only files have.
    pub value: Value,
    source: Arc<Source>,
    root: Option<Node>,
    format_version: Option<Value>,
    /// The member `status`.
    status: Option<Value>,
    tests: Option<Value>,
}

impl Document {
    /// Converts the document to a form as the API accepts it: without members that only files have, and with the text of a
    /// confirmation as its message.
    fn into_form(mut self) -> Self {
        self.format_version = self.value.get("version").cloned();
        self.tests = self.value.get("tests").filter(|tests| **tests != Value::Null).cloned();
        self.status = self.value.get("status").cloned();
        remove_file_members(&mut self.value, &["version", "status"]);
        if let Some(settings) = self.value.get_mut("settings") {
            remove_file_members(settings, &[]);
            if let Some(message @ Value::String(_)) = settings.get_mut("confirmation") {
                *message = Value::Object(vec![("message".to_owned(), message.clone())]);
            }
        }
        if let Some(Value::Array(questions)) = self.value.get_mut("questions") {
            questions.iter_mut().for_each(|question| remove_file_members(question, &[]));
        }
        self
    }

    /// Returns the definition, if it is valid.
    pub fn definition(&self) -> Option<Definition> {
        Definition::read(&self.value, &Limits::UNLIMITED).ok()
    }

    /// Returns all problems of the tests, and of the definition but those of size. Unknown types and fields that the edited form, `base`, has
    /// too are allowed: the server may be newer.
    fn check(&self, base: Option<&Value>) -> Vec<Diagnostic> {
        let mut violations = Definition::read(&self.value, &Limits::UNLIMITED).err().unwrap_or_default();
        violations.retain(|violation| base.is_none_or(|base| !is_unchanged(base, &self.value, violation)));
        if self.format_version.as_ref().is_some_and(|version| *version != Value::Number(1.into())) {
            let message = "unknown file format `version`, expected 1";
            violations.insert(0, Violation::new("/version", Rule::InvalidRange, message));
        }
        if self.status.is_some() && self.state().is_none() {
            let names = FormState::ALL.map(FormState::name);
            let message = format!("`status` is not one of: {}", names.join(", "));
            violations.insert(0, Violation::new("/status", Rule::TypeMismatch, message));
        }
        let mut diagnostics = locate_violations(self, &violations);
        diagnostics.extend(self.cases().err().into_iter().flatten());
        diagnostics
    }

    /// Replaces the state that the file asks for.
    pub fn set_state(&mut self, state: FormState) {
        self.status = Some(state.name().into());
    }

    /// Returns the state that the file asks for.
    pub fn state(&self) -> Option<FormState> {
        FormState::parse(self.status.as_ref()?.as_str()?)
    }

    /// Fails if there are questions at these places, which have no id and may be new or changed ones.
    pub fn refuse_ambiguous(&self, places: &[usize]) -> Result<(), CliError> {
        let slug = self.slug().unwrap_or("FORM");
        let diagnostic = |place: &usize| {
            let message = format!("question {} has no `id`, and may be a new or a changed one", place + 1);
            let help = format!("give it an id; `forms show {slug} -o yaml` prints those of the form");
            self.problem(&format!("/questions/{place}"), "ambiguous_id", message).help(Some(help))
        };
        let diagnostics: Vec<_> = places.iter().map(diagnostic).collect();
        if diagnostics.is_empty() { Ok(()) } else { Err(Report::of_file(&self.file, diagnostics).into()) }
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

    /// Reports that one of the `others` has the same slug: only one of them could be created.
    pub fn shared_slug<'a>(&self, mut others: impl Iterator<Item = &'a Self>) -> Option<Diagnostic> {
        let slug = self.slug()?;
        let other = others.find(|other| other.slug() == Some(slug))?;
        let message = match other.file == self.file {
            true => format!("two forms of the file have the slug `{slug}`"),
            false => format!("{} and {} both have the slug `{slug}`", other.file, self.file),
        };
        let mut problem = self.problem("/slug", Rule::SlugTaken.name(), message);
        if let (Some(location), true) = (&mut problem.location, other.file == self.file) {
            location.label = Some("used again here");
            location.earlier = other.span("/slug", false).map(|span| (span, "first used here"));
        }
        Some(problem)
    }

    /// Reports that the form has no slug, with the one that the name of `file` suggests.
    pub fn missing_slug(&self, file: &Path) -> Option<Diagnostic> {
        if self.slug().is_some() {
            return None;
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        let words = stem.split(|other: char| !other.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let slug = words.collect::<Vec<_>>().join("-");
        let example = if is_slug(&slug) { slug } else { "my-form".to_owned() };
        let problem = self.problem(
            "/title",
            "missing_field",
            "the form has no `slug`, by which it is found again".to_owned(),
        );
        Some(problem.help(Some(format!("add the line `slug: {example}`"))))
    }

    pub fn slug(&self) -> Option<&str> {
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

    /// Returns the location of the value at `pointer`, or of its key.
    pub fn location_of(&self, pointer: &str, at_key: bool) -> Location {
        self.location(self.span(pointer, at_key).unwrap_or_default())
    }

    /// Creates a diagnostic about the value at `pointer`.
    fn problem(&self, pointer: &str, code: &str, message: String) -> Diagnostic {
        let location = self.span(pointer, false).map(|span| self.location(span));
        Diagnostic { location, ..Diagnostic::new(code, message) }
    }

    /// Creates a location in this file.
    fn location(&self, span: Span) -> Location {
        let (file, source) = (self.file.clone(), Arc::clone(&self.source));
        Location { file, source, span, label: None, earlier: None }
    }
}

/// Refuses forms of another file that have the slug of one of the `earlier` ones: only one of them could be created.
pub fn refuse_shared_slugs(earlier: &[Document], forms: &[Document]) -> Result<(), CliError> {
    let shared = |form: &Document| form.shared_slug(earlier.iter().filter(|other| other.file != form.file));
    let shared: Vec<_> = forms.iter().filter_map(shared).collect();
    match forms.first() {
        Some(form) if !shared.is_empty() => Err(Report::of_file(&form.file, shared).into()),
        _ => Ok(()),
    }
}

/// Removes the members `names`, `tests`, and those that begin with `x-`.
fn remove_file_members(object: &mut Value, names: &[&str]) {
    if let Value::Object(members) = object {
        let is_file_only = |key: &str| key == "tests" || key.starts_with("x-") || names.contains(&key);
        members.retain(|(key, _)| !is_file_only(key));
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
