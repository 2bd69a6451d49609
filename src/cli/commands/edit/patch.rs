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
