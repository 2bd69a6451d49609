//! Merge patches of integrations (RFC 7396).

use crate::domain::integration::IntegrationType;
use crate::domain::integration::spec::Member;
use crate::domain::json::Value;

/// Applies `patch` to `target`. A secret that `patch` removes stays as `null`, which removes it: one that is left
/// out is kept.
pub(super) fn merged(target: &Value, patch: &Value, kind: IntegrationType) -> Value {
    let Value::Object(mut members) = merge(target, patch) else { return patch.clone() };
    for Member { name, .. } in kind.spec().members.iter().filter(|member| member.is_secret()) {
        if patch.get(name) == Some(&Value::Null) {
            members.push(((*name).to_owned(), Value::Null));
        }
    }
    Value::Object(members)
}

fn merge(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let old = if let Value::Object(members) = target { &members[..] } else { &[] };
    let kept = old.iter().filter_map(|(name, value)| match patch.get(name) {
        None => Some((name.clone(), value.clone())),
        Some(Value::Null) => None,
        Some(change) => Some((name.clone(), merge(value, change))),
    });
    // An integration has few members, a patch may have very many.
    let is_new = |name: &String| old.iter().all(|(known, _)| known != name);
    let added = changes.iter().filter(|(name, change)| *change != Value::Null && is_new(name));
    let added = added.map(|(name, change)| (name.clone(), merge(&Value::Null, change)));
    Value::Object(kept.chain(added).collect())
}
