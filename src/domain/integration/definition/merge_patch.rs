//! Merge patches of integrations (RFC 7396).

use crate::domain::integration::webhook::Webhook;
use crate::domain::json::{Object, Value};

/// Applies `patch` to `target`. A secret that `patch` removes stays as `null`, which removes it: one that is left
/// out is kept.
pub(super) fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(mut members) = merge(target, patch) else { return patch.clone() };
    for name in Webhook::SECRETS {
        if patch.get(name) == Some(&Value::Null) {
            members.push((name.to_owned(), Value::Null));
        }
    }
    Value::Object(members)
}

fn merge(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut members = if let Value::Object(members) = target { members.clone() } else { Object::new() };
    for (name, change) in changes {
        let place = members.iter().position(|(known, _)| known == name);
        match (place, change) {
            (Some(place), Value::Null) => drop(members.remove(place)),
            (Some(place), change) => members[place].1 = merge(&members[place].1, change),
            (None, Value::Null) => {}
            (None, change) => members.push((name.clone(), merge(&Value::Null, change))),
        }
    }
    Value::Object(members)
}
