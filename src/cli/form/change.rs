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

/// The patch that makes of `now` what `mine` has made of `base`: what is in `mine` as it was stays as it is now, also
/// among the questions, which go as one list. Those that only `now` has come last.
pub(super) fn patch_onto(base: &Value, mine: &Value, now: &Value) -> Option<Value> {
    let mut patch = patch(base, mine)?;
    if let Value::Object(members) = &mut patch
        && let Some((_, Value::Array(questions))) = members.iter_mut().find(|(name, _)| name == "questions")
    {
        let added = their_own(now, base, questions);
        for question in questions.iter_mut() {
            let [was, is] = [base, now].map(|form| question_as(form, question.get("id")?));
            if let Some(is) = is.filter(|_| was.is_some_and(|was| same(was, question))) {
                *question = is.clone();
            }
        }
        questions.extend(added);
    }
    Some(patch)
}

/// The questions of `now` whose ids neither `base` nor `mine` has.
fn their_own(now: &Value, base: &Value, mine: &[Value]) -> Vec<Value> {
    let Value::Array(questions) = list(now) else { return Vec::new() };
    let is_new = |id| question_as(base, id).is_none() && !mine.iter().any(|mine| mine.get("id") == Some(id));
    questions.iter().filter(|question| question.get("id").is_some_and(is_new)).cloned().collect()
}

/// What `form` has as the question `id`.
fn question_as<'a>(form: &'a Value, id: &Value) -> Option<&'a Value> {
    let Value::Array(questions) = list(form) else { return None };
    questions.iter().find(|question| question.get("id") == Some(id))
}

/// Whether two values are written alike: to their author `1.10` and `1.1` differ.
fn same(one: &Value, other: &Value) -> bool {
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
    use super::{patch, patch_onto, summary};
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

    #[test]
    fn what_was_left_alone_stays_as_others_have_made_it() {
        let base = parse(BEFORE).unwrap();
        let now = BEFORE
            .replace(r#""closed":true"#, r#""language":"de""#)
            .replace(r#""max":5"#, r#""max":9"#)
            .replace(r#""email"}"#, r#""email"},{"id":"c","type":"url"}"#);
        let mine = parse(&BEFORE.replace(r#""type":"email""#, r#""type":"phone""#)).unwrap();
        let patch = patch_onto(&base, &mine, &parse(&now).unwrap()).unwrap();
        let expected = now.replace(r#""type":"email""#, r#""type":"phone""#);
        let made = merge(&now, &patch.to_string()).unwrap();
        assert_eq!(parse(&made).unwrap(), parse(&expected).unwrap());
        let title = parse(&BEFORE.replace(r#""title":"T""#, r#""title":"U""#)).unwrap();
        let patch = patch_onto(&base, &title, &parse(&now).unwrap()).unwrap();
        assert_eq!(patch.to_string(), r#"{"title":"U"}"#);
    }
}
