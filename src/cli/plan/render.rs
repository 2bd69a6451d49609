//! Plans as text, as Markdown for a comment on a pull request, and as JSON.

use std::fmt::Write as _;

use console::measure_text_width;
use serde_json::{Value as Json, json};

use crate::cli::output::humanize::{count_noun, humanize};
use crate::cli::output::visible;
use crate::cli::plan::changes::{Change, Class, Operation};
use crate::cli::plan::{Action, FormPlan, Plan};
use crate::domain::json::Value;

/// Maximum width to which the fields are aligned.
const MAX_FIELD: usize = 27;

/// Bytes of a comment after which no further form is added, and maximum lines of a form: GitHub takes 65,536 characters.
const MAX_COMMENT: usize = 40_000;
const MAX_LINES: usize = 150;

/// Width beyond which the note of a change is on a line of its own.
const LINE_WIDTH: usize = 80;

/// Formats the changes as lines: `  ~ title   "Old" → "New"`. Marks are coloured if `colour`.
pub fn lines(changes: &[Change], colour: bool) -> Vec<String> {
    let widths = changes.iter().map(|change| measure_text_width(&visible(&change.field)));
    let width = widths.filter(|width| *width <= MAX_FIELD).max().unwrap_or_default();
    let lines = changes.iter().map(|change| line(change, width, colour));
    lines.flat_map(|line| line.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn line(change: &Change, width: usize, colour: bool) -> String {
    let (mark, shade) = match change.operation {
        Operation::Add => ('+', "32"),
        Operation::Remove => ('-', "31"),
        Operation::Move => ('↕', "36"),
        Operation::Change | Operation::Rename => ('~', "33"),
    };
    let mark = if colour { format!("\u{1b}[{shade}m{mark}\u{1b}[0m") } else { mark.to_string() };
    let (field, words) = (visible(&change.field), visible(&change.words));
    let gap = " ".repeat(width.saturating_sub(measure_text_width(&field)));
    let text = format!("  {mark} {field}{gap}  {words}").trim_end().to_owned();
    match note(change) {
        None => text,
        Some(note) if measure_text_width(&text) + note.len() + 2 <= LINE_WIDTH => format!("{text}  {note}"),
        Some(note) => format!("{text}\n    {}  {note}", " ".repeat(width)),
    }
}

/// Describes what a change does to stored answers: `! 1 answer says soup`.
fn note(change: &Change) -> Option<String> {
    let affected = change.affected.as_ref()?;
    let count = change.answers;
    let answers = count.map_or("answers".to_owned(), |count| count_noun(count, "answer"));
    let [is, says, follows] = match count {
        Some(1) => ["is", "says", "follows"],
        _ => ["are", "say", "follow"],
    };
    let kind = change.before.as_ref().map(humanize).unwrap_or_default();
    Some(match (change.class, &affected.value) {
        (Class::Retypes, _) => format!("! {answers} {is} of type {}", visible(&kind)),
        (Class::Hides, Some(("max", bound))) => format!("! {answers} {is} above {bound}"),
        (Class::Hides, Some(("min", bound))) => format!("! {answers} {is} below {bound}"),
        (Class::Hides, Some(("was", id))) => {
            format!("! answers under {} are hidden, those under {id} return", affected.question)
        }
        (Class::Hides, Some((_, value))) => format!("! {answers} {says} {}", visible(value)),
        (Class::Hides, None) => format!("! {answers} {is} hidden"),
        (Class::Plain, _) => format!("{answers} {follows}"),
    })
}

impl Plan {
    /// Returns the forms that change, with their changes, and a summary.
    pub fn text(&self, colour: bool) -> String {
        let mut text = String::new();
        for form in self.forms.iter().filter(|form| form.action() != Action::Unchanged) {
            let _infallible = writeln!(text, "{}", form.heading());
            lines(&form.changes, colour).iter().for_each(|line| text += &format!("{line}\n"));
            text.push('\n');
        }
        text + &self.summary() + "\n"
    }

    /// Returns the plan in Markdown: each form in a block in which GitHub colours the lines by their marks.
    pub fn markdown(&self) -> String {
        let mut text = format!("### Forms: {}\n", self.summary());
        let changed: Vec<_> = self.forms.iter().filter(|form| form.action() != Action::Unchanged).collect();
        for (place, form) in changed.iter().enumerate() {
            if text.len() > MAX_COMMENT {
                let others = count_noun(changed.len() - place, "form");
                return text + &format!("\n{others} more: see `forms diff`\n");
            }
            let _infallible = writeln!(text, "\n```diff\n@@ {} @@", form.heading());
            for line in lines(&form.changes, false).into_iter().take(MAX_LINES) {
                // GitHub colours a line by its first character: `+`, `-`, or `!` for a change.
                let line = line.strip_prefix("  ").unwrap_or(&line).to_owned();
                let marked = line.strip_prefix(['~', '↕']).map_or(line.clone(), |rest| format!("!{rest}"));
                let _infallible = writeln!(text, "{marked}");
            }
            if form.changes.len() > MAX_LINES {
                let _infallible = writeln!(text, "… {} changes in all", form.changes.len());
            }
            text += "```\n";
        }
        text
    }

    /// Returns which forms of the server are in no file; `None` if all are.
    pub fn without_file(&self) -> Option<String> {
        let name = |form: &Json| visible(form["slug"].as_str().or(form["id"].as_str()).unwrap_or_default());
        let names: Vec<_> = self.unmanaged.iter().map(name).collect();
        let count = count_noun(names.len(), "form");
        (!names.is_empty()).then(|| format!("{count} without a file: {}", names.join(", ")))
    }

    /// Returns what happens: `1 to create, 2 to change, 3 unchanged on https://forms.example.com`.
    pub fn summary(&self) -> String {
        let count = |action| self.forms.iter().filter(|form| form.action() == action).count();
        let counts =
            [(Action::Create, "to create"), (Action::Update, "to change"), (Action::Unchanged, "unchanged")];
        let counts = counts.map(|(action, what)| (count(action), what));
        let parts: Vec<_> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let retypes = self.forms.iter().any(FormPlan::retypes);
        let needs = if retypes { "; apply needs --allow-breaking" } else { "" };
        format!("{} on {}{needs}", parts.join(", "), visible(&self.target))
    }

    /// Returns the plan for programs.
    pub fn to_json(&self) -> Json {
        let forms: Vec<_> = self.forms.iter().map(FormPlan::to_json).collect();
        json!({"forms": forms, "unmanaged": self.unmanaged})
    }
}

impl FormPlan {
    /// Returns the form in one line: `lunch  "Lunch order"  published, 12 responses`.
    fn heading(&self) -> String {
        let about = match &self.base {
            None => "new form".to_owned(),
            Some(base) => {
                format!("{}, {}", base.form.status, count_noun(base.form.response_count, "response"))
            }
        };
        let name = self
            .slug()
            .map_or_else(|| self.base.as_ref().map(|base| base.id()).unwrap_or_default(), str::to_owned);
        visible(&format!("{name}  {}  {about}", Value::from(self.title())))
    }

    fn to_json(&self) -> Json {
        let mut form = json!({"slug": self.slug(), "title": self.title(), "action": self.action()});
        if let Some(document) = &self.document {
            form["file"] = document.file.as_str().into();
        }
        if let Some(base) = &self.base {
            form["id"] = base.id().into();
        }
        form["changes"] = self.changes.iter().map(Change::to_json).collect();
        form
    }
}

impl Change {
    fn to_json(&self) -> Json {
        let mut change = json!({"op": self.operation, "path": self.path, "class": self.class});
        for (name, value) in [("before", &self.before), ("after", &self.after)] {
            if let Some(value) = value {
                change[name] = serde_json::to_value(value).unwrap_or_default();
            }
        }
        if let (Some(answers), Some(_)) = (self.answers, &self.affected) {
            change["answers"] = answers.into();
        }
        change
    }
}
