//! Changes from one definition of a form to another, and the merge patch (RFC 7396) that makes them.

use crate::cli::output::humanize::humanize;
use crate::cli::output::integrations;
use crate::cli::plan::matching::{earlier_ids, match_questions, moved};
use crate::domain::integration::secret_members::{env, is_secret_name, visit_secrets};
use crate::domain::json::{Object, Value};
use crate::domain::question::QuestionKind;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub operation: Operation,
    /// Path of the changed member: `title`, `settings.closes_at`, `questions.score.max`; questions by id, options by value.
    pub path: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    /// The path as shown: without `questions.`, and of an option its question.
    pub field: String,
    /// The change in words: `"Old" → "New"`, `option soup → soop`.
    pub words: String,
    pub class: Class,
    /// The answers that it touches, if any.
    pub affected: Option<Affected>,
    /// The number of those answers, if it is known.
    pub answers: Option<u64>,
}

/// Stored answers: those to a question, or those of them that contain a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Affected {
    /// The id.
    pub question: String,
    /// The list that the value is in, `options`, `rows` or `columns`, and the value; or `max` or `min`, and the bound;
    /// or `was`, and the id under which others are read again.
    pub value: Option<(&'static str, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Add,
    Change,
    Move,
    Remove,
    Rename,
}

/// The effect of a change on stored answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Plain,
    /// They are not shown while the question or option is gone.
    Hides,
    /// They are of another type than the question then has.
    Retypes,
}

/// Returns the changes from `before` to `after`, both in authoring form.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Changes(Vec::new());
    changes.compare("", Some(before), Some(after));
    changes.0
}

struct Changes(Vec<Change>);

impl Changes {
    /// Adds a change that touches no answers.
    fn push(
        &mut self,
        operation: Operation,
        path: &str,
        before: Option<&Value>,
        after: Option<&Value>,
        words: String,
    ) -> &mut Change {
        let field = path.strip_prefix("questions.").unwrap_or(path).to_owned();
        let (before, after) = (before.cloned(), after.cloned());
        // A header given as text may be a credential nevertheless.
        let is_secret = path.split_once(".headers.").is_some_and(|(_, name)| is_secret_name(name));
        let hidden =
            |value: Option<Value>| value.map(|value| if is_secret { "secret".into() } else { value });
        let (before, after) = (hidden(before), hidden(after));
        let words = if is_secret { "secret".to_owned() } else { words };
        let (class, affected, answers) = (Class::Plain, None, None);
        let path = path.to_owned();
        self.0.push(Change { operation, path, before, after, field, words, class, affected, answers });
        self.0.last_mut().expect("a change was pushed")
    }

    /// Adds the differences between two values of the field `path`: objects by member, lists by item. `null` counts as
    /// absent, and so does `required: false`, which is the default.
    fn compare(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        let is_default = |value: &Value| *value == Value::Bool(false) && path.ends_with(".required");
        let is_given = |value: &&Value| **value != Value::Null && !is_default(value);
        let (before, after) = (before.filter(is_given), after.filter(is_given));
        let both = |is_kind: fn(&Value) -> bool| before.is_none_or(is_kind) && after.is_none_or(is_kind);
        match (before, after) {
            (None, None) => {}
            (Some(old), Some(new)) if same(old, new) => {}
            _ if path == "questions" => self.compare_questions(list(before), list(after)),
            _ if is_item_list(path) && both(has_items) => {
                self.compare_items(path, &items(before), &items(after))
            }
            _ if both(has_members) => {
                for name in names(before, after) {
                    let member = |value: Option<&'_ Value>| value.and_then(|value| value.get(name)).cloned();
                    let (old, new) = (member(before), member(after));
                    let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                    self.compare(&path, old.as_ref(), new.as_ref());
                }
            }
            (None, Some(new)) => drop(self.push(Operation::Add, path, None, after, words(new))),
            (Some(old), None) => drop(self.push(Operation::Remove, path, before, None, words(old))),
            (Some(old), Some(new)) => {
                let words = format!("{} → {}", words(old), words(new));
                self.push(Operation::Change, path, before, after, words);
            }
        }
    }

