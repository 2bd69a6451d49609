//! Differences between two definitions of a form, as a merge patch (RFC 7396).

use crate::domain::json::{Object, Value};

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
pub(super) fn same(one: &Value, other: &Value) -> bool {
    one.to_string() == other.to_string()
}

#[cfg(test)]
mod tests {
    use super::patch;
    use crate::domain::json::{merge, parse};

    const BEFORE: &str = r#"{"slug":"s","title":"T","questions":[{"id":"a","type":"rating","max":5},
        {"type":"page","title":"P"},{"id":"b","type":"email"}],"settings":{"closed":true,
        "confirmation":{"message":"M"},"max_responses":1.10}}"#;

    #[test]
    fn a_patch_has_what_differs_and_makes_it() {
        let before = parse(BEFORE).unwrap();
        for (old, new, expected) in [
            (r#""title":"T""#, r#""title":"U""#, r#"{"title":"U"}"#),
            (r#""slug":"s","#, "", r#"{"slug":null}"#),
            (r#""title":"T""#, r#""title":"T","description":"D""#, r#"{"description":"D"}"#),
            (
                r#"{"message":"M"}"#,
                r#"{"redirect_url":"U"}"#,
                r#"{"settings":{"confirmation":{"redirect_url":"U","message":null}}}"#,
            ),
            (r#""closed":true"#, r#""language":"de""#, r#"{"settings":{"language":"de","closed":null}}"#),
            ("1.10", "1.1", r#"{"settings":{"max_responses":1.1}}"#),
            (
                r#"{"id":"b","type":"email"}"#,
                r#"{"id":"a2","type":"url"}"#,
                r#"{"questions":[{"id":"a","type":"rating","max":5},{"type":"page","title":"P"},{"id":"a2","type":"url"}]}"#,
            ),
        ] {
            assert!(BEFORE.contains(old), "{old}");
            let after = parse(&BEFORE.replace(old, new)).unwrap();
            let patch = patch(&before, &after).unwrap();
            assert_eq!(patch.to_string(), expected);
            let made = merge(BEFORE, &patch.to_string()).unwrap();
            assert_eq!(
                crate::cli::commands::edit::patch::patch(&parse(&made).unwrap(), &after),
                None,
                "{expected}"
            );
        }
        assert_eq!(patch(&before, &before), None);
    }
}
