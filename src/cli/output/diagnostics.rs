//! Diagnostics: all problems at once, each with a snippet of its file.
//!
//! Local and server errors use the same format: both locate values by JSON pointer.

use std::fmt::Write as _;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};

use crate::api::{Code, Problem};
use crate::cli::output::exit::Exit;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::text::wrap_lines;
use crate::cli::output::{visible, visible_lines, wrap};
use crate::domain::validation::violation::{MAX_VIOLATIONS, Violation};

/// Minimum and maximum width of a snippet: in fewer columns, the renderer cuts off the marked text.
const SNIPPET_WIDTH: (usize, usize) = (60, 140);

/// Width of a snippet in a pipe.
const PIPE_WIDTH: usize = 100;

/// Columns before the text of a note, with a line number of three digits.
const NOTE_INDENT: usize = 13;

/// One problem.
#[derive(Debug, Clone, Default)]
pub struct Diagnostic {
    /// The stable code, if there is one.
    pub code: Option<String>,
    /// The command line's own code, which is only in JSON output.
    pub local_code: Option<&'static str>,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// Where it is.
    pub location: Option<Location>,
    /// Additional information.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// The violation, for `-o json`.
    pub violation: Option<Violation>,
}

/// A location in a file, rendered with its lines and a caret, unless these have a secret.
#[derive(Debug, Clone)]
pub struct Location {
    pub file: String,
    pub source: Arc<Source>,
    /// Range of bytes in `source`.
    pub span: Range<usize>,
    pub label: Option<&'static str>,
    /// An earlier location that explains this one, with its label.
    pub earlier: Option<(Range<usize>, &'static str)>,
}

/// The text of a file.
#[derive(Debug, Default)]
pub struct Source {
    text: String,
    /// Ranges of bytes that are secrets, in order; unset if it can have none.
    pub secrets: OnceLock<Vec<Range<usize>>>,
}

/// All problems of one file or of one command's arguments.
#[derive(Debug)]
pub struct Report {
    pub diagnostics: Vec<Diagnostic>,
    /// The last line.
    pub summary: String,
    /// The server's problem document, or the one it would send.
    pub problem: Problem,
}

impl Diagnostic {
    /// Creates a diagnostic with a code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), message: message.into(), ..Self::default() }
    }

    /// Creates a diagnostic for a violation.
    pub fn of(violation: &Violation) -> Self {
        let diagnostic = Self::new(&violation.code.to_string(), violation.message.clone());
        Self { violation: Some(violation.clone()), ..diagnostic }
    }

    /// Creates a diagnostic without a code.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    #[must_use]
    pub fn help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// Returns the help on one line, for JSON output.
    pub fn hint(&self) -> Option<String> {
        self.help.as_ref().map(|help| help.replace('\n', " "))
    }

    /// Prefixes the message with the name of the item it is about.
    #[must_use]
    pub fn about(mut self, item: &str) -> Self {
        self.message = format!("{item}: {}", self.message);
        self
    }

    /// Renders the diagnostic, without a final newline; with its texts wrapped if `width` is that of a terminal.
    pub fn render(&self, colour: bool, width: Option<usize>) -> String {
        // The renderer passes control characters to the terminal.
        let message = visible(&self.message);
        let mut title = Level::ERROR.primary_title(&*message);
        let code = self.code.as_deref().map(visible);
        if let Some(code) = &code {
            title = title.id(&**code);
        }
        let mut group = Group::with_title(title);
        group = match &self.location {
            Some(location) if location.has_secret() => {
                let (line, column) = location.line_and_column();
                group.element(Origin::path(&*location.file).line(line).char_column(column))
            }
            Some(location) => group.element(location.snippet()),
            None => group,
        };
        let wrapped = |text: &str| match width {
            Some(width) => wrap_lines(&visible_lines(text), width.saturating_sub(NOTE_INDENT)),
            None => visible_lines(text),
        };
        let notes: Vec<_> = self.notes.iter().map(|note| wrapped(note)).collect();
        let help = self.help.as_deref().map(wrapped);
        group = group.elements(notes.iter().map(|note| Level::NOTE.message(&**note)));
        group = group.elements(help.iter().map(|help| Level::HELP.message(&**help)));
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let snippet_width = width.unwrap_or(PIPE_WIDTH).clamp(SNIPPET_WIDTH.0, SNIPPET_WIDTH.1);
        let rendered = renderer.term_width(snippet_width).render(&[group]);
        let (message, rest) = rendered.split_at(rendered.find('\n').unwrap_or(rendered.len()));
        let message = width.map_or_else(|| message.to_owned(), |width| wrap(message, width));
        if self.location.is_some() {
            return message + rest;
        }
        // Without a snippet the renderer still prints an empty line of its frame.
        rest.lines().skip(2).fold(message, |text, line| format!("{text}\n {line}"))
    }

