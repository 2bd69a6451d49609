//! Failures as a person reads them: every problem at once, with a caret in the file it stands in.
//!
//! The same drawing serves what was found here and what the server found: both name places by JSON pointer.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Map, Value, json};

use crate::api::{Code, Problem};
use crate::cli::document::Document;
use crate::cli::elsewhere;
use crate::cli::exit::Exit;
use crate::cli::output::{visible, visible_lines, wrapped};
use crate::domain::json::Value as Definition;
use crate::domain::violation::{Rule, Violation};

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
    /// The server's code, where the server found it; else that which it would have.
    pub code: Code,
}

impl Finding {
    /// A finding with a code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), message: message.into(), ..Self::default() }
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

    /// The same, of one of several items: where the message does not name it, it comes first.
    #[must_use]
    pub fn about(mut self, item: &str) -> Self {
        if !self.message.contains(item) {
            self.message = format!("{item}: {}", self.message);
        }
        self
    }

    /// Draws it, without a newline at the end.
    pub fn draw(&self, colour: bool, width: usize) -> String {
        // The renderer lets the control characters of other people's texts through to the terminal.
        let message = visible(&self.message);
        let mut title = Level::ERROR.primary_title(&*message);
        if let Some(code) = &self.code {
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
        let drawn = renderer.term_width(width).render(&[group]);
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

/// Characters that a line of names has, so that it fits into 80 columns with its frame.
const LIST_WIDTH: usize = 68;

/// Problems of one file that are shown: more than anybody reads, few enough to draw in no time.
const MAX_SHOWN: usize = 100;

impl Report {
    /// What is wrong with a file, from top to bottom, and how many problems that makes.
    pub fn of_file(file: &str, mut findings: Vec<Finding>) -> Self {
        let place = |finding: &Finding| finding.mark.as_ref().map(|mark| mark.place.clone());
        findings.sort_by_key(|finding| place(finding).map_or(usize::MAX, |place| place.start));
        // What is wrong with an anchor is so wherever it is named.
        findings.dedup_by(|one, other| {
            place(one).is_some() && place(one) == place(other) && one.message == other.message
        });
        let count = findings.len();
        let problems = if count == 1 { "problem" } else { "problems" };
        let mut summary = format!("{file}: {count} {problems} found");
        if count > MAX_SHOWN {
            findings.truncate(MAX_SHOWN);
            let _infallible = write!(summary, ", the first {MAX_SHOWN} are shown");
        }
        let summary = Some(summary);
        Self { findings, summary, code: Code::ValidationFailed }
    }

    /// How a command ends with it.
    pub fn exit(&self) -> Exit {
        Exit::of_status(self.code.status())
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
        let hint = self.findings.iter().find_map(Finding::hint);
        json!({
            "type": format!("/problems/{}", self.code),
            "title": self.summary,
            "status": self.code.status(),
            "code": self.code,
            "errors": errors,
            "exit": self.exit().code(),
            "hint": hint,
        })
    }
}

/// A failure with one finding as a problem document: that of the server, where there is one.
pub fn to_json(finding: &Finding, problem: Option<&Problem>, exit: Exit) -> Value {
    let mut members = match problem.map(serde_json::to_value) {
        Some(Ok(Value::Object(members))) => members,
        _ => Map::from_iter([
            ("type".to_owned(), json!("about:blank")),
            ("title".to_owned(), json!(finding.message)),
            ("code".to_owned(), json!(finding.code.as_deref().or(finding.local_code))),
        ]),
    };
    members.insert("exit".to_owned(), json!(exit.code()));
    members.insert("hint".to_owned(), json!(finding.hint()));
    Value::Object(members)
}

/// Draws the broken rules of a definition in the file it came from.
///
/// A member that is missing is not told where a misspelt one explains it.
pub fn draw_violations(document: &Document, violations: &[Violation]) -> Vec<Finding> {
    // The time to draw one grows with the file: of those that nobody will see only the number counts.
    let (shown, others) = violations.split_at(violations.len().min(MAX_SHOWN));
    let told = shown.iter().filter(|violation| !is_explained(violation, shown));
    let drawn = told.map(|violation| of_violation(document, violation));
    let named = |other: &Violation| Finding::new(other.code.name(), other.message.clone());
    drawn.chain(others.iter().map(named)).collect()
}

/// Tells of the broken rules of `form`, which stands in no file.
pub fn tell_violations(form: &Definition, violations: &[Violation]) -> Vec<Finding> {
    let told = |violation| match question(form, violation) {
        Some(question) => plain_violation(violation).about(&question),
        None => plain_violation(violation),
    };
    violations.iter().map(told).collect()
}

/// What a person calls the question of `form` that breaks a rule, unless the message does.
fn question(form: &Definition, violation: &Violation) -> Option<String> {
    let place: usize = violation.pointer.strip_prefix("/questions/")?.split('/').next()?.parse().ok()?;
    let Definition::Array(questions) = form.get("questions")? else { return None };
    let number = format!("question {}", place + 1);
    let name = match questions.get(place)?.get("id") {
        Some(Definition::String(id)) => format!("question `{id}`"),
        _ => number.clone(),
    };
    Some(name).filter(|_| !violation.message.contains(&number))
}

fn of_violation(document: &Document, violation: &Violation) -> Finding {
    let told = plain_violation(violation);
    let help = told.help.clone().or_else(|| quoted(document, violation));
    Finding { mark: mark(document, violation), help, ..told }
}

fn plain_violation(violation: &Violation) -> Finding {
    // The drawing shows an earlier place, and a name that is near makes up for all others.
    let message = violation.message.split(", first by ").next().unwrap_or_default();
    let advice = ["; known are ", "; write "].into_iter().find_map(|word| message.find(word));
    let (message, advice) = match advice {
        Some(at) => (&message[..at], Some(&message[at + "; ".len()..])),
        None => (message, None),
    };
    let written = written(violation);
    let near = nearest(&written, violation);
    let help = match (violation.code, near) {
        (Rule::UnknownField, Some(name)) if is_in_condition(violation) => {
            Some(format!("an operator with a similar name exists: `{name}`"))
        }
        (Rule::UnknownField, Some(name)) => Some(format!("a field with a similar name exists: `{name}`")),
        (Rule::UnknownReference, Some(id)) => Some(format!("an earlier question has a similar id: `{id}`")),
        (Rule::UnknownQuestionType, Some(name)) => {
            Some(format!("a type with a similar name exists: `{name}`"))
        }
        (Rule::UnknownField | Rule::UnknownQuestionType, None)
            if elsewhere::meant(&written, &violation.candidates).is_some() =>
        {
            elsewhere::help(&written)
        }
        (Rule::UnknownField, None) if advice.is_none() => {
            Some(wrapped(&format!("known are {}", violation.candidates.join(", ")), LIST_WIDTH))
        }
        (Rule::DuplicateQuestionId, _) => {
            Some("every question needs its own id: answers are stored under it".to_owned())
        }
        (Rule::SlugTaken, _) => {
            violation.message.split('`').nth(1).map(|slug| format!("to change that form: forms edit {slug}"))
        }
        _ => advice.map(|advice| wrapped(advice, LIST_WIDTH)),
    };
    Finding { help, violation: Some(violation.clone()), ..Finding::new(violation.code.name(), message) }
}

/// What makes text of a value that YAML takes for something else.
fn quoted(document: &Document, violation: &Violation) -> Option<String> {
    let is_meant_as_text = violation.message.contains("text, not ") && !violation.pointer.ends_with("/id");
    let written = document.unquoted(&violation.pointer).filter(|_| is_meant_as_text)?;
    Some(format!("quote it: \"{written}\""))
}

fn mark(document: &Document, violation: &Violation) -> Option<Mark> {
    let is_label = || violation.pointer.split('/').nth(3) == Some("labels");
    let at_key = match violation.code {
        Rule::UnknownField | Rule::ReadOnlyField | Rule::UnknownReference => true,
        Rule::InvalidRange => is_label(),
        _ => false,
    };
    let mut place = document.place(&violation.pointer, at_key)?;
    let mut earlier = None;
    if violation.code == Rule::DuplicateQuestionId {
        let first = document.place_of_id(violation.question.as_deref().unwrap_or_default());
        if first.as_ref() == Some(&place) {
            // The question is named by an alias.
            place = document.place(violation.pointer.trim_end_matches("/id"), false)?;
        }
        earlier = first.map(|first| (first, "first used here"));
    }
    Some(document.mark(place, label(violation), earlier))
}

fn label(violation: &Violation) -> Option<&'static str> {
    let in_question = violation.pointer.starts_with("/questions/");
    Some(match violation.code {
        Rule::UnknownField if is_in_condition(violation) => "not an operator",
        Rule::UnknownField if in_question => "not a field of this question",
        Rule::UnknownField if violation.pointer.starts_with("/settings/") => "not a setting",
        Rule::UnknownField => "not a form field",
        Rule::UnknownQuestionType => "not a question type",
        Rule::UnknownReference => "not an earlier question",
        Rule::ImpossibleCondition => "never true",
        Rule::DuplicateQuestionId => "used again here",
        Rule::ReadOnlyField => "set by the server",
        Rule::SlugTaken => "in use",
        _ => return None,
    })
}

fn is_in_condition(violation: &Violation) -> bool {
    let member = violation.pointer.split('/').nth(3);
    member.is_some_and(|member| member == "show_if" || member == "required_if")
}

/// Whether a missing member is one that a misspelt member beside it was meant to be.
fn is_explained(missing: &Violation, all: &[Violation]) -> bool {
    missing.code == Rule::MissingField
        && all.iter().any(|other| {
            let beside = other.pointer.rsplit_once('/').is_some_and(|(parent, _)| parent == missing.pointer);
            let written = written(other);
            let meant = nearest(&written, other).or_else(|| elsewhere::meant(&written, &other.candidates));
            other.code == Rule::UnknownField
                && beside
                && meant.is_some_and(|name| missing.candidates.iter().any(|missing| missing == name))
        })
}

/// The name that breaks a rule: the last of the pointer, or that which the message quotes.
fn written(violation: &Violation) -> String {
    match violation.code {
        Rule::UnknownField | Rule::UnknownQuestion | Rule::UnknownReference => {
            let name = violation.pointer.rsplit('/').next().unwrap_or_default();
            name.replace("~1", "/").replace("~0", "~")
        }
        _ => violation.message.split('`').nth(1).unwrap_or_default().to_owned(),
    }
}

/// The candidate that is most like what is `written`.
fn nearest<'a>(written: &str, violation: &'a Violation) -> Option<&'a str> {
    similar(written, violation.candidates.iter().map(String::as_str))
}

/// The name most like `written`, if one is near: at most one slip, and one more for every four characters.
pub fn similar<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = 1 + written.chars().count() / 4;
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn a_slip_is_forgiven_and_another_word_is_not() {
        let names = ["title", "type", "email", "rating"];
        for (written, expected) in [
            ("titel", Some("title")),
            ("tipe", Some("type")),
            ("emial", Some("email")),
            ("ratting", Some("rating")),
            ("slug", None),
            ("", None),
        ] {
            assert_eq!(similar(written, names), expected, "{written}");
        }
    }
}