    fn compare_questions(&mut self, before: &[Value], after: &[Value]) {
        let matches = match_questions(before, after);
        let moved = moved(&matches);
        for (place, new) in after.iter().enumerate() {
            let path = format!("questions.{}", label(new));
            let follows = match place.checked_sub(1).and_then(|place| after.get(place)) {
                Some(previous) => format!("after {}", label(previous)),
                None => "first".to_owned(),
            };
            let Some(old) = matches[place].and_then(|old| before.get(old)) else {
                let words = match (new.get("id"), before) {
                    (Some(_), []) => describe_question(new),
                    (Some(_), _) => format!("{}, {follows}", describe_question(new)),
                    (None, []) => String::new(),
                    (None, _) => follows,
                };
                self.push(Operation::Add, &path, None, Some(new), words);
                continue;
            };
            if moved[place] {
                let before = matches[place].map(|old| Value::from(old as i64 + 1));
                let words = format!("moved {}", follows.replace("first", "to the start"));
                self.push(Operation::Move, &path, before.as_ref(), Some(&(place as i64 + 1).into()), words);
            }
            self.compare_question(&path, old, new);
        }
        let is_kept = |place: &usize| matches.contains(&Some(*place));
        for (_, old) in before.iter().enumerate().filter(|(place, _)| !is_kept(place)) {
            let path = format!("questions.{}", label(old));
            let words = if old.get("id").is_some() { describe_question(old) } else { String::new() };
            let change = self.push(Operation::Remove, &path, Some(old), None, words);
            let returns = |id: &Value| after.iter().any(|new| new.get("id") == Some(id));
            let returning = earlier_ids(old).into_iter().find(returns);
            let value = returning.map(|id| ("was", humanize(&id)));
            change.touch(Class::Hides, all_answers(old).map(|affected| Affected { value, ..affected }));
        }
    }

    fn compare_question(&mut self, path: &str, old: &Value, new: &Value) {
        let ids = [old, new].map(|question| question.get("id"));
        if let [Some(before), Some(after)] = ids
            && before != after
        {
            let words = format!("renamed from {}", humanize(before));
            let change = self.push(Operation::Rename, path, Some(before), Some(after), words);
            change.touch(Class::Plain, all_answers(old));
        }
        for name in names(Some(old), Some(new)) {
            let from = self.0.len();
            match name {
                "id" => {}
                // A rename shows it.
                "was" if ids[0] != ids[1] => {}
                _ => self.compare(&format!("{path}.{name}"), old.get(name), new.get(name)),
            }
            for change in &mut self.0[from..] {
                let is_gone = matches!(change.operation, Operation::Remove | Operation::Rename);
                match (name, LISTS.iter().find(|list| **list == name)) {
                    ("type", _) if !is_wider(old, new) => change.touch(Class::Retypes, all_answers(old)),
                    ("max" | "min", _) => change.touch_range(old, new),
                    ("was", _) if is_gone => change.touch(Class::Hides, all_answers(old)),
                    (_, Some(list)) if is_gone => change.touch_value(old, list),
                    _ => {}
                }
            }
        }
    }

