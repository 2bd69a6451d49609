//! Differences between two definitions of a form, one line per field.

use console::measure_text_width;

use crate::cli::commands::edit::patch::same;
use crate::cli::output::integrations;
use crate::domain::json::{Object, Value};
use crate::domain::question::QuestionKind;

/// Maximum width to which paths are aligned.
const MAX_PATH: usize = 27;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Added,
    Removed,
    Updated,
    Moved,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    sign: Sign,
    /// `title`, `questions.score.max`, `settings.closes_at`.
    path: String,
    /// The value; if updated, the old and the new one.
    what: String,
}

impl Change {
    fn new(sign: Sign, path: &str, what: String) -> Self {
        Self { sign, path: path.to_owned(), what }
    }

    /// Describes the change after it was made: `updated: title "Old" → "New"`.
    pub(super) fn report(&self) -> String {
        let verb = match self.sign {
            Sign::Added => "added",
            Sign::Removed => "removed",
            Sign::Updated => "updated",
            Sign::Moved => "moved",
        };
        format!("{verb}: {} {}", self.path, self.what).trim_end().to_owned()
    }
}

/// Formats the changes as lines: `  ~ title   "Old" → "New"`.
pub(super) fn lines(changes: &[Change]) -> Vec<String> {
    let widths = changes.iter().map(|change| measure_text_width(&change.path));
    let width = widths.filter(|width| *width <= MAX_PATH).max().unwrap_or_default();
    let line = |change: &Change| {
        let sign = match change.sign {
            Sign::Added => '+',
            Sign::Removed => '-',
            Sign::Updated => '~',
            Sign::Moved => '↕',
        };
        let gap = width.saturating_sub(measure_text_width(&change.path));
        format!("  {sign} {}{}  {}", change.path, " ".repeat(gap), change.what).trim_end().to_owned()
    };
    changes.iter().map(line).collect()
}

/// Returns the changes from `before` to `after`.
pub(super) fn diff(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    for name in names(Some(before), Some(after)) {
        match name {
            "questions" => compare_questions(before, after, &mut changes),
            "integrations" => compare_integrations(before.get(name), after.get(name), &mut changes),
            name => compare(name, before.get(name), after.get(name), &mut changes),
        }
    }
    changes
}

/// Returns the member names of both, without duplicates.
fn names<'a>(before: Option<&'a Value>, after: Option<&'a Value>) -> Vec<&'a str> {
    let members = |value: Option<&'a Value>| match value {
        Some(Value::Object(members)) => &members[..],
        _ => &[],
    };
    let added = members(after).iter().filter(|(name, _)| before.is_none_or(|old| old.get(name).is_none()));
    members(before).iter().chain(added).map(|(name, _)| name.as_str()).collect()
}

/// Compares the values at `path`, objects member by member. `null` is no value.
fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    let [before, after] = [before, after].map(|value| value.filter(|value| **value != Value::Null));
    let is_object = |value: Option<&Value>| value.is_none_or(|value| matches!(value, Value::Object(_)));
    let change = match (before, after) {
        (None, None) => return,
        _ if is_object(before) && is_object(after) => {
            for name in names(before, after) {
                let member = |value: Option<&'_ Value>| value.and_then(|value| value.get(name)).cloned();
                let (old, new) = (member(before), member(after));
                compare(&format!("{path}.{name}"), old.as_ref(), new.as_ref(), changes);
            }
            return;
        }
        (None, Some(new)) => Change::new(Sign::Added, path, new.to_string()),
        (Some(old), None) => Change::new(Sign::Removed, path, old.to_string()),
        (Some(old), Some(new)) if same(old, new) => return,
        (Some(old), Some(new)) => Change::new(Sign::Updated, path, format!("{old} → {new}")),
    };
    changes.push(change);
}

/// Compares two lists of integrations in authoring form. Secrets are not shown.
fn compare_integrations(before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    let items = |list: Option<&'_ Value>| list.and_then(Value::as_array).unwrap_or_default().to_vec();
    for new in items(after) {
        let name = text(&new, "name");
        let path = format!("integrations.{name}");
        match integrations::find(before, name) {
            None => changes.push(Change::new(Sign::Added, &path, integrations::describe(&new))),
            Some(old) => compare_integration(&path, old, &new, changes),
        }
    }
    let gone = items(before).into_iter().filter(|old| integrations::find(after, text(old, "name")).is_none());
    changes.extend(gone.map(|old| {
        let path = format!("integrations.{}", text(&old, "name"));
        Change::new(Sign::Removed, &path, integrations::describe(&old))
    }));
}

fn compare_integration(path: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    for name in names(Some(before), Some(after)) {
        let (path, old, new) = (format!("{path}.{name}"), before.get(name), after.get(name));
        match name {
            "headers" => {
                for header in names(old, new) {
                    let member =
                        |value: Option<&'_ Value>| value.and_then(|value| value.get(header)).cloned();
                    let (old, new) = (member(old), member(new));
                    compare_secret(&format!("{path}.{header}"), old.as_ref(), new.as_ref(), changes);
                }
            }
            "when" | "fields" => compare(&path, old, new, changes),
            _ => compare_secret(&path, old, new, changes),
        }
    }
}

