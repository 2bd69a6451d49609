//! Failures as a person reads them: every problem at once, with a caret in the file it stands in.
//!
//! The same drawing serves what was found here and what the server found: both name places by JSON pointer.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Map, Value, json};

use crate::api::{Code, Problem};
use crate::cli::output::exit::Exit;
use crate::cli::output::humanize::counted;
use crate::cli::output::{visible, visible_lines};
use crate::domain::validation::violation::{MAX_VIOLATIONS, Violation};

/// Columns of a snippet, at least and at most: in fewer, the renderer cuts away what it points at.
const SNIPPET_WIDTH: (usize, usize) = (60, 140);

/// One thing that is wrong.
#[derive(Debug, Clone, Default)]
pub struct Finding {
    /// The stable code, if this kind of failure has one.
    pub code: Option<String>,
    /// The command line's own code, which only programs see.
    pub local_code: Option<&'static str>,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// Where it stands.
    pub mark: Option<Mark>,
    /// What else is good to know.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// The broken rule, for `-o json`.
    pub violation: Option<Violation>,
}

/// A place in a file, drawn with a caret.
#[derive(Debug, Clone)]
pub struct Mark {
    pub file: String,
    pub source: Arc<str>,
    /// Bytes of `source`.
    pub place: Range<usize>,
    pub label: Option<&'static str>,
    /// An earlier place that explains this one.
    pub earlier: Option<(Range<usize>, &'static str)>,
}

/// All that is wrong with one file or one command's arguments.
#[derive(Debug)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// The last line, where eyes land.
    pub summary: Option<String>,
    /// The server's document, where the server found it; else that which it would send.
    pub problem: Problem,
}

impl Finding {
    /// A finding with a code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), message: message.into(), ..Self::default() }
    }

    /// A broken rule, as its server describes it.
    pub fn of(violation: &Violation) -> Self {
        let finding = Self::new(violation.code.name(), violation.message.clone());
        Self { violation: Some(violation.clone()), ..finding }
    }

    /// A failure that has no code.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// The help on one line, for programs.
    pub fn hint(&self) -> Option<String> {
        self.help.as_ref().map(|help| help.replace('\n', " "))
    }

    /// Prefixes the message with the name of the item that it is about, one of several.
    #[must_use]
    pub fn about(mut self, item: &str) -> Self {
        self.message = format!("{item}: {}", self.message);
        self
    }

    /// Draws it, without a newline at the end.
    pub fn draw(&self, colour: bool, width: usize) -> String {
        // The renderer lets the control characters of other people's texts through to the terminal.
        let message = visible(&self.message);
        let mut title = Level::ERROR.primary_title(&*message);
        let code = self.code.as_deref().map(visible);
        if let Some(code) = &code {
            title = title.id(&**code);
        }
        let mut group = Group::with_title(title);
        if let Some(mark) = &self.mark {
            group = group.element(mark.snippet());
        }
        let notes: Vec<_> = self.notes.iter().map(|note| visible_lines(note)).collect();
        let help = self.help.as_deref().map(visible_lines);
        group = group.elements(notes.iter().map(|note| Level::NOTE.message(&**note)));
        group = group.elements(help.iter().map(|help| Level::HELP.message(&**help)));
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let drawn = renderer.term_width(width.clamp(SNIPPET_WIDTH.0, SNIPPET_WIDTH.1)).render(&[group]);
        if self.mark.is_some() {
            return drawn;
        }
        // Without a snippet the renderer still draws the empty line of its frame.
        let lines = drawn.lines().enumerate().filter(|(place, _)| *place != 1);
        let indented =
            lines.map(|(place, line)| if place == 0 { line.to_owned() } else { format!(" {line}") });
        indented.collect::<Vec<_>>().join("\n")
    }

    /// As an entry of `errors` in a problem document, with line and column (both from 1, in characters).
    fn to_json(&self) -> Value {
        let mut entry = match &self.violation {
            Some(violation) => serde_json::to_value(violation).unwrap_or_default(),
            None => json!({"code": self.code, "message": self.message}),
        };
        if let (Some(mark), Some(entry)) = (&self.mark, entry.as_object_mut()) {
            let (line, column) = mark.line_and_column();
            entry.extend([("file".to_owned(), json!(mark.file)), ("line".to_owned(), json!(line))]);
            entry.insert("column".to_owned(), json!(column));
        }
        if let (Some(hint), Some(entry)) = (self.hint(), entry.as_object_mut()) {
            entry.insert("hint".to_owned(), json!(hint));
        }
        entry
    }
}