    /// Converts the diagnostic to an entry of `errors` in a problem document, with line and column (both from 1, in
    /// characters).
    fn to_json(&self) -> Value {
        let mut entry = match &self.violation {
            Some(violation) => serde_json::to_value(violation).unwrap_or_default(),
            None => json!({"code": self.code, "message": self.message}),
        };
        if let Some(location) = &self.location {
            let (line, column) = location.line_and_column();
            entry["file"] = json!(location.file);
            entry["line"] = json!(line);
            entry["column"] = json!(column);
        }
        if let Some(hint) = self.hint() {
            entry["hint"] = json!(hint);
        }
        entry
    }
}

impl Source {
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), secrets: OnceLock::new() }
    }
}

impl Deref for Source {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Location {
    /// Whether a secret is on one of the lines that a snippet shows.
    fn has_secret(&self) -> bool {
        let spans = || std::iter::once(&self.span).chain(self.earlier.iter().map(|(span, _)| span));
        let first = spans().map(|span| span.start).min().unwrap_or_default();
        let last = spans().map(|span| span.end).max().unwrap_or_default();
        let start = self.source.get(..first).and_then(|text| text.rfind('\n')).unwrap_or_default();
        let end = self.source.get(last..).and_then(|text| text.find('\n'));
        let end = end.map_or(self.source.len(), |length| last + length);
        let mut secrets = self.source.secrets.get().into_iter().flatten();
        secrets.any(|secret| secret.start < end && start < secret.end)
    }

    fn snippet(&self) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        let primary = AnnotationKind::Primary.span(self.span.clone()).label(self.label);
        // The earlier location is context only: the caret marks what to change.
        let earlier = self.earlier.iter();
        let earlier = earlier.map(|(span, label)| AnnotationKind::Context.span(span.clone()).label(*label));
        Snippet::source(&**self.source).path(&*self.file).annotation(primary).annotations(earlier)
    }

    /// Returns line and column, from 1; columns are characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = self.source.get(..self.span.start).unwrap_or(&self.source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl Report {
    /// Creates the report of a file, from top to bottom, with the number of problems.
    pub fn of_file(file: &str, mut diagnostics: Vec<Diagnostic>) -> Self {
        let span = |diagnostic: &Diagnostic| Some(diagnostic.location.as_ref()?.span.clone());
        diagnostics.sort_by_key(|diagnostic| span(diagnostic).map_or(usize::MAX, |span| span.start));
        // A problem in an anchor is reported once, not per alias.
        diagnostics.dedup_by(|one, other| {
            one.location.is_some() && span(one) == span(other) && one.message == other.message
        });
        // Validation stops beyond the limit.
        let summary = match diagnostics.len() {
            count @ ..=MAX_VIOLATIONS => format!("{file}: {} found", count_noun(count, "problem")),
            _ => format!(
                "{file}: more than {MAX_VIOLATIONS} problems found, the first {MAX_VIOLATIONS} are shown"
            ),
        };
        diagnostics.truncate(MAX_VIOLATIONS);
        Self { diagnostics, summary, problem: Problem::new(Code::ValidationFailed) }
    }

    /// Creates a report whose summary is the number of `diagnostics` and the `outcome`.
    pub fn with_outcome(diagnostics: Vec<Diagnostic>, outcome: &str, problem: Problem) -> Self {
        let summary = format!("{}, {outcome}", count_noun(diagnostics.len(), "problem"));
        Self { diagnostics, summary, problem }
    }

    pub fn exit(&self) -> Exit {
        Exit::from_status(self.problem.status)
    }

    /// Renders all diagnostics and the summary.
    pub fn render(&self, colour: bool, width: Option<usize>) -> String {
        let mut text = String::new();
        for diagnostic in &self.diagnostics {
            let gap = if diagnostic.location.is_some() { "\n\n" } else { "\n" };
            let _infallible = write!(text, "{}{gap}", diagnostic.render(colour, width));
        }
        text + &Diagnostic::plain(&*self.summary).render(colour, width)
    }

    /// Converts the diagnostics to entries of a problem document.
    pub fn errors(&self) -> Value {
        self.diagnostics.iter().map(Diagnostic::to_json).collect()
    }

    /// Converts the report to a problem document with `exit`, `hint`, and line and column of each error.
    pub fn to_json(&self) -> Value {
        let mut document = serde_json::to_value(&self.problem).unwrap_or_default();
        document["title"] = json!(self.summary);
        document["errors"] = self.errors();
        document["exit"] = json!(self.exit().code());
        document["hint"] = json!(self.diagnostics.iter().find_map(Diagnostic::hint));
        document
    }
}
