//! Differences between two definitions of a form: as a merge patch (RFC 7396), and in words, one line per field.

use console::measure_text_width;

use crate::cli::output::humanize::humanize;
use crate::cli::output::integrations;
use crate::domain::integration::secret_members::env;
use crate::domain::json::{Object, Value};

/// Maximum width to which the fields are aligned.
const MAX_FIELD: usize = 27;

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// `title`, `score.max`, `settings.closes_at`; a question by its id.
    field: String,
    /// How it differs: `"Old" → "New"`, `option soup removed`.
    what: String,
}

/// Formats the changes as lines: `  title   "Old" → "New"`.
pub(super) fn lines(changes: &[Change]) -> Vec<String> {
    let widths = changes.iter().map(|change| measure_text_width(&change.field));
    let width = widths.filter(|width| *width <= MAX_FIELD).max().unwrap_or_default();
    let line = |Change { field, what }: &Change| {
        let gap = width.saturating_sub(measure_text_width(field));
        format!("  {field}{}  {what}", " ".repeat(gap))
    };
    changes.iter().map(line).collect()
}

/// Returns the changes from `before` to `after`, both in authoring form.
pub(super) fn diff(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", Some(before), Some(after), &mut changes);
    changes
}

/// Adds the differences between two values of the field `path`: objects by member, lists by item. `null` counts as
/// absent, and so does `required: false`, which is the default.
fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    let is_default = |value: &Value| *value == Value::Bool(false) && path.ends_with(".required");
    let is_given = |value: &&Value| **value != Value::Null && !is_default(value);
    let (before, after) = (before.filter(is_given), after.filter(is_given));
    let both = |is_kind: fn(&Value) -> bool| before.is_none_or(is_kind) && after.is_none_or(is_kind);
    let what = match (before, after) {
        (None, None) => return,
        (Some(old), Some(new)) if same(old, new) => return,
        _ if both(has_items) => return compare_items(path, items(before), items(after), changes),
        _ if both(has_members) => {
            for name in names(before, after) {
                let member = |value: Option<&'_ Value>| value.and_then(|value| value.get(name)).cloned();
                let (old, new) = (member(before), member(after));
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                compare(&path, old.as_ref(), new.as_ref(), changes);
            }
            return;
        }
        (None, Some(new)) => format!("added {}", words(new)),
        (Some(old), None) => format!("removed {}", words(old)),
        (Some(old), Some(new)) => format!("{} → {}", words(old), words(new)),
    };
    changes.push(Change { field: path.to_owned(), what });
}

/// Whether `value` is an object that is compared by member. A secret is not: it is shown as a whole.
fn has_members(value: &Value) -> bool {
    matches!(value, Value::Object(_)) && value.get("env").or_else(|| value.get("set")).is_none()
}

/// Whether `value` is a list whose items all have a name to compare them by.
fn has_items(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(|item| name_of(item).is_some()))
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
fn items(list: Option<&Value>) -> Vec<(String, &Value)> {
    let mut named: Vec<(String, &Value)> = Vec::new();
    for item in list.and_then(Value::as_array).unwrap_or_default() {
        let name = name_of(item).unwrap_or_default();
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| named.iter().all(|(other, _)| other != name));
        named.push((free.unwrap_or(name), item));
    }
    named
}

/// Returns what an item of a list is known by: a question's id, an integration's name, an option's value.
fn name_of(item: &Value) -> Option<String> {
    match item {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => {
            let name = ["id", "name", "value"].iter().find_map(|name| item.get(name)?.as_str());
            name.map(str::to_owned).or_else(|| Some(describe(item)).filter(|_| item.get("type").is_some()))
        }
        _ => None,
    }
}

/// Describes a question by its type and title, an integration by its type and target.
fn describe(item: &Value) -> String {
    match (item.get("type").and_then(Value::as_str), item.get("title")) {
        (Some(kind), Some(title)) if item.get("name").is_none() => format!("{kind} {title}"),
        _ => integrations::describe(item),
    }
}

fn compare_items(
    path: &str,
    before: Vec<(String, &Value)>,
    after: Vec<(String, &Value)>,
    changes: &mut Vec<Change>,
) {
    // Questions and integrations are fields of their own, options and the like belong to theirs.
    let (parent, list) = path.rsplit_once('.').unwrap_or(("", path));
    let noun = list.strip_suffix('s').unwrap_or(list);
    let field = |name: &str| if list == "questions" { name.to_owned() } else { format!("{path}.{name}") };
    let change = |name: &str, item: &Value, verb: &str| match (parent, describe(item)) {
        ("", about) if about.is_empty() || about == name => {
            Change { field: field(name), what: verb.to_owned() }
        }
        ("", about) => Change { field: field(name), what: format!("{verb}: {about}") },
        (parent, _) => Change { field: parent.to_owned(), what: format!("{noun} {name} {verb}") },
    };
    for (name, new) in &after {
        match before.iter().find(|(old, _)| old == name) {
            None => changes.push(change(name, new, "added")),
            Some((_, old)) => compare(&field(name), Some(old), Some(new), changes),
        }
    }
    let is_in = |list: &[(String, &Value)], name: &str| list.iter().any(|(other, _)| other == name);
    let gone = before.iter().filter(|(name, _)| !is_in(&after, name));
    changes.extend(gone.map(|(name, old)| change(name, old, "removed")));
    let kept = before.iter().map(|(name, _)| name).filter(|name| is_in(&after, name));
    if !kept.eq(after.iter().map(|(name, _)| name).filter(|name| is_in(&before, name))) {
        let order: Vec<_> = after.iter().map(|(name, _)| name.as_str()).collect();
        changes.push(Change { field: path.to_owned(), what: format!("order now {}", order.join(", ")) });
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
