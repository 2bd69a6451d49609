//! What differs between two states of a form: as a merge patch for the server, and in a few words for the person.

use crate::domain::json::{Object, Value};

/// The merge patch that makes `after` of `before`, both as their author would write them; `None` if nothing differs.
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

/// Whether two values are written alike: to their author `1.10` and `1.1` differ.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    one.to_string() == other.to_string()
}

/// What has changed from `before` to `after`, a line each: `~ title`, `+ question nps`, `- settings.closes_at`.
pub(super) fn summary(before: &Value, after: &Value) -> Vec<String> {
    let mut lines = members("", before, after);
    let found = questions(before, after);
    if found.is_empty() && !same(list(before), list(after)) {
        lines.push("~ order of the questions".to_owned());
    }
    lines.extend(found);
    let settings = |form: &Value| form.get("settings").cloned().unwrap_or(Value::Object(Object::new()));
    lines.extend(members("settings.", &settings(before), &settings(after)));
    lines
}

/// What has changed in an object whose members are told by their names.
fn members(around: &str, before: &Value, after: &Value) -> Vec<String> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return Vec::new() };
    let added = new.iter().filter(|(name, _)| before.get(name).is_none());
    let names = old.iter().chain(added).map(|(name, _)| name);
    let line = |name: &String| {
        let sign = sign(before.get(name), after.get(name))?;
        Some(format!("{sign} {around}{name}"))
    };
    names.filter(|name| *name != "questions" && *name != "settings").filter_map(line).collect()
}

fn sign(before: Option<&Value>, after: Option<&Value>) -> Option<char> {
    match (before, after) {
        (Some(before), Some(after)) => (!same(before, after)).then_some('~'),
        (None, Some(_)) => Some('+'),
        (Some(_), None) => Some('-'),
        (None, None) => None,
    }
}

fn list(form: &Value) -> &Value {
    form.get("questions").unwrap_or(&Value::Null)
}

fn questions(before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = (named(before), named(after));
    let find = |all: &[(String, &Value)], name: &str| {
        all.iter().find(|(other, _)| other == name).map(|(_, question)| (*question).clone())
    };
    let gone = before.iter().filter(|(name, _)| find(&after, name).is_none());
    let gone = gone.map(|(name, _)| format!("- {name}"));
    let changed = after.iter().filter_map(|(name, question)| {
        let sign = sign(find(&before, name).as_ref(), Some(question))?;
        Some(format!("{sign} {name}"))
    });
    changed.chain(gone).collect()
}

/// The questions, each with what the person knows it by: pages and statements need have no id.
fn named(form: &Value) -> Vec<(String, &Value)> {
    let Value::Array(questions) = list(form) else { return Vec::new() };
    let text = |question: &Value, name| match question.get(name) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let name = |question| match question {
        question if Value::get(question, "id").is_some() => format!("question {}", text(question, "id")),
        question => format!("{} \"{}\"", text(question, "type"), text(question, "title")),
    };
    questions.iter().map(|question| (name(question), question)).collect()
}

#[cfg(test)]
mod tests {
    use super::{patch, summary};
    use crate::domain::json::{merge, parse};

    const BEFORE: &str = r#"{"slug":"s","title":"T","questions":[{"id":"a","type":"rating","max":5},
        {"type":"page","title":"P"},{"id":"b","type":"email"}],"settings":{"closed":true,
        "confirmation":{"message":"M"},"max_responses":1.10}}"#;

    /// Changes of [`BEFORE`], the patch of each and how it is told.
    const CHANGES: [(&str, &str, &str, &[&str]); 8] = [
        (r#""title":"T""#, r#""title":"U""#, r#"{"title":"U"}"#, &["~ title"]),
        (r#""slug":"s","#, "", r#"{"slug":null}"#, &["- slug"]),
        (r#""title":"T""#, r#""title":"T","description":"D""#, r#"{"description":"D"}"#, &["+ description"]),
        (
            r#"{"message":"M"}"#,
            r#"{"redirect_url":"U"}"#,
            r#"{"settings":{"confirmation":{"redirect_url":"U","message":null}}}"#,
            &["~ settings.confirmation"],
        ),
        (
            r#""closed":true"#,
            r#""language":"de""#,
            r#"{"settings":{"language":"de","closed":null}}"#,
            &["- settings.closed", "+ settings.language"],
        ),
        ("1.10", "1.1", r#"{"settings":{"max_responses":1.1}}"#, &["~ settings.max_responses"]),
        (
            r#"{"id":"b","type":"email"}"#,
            r#"{"id":"a2","type":"url"}"#,
            r#"{"questions":[{"id":"a","type":"rating","max":5},{"type":"page","title":"P"},{"id":"a2","type":"url"}]}"#,
            &["+ question a2", "- question b"],
        ),
        (
            r#"{"type":"page","title":"P"},{"id":"b","type":"email"}"#,
            r#"{"id":"b","type":"email"},{"type":"page","title":"P"}"#,
            r#"{"questions":[{"id":"a","type":"rating","max":5},{"id":"b","type":"email"},{"type":"page","title":"P"}]}"#,
            &["~ order of the questions"],
        ),
    ];

    #[test]
    fn a_change_is_sent_and_told_as_what_it_is() {
        let before = parse(BEFORE).unwrap();
        for (old, new, expected, lines) in CHANGES {
            assert!(BEFORE.contains(old), "{old}");
            let after = parse(&BEFORE.replace(old, new)).unwrap();
            let patch = patch(&before, &after).unwrap();
            assert_eq!(patch.to_string(), expected);
            let made = merge(BEFORE, &patch.to_string()).unwrap();
            assert_eq!(super::patch(&parse(&made).unwrap(), &after), None, "{expected}");
            assert_eq!(summary(&before, &after), lines, "{expected}");
        }
        assert_eq!(patch(&before, &before), None);
        assert_eq!(summary(&before, &before), [""; 0]);
    }
}