impl Mark {
    fn snippet(&self) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        let primary = AnnotationKind::Primary.span(self.place.clone()).label(self.label);
        let earlier = self.earlier.iter().map(|(place, label)| {
            // The earlier place is only mentioned: the caret stays with what is to be changed.
            AnnotationKind::Context.span(place.clone()).label(*label)
        });
        Snippet::source(&*self.source).path(&*self.file).annotation(primary).annotations(earlier)
    }

    /// Line and column from 1; columns are characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = self.source.get(..self.place.start).unwrap_or(&self.source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl Report {
    /// What is wrong with a file, from top to bottom, and how many problems that makes.
    pub fn of_file(file: &str, mut findings: Vec<Finding>) -> Self {
        let place = |finding: &Finding| finding.mark.as_ref().map(|mark| mark.place.clone());
        findings.sort_by_key(|finding| place(finding).map_or(usize::MAX, |place| place.start));
        // What is wrong with an anchor is so wherever it is named.
        findings.dedup_by(|one, other| {
            place(one).is_some() && place(one) == place(other) && one.message == other.message
        });
        let summary = match findings.len() {
            count @ ..=MAX_VIOLATIONS => format!("{file}: {} found", counted(count, "problem")),
            // Of very many, not all are looked for.
            _ => format!(
                "{file}: more than {MAX_VIOLATIONS} problems found, the first {MAX_VIOLATIONS} are shown"
            ),
        };
        findings.truncate(MAX_VIOLATIONS);
        Self { findings, summary: Some(summary), problem: Problem::new(Code::ValidationFailed) }
    }

    /// A report that ends with the number of `findings` and with the `outcome`.
    pub fn with_outcome(findings: Vec<Finding>, outcome: &str, problem: Problem) -> Self {
        let summary = format!("{}, {outcome}", counted(findings.len(), "problem"));
        Self { findings, summary: Some(summary), problem }
    }

    /// How a command ends with it.
    pub fn exit(&self) -> Exit {
        Exit::of_status(self.problem.status)
    }

    /// Draws every finding, and the summary.
    pub fn draw(&self, colour: bool, width: usize) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let gap = if finding.mark.is_some() { "\n\n" } else { "\n" };
            let _infallible = write!(text, "{}{gap}", finding.draw(colour, width));
        }
        if let Some(summary) = &self.summary {
            text.push_str(&Finding::plain(summary.as_str()).draw(colour, width));
        }
        text.trim_end().to_owned()
    }

    /// As a problem document with `exit`, `hint`, and line and column of each error.
    pub fn to_json(&self) -> Value {
        let errors: Vec<_> = self.findings.iter().map(Finding::to_json).collect();
        let mut members = members(&self.problem);
        members.extend([
            ("title".to_owned(), json!(self.summary)),
            ("errors".to_owned(), json!(errors)),
            ("exit".to_owned(), json!(self.exit().code())),
            ("hint".to_owned(), json!(self.findings.iter().find_map(Finding::hint))),
        ]);
        Value::Object(members)
    }
}

/// A failure with one finding as a problem document: that of the server, where there is one.
pub fn to_json(finding: &Finding, problem: Option<&Problem>, exit: Exit) -> Value {
    let mut members = match problem {
        Some(problem) => members(problem),
        None => Map::from_iter([
            ("type".to_owned(), json!("about:blank")),
            ("title".to_owned(), json!(finding.message)),
            ("code".to_owned(), json!(finding.code.as_deref().or(finding.local_code))),
        ]),
    };
    members.insert("exit".to_owned(), json!(exit.code()));
    members.insert("hint".to_owned(), json!(finding.hint()));
    Value::Object(members)
}

fn members(problem: &Problem) -> Map<String, Value> {
    match serde_json::to_value(problem) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