    /// Adds the differences between two lists whose items have names. Of options that are at the same place with another
    /// name, one is taken to be renamed.
    fn compare_items(&mut self, path: &str, before: &[(String, &Value)], after: &[(String, &Value)]) {
        let find = |list: &[(String, &Value)], name: &str| list.iter().position(|(other, _)| other == name);
        let matches: Vec<_> = after.iter().map(|(name, _)| find(before, name)).collect();
        let moved = moved(&matches);
        let (parent, list) = path.rsplit_once('.').unwrap_or(("", path));
        let noun = list.strip_suffix('s').unwrap_or(list);
        let is_renamed = |place: usize| {
            let old = before.get(place).filter(|(name, _)| find(after, name).is_none());
            old.filter(|_| !parent.is_empty() && after.get(place).is_some() && matches[place].is_none())
        };
        for (place, (name, new)) in after.iter().enumerate() {
            let path = format!("{path}.{name}");
            match matches[place].map(|old| before[old].1) {
                Some(old) => {
                    if moved[place] {
                        let follows = match place.checked_sub(1) {
                            Some(previous) => format!("after {}", after[previous].0),
                            None => "to the start".to_owned(),
                        };
                        let change =
                            self.push(Operation::Move, &path, None, None, format!("moved {follows}"));
                        change.belongs_to(parent, noun, name);
                    }
                    self.compare(&path, Some(old), Some(new));
                }
                None => match is_renamed(place) {
                    Some((old, before_item)) => {
                        let path = format!("{parent}.{list}.{old}");
                        let (before, after) = (Value::from(&**old), Value::from(&**name));
                        let words = format!("→ {name}");
                        let change = self.push(Operation::Rename, &path, Some(&before), Some(&after), words);
                        change.belongs_to(parent, noun, old);
                        let label = |item: &Value| item.get("label").cloned();
                        let path = format!("{parent}.{list}.{name}.label");
                        self.compare(&path, label(before_item).as_ref(), label(new).as_ref());
                    }
                    None => {
                        let words = integrations::describe(new) + &variables(new);
                        let change = self.push(Operation::Add, &path, None, Some(new), words);
                        change.belongs_to(parent, noun, name);
                    }
                },
            }
        }
        let gone = before
            .iter()
            .enumerate()
            .filter(|(place, (name, _))| find(after, name).is_none() && is_renamed(*place).is_none());
        for (_, (name, old)) in gone {
            let path = format!("{path}.{name}");
            let change = self.push(Operation::Remove, &path, Some(old), None, integrations::describe(old));
            change.belongs_to(parent, noun, name);
        }
    }
}

impl Change {
    /// Shows an item of a list, an option, with the question to which it belongs. Integrations are fields of their own.
    fn belongs_to(&mut self, parent: &str, noun: &str, name: &str) {
        if parent.is_empty() {
            return;
        }
        self.field = parent.strip_prefix("questions.").unwrap_or(parent).to_owned();
        self.words = format!("{noun} {name} {}", self.words).trim_end().to_owned();
    }

    fn touch(&mut self, class: Class, affected: Option<Affected>) {
        self.class = if affected.is_some() { class } else { Class::Plain };
        self.affected = affected;
    }

    /// Marks answers on the scale `old` that are not on the scale `new`.
    fn touch_range(&mut self, old: &Value, new: &Value) {
        let is_scale = |question: &Value| {
            question
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(|kind| ["rating", "opinion_scale"].contains(&kind))
        };
        let bound = |name: &'static str| {
            let (before, after) = (old.get(name), new.get(name)?.as_number()?.integer()?);
            (before != new.get(name)).then(|| (name, after.to_string()))
        };
        let name = if self.path.ends_with(".max") { "max" } else { "min" };
        let value = bound(name).filter(|_| is_scale(old) && is_scale(new));
        let affected = all_answers(old).filter(|_| value.is_some());
        self.touch(Class::Hides, affected.map(|affected| Affected { value, ..affected }));
    }

    /// Marks a value in a `list` of `question` as gone.
    fn touch_value(&mut self, question: &Value, list: &'static str) {
        let value = self.path.split_once(&format!(".{list}.")).map(|(_, value)| (list, value.to_owned()));
        // Its label is part of it.
        let is_label = |(_, value): &(&str, String)| value.ends_with(".label");
        let value = value.filter(|value| !is_label(value));
        let affected = all_answers(question).filter(|_| value.is_some());
        self.touch(Class::Hides, affected.map(|affected| Affected { value, ..affected }));
    }
}

/// Returns all answers to `question`; `None` if it takes none, or is of an unknown type.
fn all_answers(question: &Value) -> Option<Affected> {
    let (kind, _) = QuestionKind::without_settings(question.get("type")?.as_str()?)?;
    let question = question.get("id")?.as_str()?.to_owned();
    kind.rules().takes_answer().then_some(Affected { question, value: None })
}

