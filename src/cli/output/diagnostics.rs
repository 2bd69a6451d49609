//! Diagnostics: all problems at once, each with a snippet of its file.
//!
//! Local and server errors use the same format: both locate values by JSON pointer.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Map, Value, json};

use crate::api::{Code, Problem};
use crate::cli::output::exit::Exit;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::{visible, visible_lines};
use crate::domain::validation::violation::{MAX_VIOLATIONS, Violation};

/// Minimum and maximum width of a snippet: in fewer columns, the renderer cuts off the marked text.
const SNIPPET_WIDTH: (usize, usize) = (60, 140);

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

/// A location in a file, rendered with a caret.
#[derive(Debug, Clone)]
pub struct Location {
    pub file: String,
    pub source: Arc<str>,
    /// Range of bytes in `source`.
    pub place: Range<usize>,
    pub label: Option<&'static str>,
    /// An earlier location that explains this one, with its label.
    pub earlier: Option<(Range<usize>, &'static str)>,
}

/// All problems of one file or of one command's arguments.
#[derive(Debug)]
pub struct Report {
    pub diagnostics: Vec<Diagnostic>,
    /// The last line.
    pub summary: Option<String>,
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
        let diagnostic = Self::new(violation.code.name(), violation.message.clone());
        Self { violation: Some(violation.clone()), ..diagnostic }
    }

    /// Creates a diagnostic without a code.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Sets the help.
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

    /// Renders the diagnostic, without a final newline.
    pub fn render(&self, colour: bool, width: usize) -> String {
        // The renderer passes control characters to the terminal.
        let message = visible(&self.message);
        let mut title = Level::ERROR.primary_title(&*message);
        let code = self.code.as_deref().map(visible);
        if let Some(code) = &code {
            title = title.id(&**code);
        }
        let mut group = Group::with_title(title);
        if let Some(location) = &self.location {
            group = group.element(location.snippet());
        }
        let notes: Vec<_> = self.notes.iter().map(|note| visible_lines(note)).collect();
        let help = self.help.as_deref().map(visible_lines);
        group = group.elements(notes.iter().map(|note| Level::NOTE.message(&**note)));
        group = group.elements(help.iter().map(|help| Level::HELP.message(&**help)));
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let rendered = renderer.term_width(width.clamp(SNIPPET_WIDTH.0, SNIPPET_WIDTH.1)).render(&[group]);
        if self.location.is_some() {
            return rendered;
        } // Without a snippet the renderer still prints an empty line of its frame.
        let lines = rendered.lines().enumerate().filter(|(place, _)| *place != 1);
        let indented =
            lines.map(|(place, line)| if place == 0 { line.to_owned() } else { format!(" {line}") });
        indented.collect::<Vec<_>>().join("\n")
    }

    /// Converts the diagnostic to an entry of `errors` in a problem document, with line and column (both from 1, in
    /// characters).
    fn to_json(&self) -> Value {
        let mut entry = match &self.violation {
            Some(violation) => serde_json::to_value(violation).unwrap_or_default(),
            None => json!({"code": self.code, "message": self.message}),
        };
        if let (Some(location), Some(entry)) = (&self.location, entry.as_object_mut()) {
            let (line, column) = location.line_and_column();
            entry.extend([("file".to_owned(), json!(location.file)), ("line".to_owned(), json!(line))]);
            entry.insert("column".to_owned(), json!(column));
        }
        if let (Some(hint), Some(entry)) = (self.hint(), entry.as_object_mut()) {
            entry.insert("hint".to_owned(), json!(hint));
        }
        entry
    }
}

impl Location {
    fn snippet(&self) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        let primary = AnnotationKind::Primary.span(self.place.clone()).label(self.label);
        let earlier = self.earlier.iter().map(|(place, label)| {
            // The earlier location is context only: the caret marks what to change.
            AnnotationKind::Context.span(place.clone()).label(*label)
        });
        Snippet::source(&*self.source).path(&*self.file).annotation(primary).annotations(earlier)
    }

    /// Returns line and column, from 1; columns are characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = self.source.get(..self.place.start).unwrap_or(&self.source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl Report {
    /// Creates the report of a file, from top to bottom, with the number of problems.
    pub fn of_file(file: &str, mut diagnostics: Vec<Diagnostic>) -> Self {
        let place =
            |diagnostic: &Diagnostic| diagnostic.location.as_ref().map(|location| location.place.clone());
        diagnostics.sort_by_key(|diagnostic| place(diagnostic).map_or(usize::MAX, |place| place.start)); // A problem in an anchor is reported once, not per alias.
        diagnostics.dedup_by(|one, other| {
            place(one).is_some() && place(one) == place(other) && one.message == other.message
        });
        let summary = match diagnostics.len() {
            count @ ..=MAX_VIOLATIONS => format!("{file}: {} found", count_noun(count, "problem")), // Validation stops beyond the limit.
            _ => format!(
                "{file}: more than {MAX_VIOLATIONS} problems found, the first {MAX_VIOLATIONS} are shown"
            ),
        };
        diagnostics.truncate(MAX_VIOLATIONS);
        Self { diagnostics, summary: Some(summary), problem: Problem::new(Code::ValidationFailed) }
    }

    /// Creates a report whose summary is the number of `diagnostics` and the `outcome`.
    pub fn with_outcome(diagnostics: Vec<Diagnostic>, outcome: &str, problem: Problem) -> Self {
        let summary = format!("{}, {outcome}", count_noun(diagnostics.len(), "problem"));
        Self { diagnostics, summary: Some(summary), problem }
    }

    /// Returns the exit code.
    pub fn exit(&self) -> Exit {
        Exit::from_status(self.problem.status)
    }

    /// Renders all diagnostics and the summary.
    pub fn render(&self, colour: bool, width: usize) -> String {
        let mut text = String::new();
        for diagnostic in &self.diagnostics {
            let gap = if diagnostic.location.is_some() { "\n\n" } else { "\n" };
            let _infallible = write!(text, "{}{gap}", diagnostic.render(colour, width));
        }
        if let Some(summary) = &self.summary {
            text.push_str(&Diagnostic::plain(summary.as_str()).render(colour, width));
        }
        text.trim_end().to_owned()
    }

    /// Converts the report to a problem document with `exit`, `hint`, and line and column of each error.
    pub fn to_json(&self) -> Value {
        let errors: Vec<_> = self.diagnostics.iter().map(Diagnostic::to_json).collect();
        let mut members = members(&self.problem);
        members.extend([
            ("title".to_owned(), json!(self.summary)),
            ("errors".to_owned(), json!(errors)),
            ("exit".to_owned(), json!(self.exit().code())),
            ("hint".to_owned(), json!(self.diagnostics.iter().find_map(Diagnostic::hint))),
        ]);
        Value::Object(members)
    }
}

/// Converts one diagnostic to a problem document, based on the server's if there is one.
pub fn to_json(diagnostic: &Diagnostic, problem: Option<&Problem>, exit: Exit) -> Value {
    let mut members = match problem {
        Some(problem) => members(problem),
        None => Map::from_iter([
            ("type".to_owned(), json!("about:blank")),
            ("title".to_owned(), json!(diagnostic.message)),
            ("code".to_owned(), json!(diagnostic.code.as_deref().or(diagnostic.local_code))),
        ]),
    };
    members.insert("exit".to_owned(), json!(exit.code()));
    members.insert("hint".to_owned(), json!(diagnostic.hint()));
    Value::Object(members)
}

fn members(problem: &Problem) -> Map<String, Value> {
    match serde_json::to_value(problem) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