/// Compares the values at `path`, which may be secrets: of them only the name of the variable is shown.
fn compare_secret(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    let is_secret = |value: Option<&Value>| {
        value.is_some_and(|value| value.get("env").or_else(|| value.get("set")).is_some())
    };
    if !is_secret(before) && !is_secret(after) {
        return compare(path, before, after, changes);
    }
    let variable = |value: Option<&Value>| {
        let name = value.and_then(integrations::env);
        name.map(|name| format!(" ({name})")).unwrap_or_default()
    };
    let is_equal = before.zip(after).is_some_and(|(old, new)| same(old, new));
    let (sign, what) = match (before, after) {
        _ if is_equal => return,
        (None, _) => (Sign::Added, format!("secret{}", variable(after))),
        (_, None) => (Sign::Removed, format!("secret{}", variable(before))),
        _ => (Sign::Updated, format!("secret changed{}", variable(after))),
    };
    changes.push(Change::new(sign, path, what));
}

/// A question in a form's list.
struct QuestionEntry {
    /// `questions.score`, or `page "About you"` for a page or statement without an id.
    path: String,
    /// Its type and title.
    name: String,
    question: Value,
}

fn question_entries(form: &Value) -> Vec<QuestionEntry> {
    let Some(Value::Array(questions)) = form.get("questions") else { return Vec::new() };
    let mut all: Vec<QuestionEntry> = Vec::new();
    for question in questions {
        let name = format!("{} {}", text(question, "type"), Value::from(text(question, "title")));
        let mut path = match id(question) {
            Some(id) => format!("questions.{id}"),
            None => name.clone(),
        };
        // Distinguishes equal pages.
        while all.iter().any(|other| other.path == path) {
            path.push('\'');
        }
        all.push(QuestionEntry { path, name, question: without_default(question) });
    }
    all
}

fn text<'a>(question: &'a Value, name: &str) -> &'a str {
    question.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn id(question: &Value) -> Option<&str> {
    question.get("id").and_then(Value::as_str)
}

/// Removes `required: false`, the default, from `question`.
fn without_default(question: &Value) -> Value {
    let Value::Object(members) = question else { return question.clone() };
    let is_default = |name: &str, value: &Value| name == "required" && *value == Value::Bool(false);
    let kept: Object = members.iter().filter(|(name, value)| !is_default(name, value)).cloned().collect();
    Value::Object(kept)
}

fn compare_questions(before: &Value, after: &Value, changes: &mut Vec<Change>) {
    let (before, after) = (question_entries(before), question_entries(after));
    let place = |list: &[QuestionEntry], path: &str| list.iter().position(|listed| listed.path == path);
    let kept: Vec<_> =
        after.iter().enumerate().filter_map(|(to, new)| Some((place(&before, &new.path)?, to))).collect();
    let in_order = longest_increase(&kept);
    for (to, new) in after.iter().enumerate() {
        let Some(from) = place(&before, &new.path) else {
            let name = if id(&new.question).is_some() { format!("{} ", new.name) } else { String::new() };
            let place = match to.checked_sub(1) {
                Some(to) => format!("after {}", after[to].path.trim_start_matches("questions.")),
                None => "first".to_owned(),
            };
            changes.push(Change::new(Sign::Added, &new.path, name + &place));
            continue;
        };
        compare(&new.path, Some(&before[from].question), Some(&new.question), changes);
        if !in_order.contains(&from) {
            let what = format!("place {} → {}", from + 1, to + 1);
            changes.push(Change::new(Sign::Moved, &new.path, what));
        }
    }
    let gone = before.iter().filter(|old| place(&after, &old.path).is_none());
    changes.extend(gone.map(|old| {
        let name = if id(&old.question).is_some() { old.name.clone() } else { String::new() };
        Change::new(Sign::Removed, &old.path, name)
    }));
}

/// Returns the old positions of the largest set of questions that need not move: the longest increasing subsequence of
/// `kept`, pairs of old and new position, in new order.
fn longest_increase(kept: &[(usize, usize)]) -> Vec<usize> {
    let mut best: Vec<Vec<usize>> = Vec::new();
    for (from, _) in kept {
        let before = best.iter().filter(|run| run.last().is_some_and(|last| last < from));
        let mut run = before.max_by_key(|run| run.len()).cloned().unwrap_or_default();
        run.push(*from);
        best.push(run);
    }
    best.into_iter().max_by_key(Vec::len).unwrap_or_default()
}

/// Effect of a change on the answers to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerLoss {
    Removed,
    Retyped,
}

/// Returns the ids of the answerable questions that `after` removes or changes the type of.
pub(super) fn losses(before: &Value, after: &Value) -> Vec<(String, AnswerLoss)> {
    let after = question_entries(after);
    let loss = |old: &QuestionEntry| {
        let id = id(&old.question)?;
        let kind = QuestionKind::without_settings(text(&old.question, "type"));
        if kind.is_some_and(|(kind, _)| !kind.rules().takes_answer()) {
            return None;
        }
        let loss = match after.iter().find(|new| new.path == old.path) {
            None => AnswerLoss::Removed,
            Some(new) if text(&new.question, "type") != text(&old.question, "type") => AnswerLoss::Retyped,
            Some(_) => return None,
        };
        Some((id.to_owned(), loss))
    };
    question_entries(before).iter().filter_map(loss).collect()
}