/// Returns which variables the secrets of an integration are taken from: they are sent to its address.
fn variables(integration: &Value) -> String {
    let (mut list, mut names) = (Value::Array(vec![integration.clone()]), Vec::new());
    visit_secrets(&mut list, |member| names.extend(member.env().map(str::to_owned)));
    if names.is_empty() { String::new() } else { format!(", with {}", names.join(", ")) }
}

/// Returns what a question is known by: its id; of a page or statement without one, its type and title.
fn label(question: &Value) -> String {
    match question.get("id").and_then(Value::as_str) {
        Some(id) => id.to_owned(),
        None => describe_question(question),
    }
}

/// Describes a question by its type and title.
fn describe_question(question: &Value) -> String {
    let texts = ["type", "title"].iter().filter_map(|name| question.get(name));
    texts
        .zip([false, true])
        .map(|(text, quoted)| if quoted { text.to_string() } else { humanize(text) })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether `value` is an object that is compared by member. A secret is not: it is shown as a whole.
fn has_members(value: &Value) -> bool {
    matches!(value, Value::Object(_)) && value.get("env").or_else(|| value.get("set")).is_none()
}

/// Whether `new` is of a type that takes every answer to `old`, both being texts.
fn is_wider(old: &Value, new: &Value) -> bool {
    let kind = |question: &Value| {
        question.get("type").and_then(Value::as_str).map(str::to_owned).unwrap_or_default()
    };
    let is_text = ["short_text", "email", "url", "phone"].contains(&&*kind(old));
    kind(new) == "long_text" && is_text
}

/// The lists of a question whose items have names.
const LISTS: [&str; 3] = ["options", "rows", "columns"];

/// Whether the lists at `path` are compared by item: those of integrations and options. The order of others has a meaning.
fn is_item_list(path: &str) -> bool {
    let is_of_question = path.starts_with("questions.") && path.split('.').count() == 3;
    let name = path.rsplit('.').next().unwrap_or_default();
    path == "integrations" || (is_of_question && LISTS.contains(&name))
}

/// Whether `value` is a list whose items all have a name to compare them by.
fn has_items(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(|item| name_of(item).is_some()))
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
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

/// Returns the items with their names; equal ones are numbered.
fn items(value: Option<&Value>) -> Vec<(String, &Value)> {
    let mut named: Vec<(String, &Value)> = Vec::new();
    for item in list(value) {
        let name = name_of(item).unwrap_or_default();
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| named.iter().all(|(other, _)| other != name));
        named.push((free.unwrap_or(name), item));
    }
    named
}

/// Returns what an item of a list is known by: an integration's name, an option's value.
fn name_of(item: &Value) -> Option<String> {
    match item {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => {
            ["name", "value"].iter().find_map(|name| Some(item.get(name)?.as_str()?.to_owned()))
        }
        _ => None,
    }
}

/// Formats a value as words. Of a secret only the variable is shown.
fn words(value: &Value) -> String {
    match value {
        Value::String(_) => value.to_string(),
        Value::Object(_) if !has_members(value) => match env(value) {
            Some(name) => format!("secret from {name}"),
            None => "secret".to_owned(),
        },
        value => humanize(value),
    }
}

/// Returns the merge patch from `before` to `after`, both in authoring form; `None` if they are equal.
pub(super) fn patch(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (!same(before, after)).then(|| after.clone());
    };
    let mut members = Object::new();
    for (name, value) in new {
        let change = match before.get(name) {
            Some(old) => patch(old, value),
            None => Some(value.clone()).filter(|value| *value != Value::Null),
        };
        members.extend(change.map(|change| (name.clone(), change)));
    }
    let gone = old.iter().filter(|(name, _)| after.get(name).is_none());
    members.extend(gone.map(|(name, _)| (name.clone(), Value::Null)));
    (!members.is_empty()).then_some(Value::Object(members))
}

/// Whether two values have the same text: to an author `1.10` and `1.1` differ.
fn same(one: &Value, other: &Value) -> bool {
    one.to_string() == other.to_string()
}
