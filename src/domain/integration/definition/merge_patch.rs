//! Merge patches of integrations (RFC 7396).

use crate::domain::integration::Integration;
use crate::domain::json::{self, Value};

/// Applies `patch` to the members of `target`. A secret that `patch` removes stays as `null`, which removes it: one that is
/// left out is kept.
pub(super) fn merged(target: &Integration, patch: &Value) -> Value {
    let members = Value::Object(target.members());
    let merged = json::merge(&members.to_string(), &patch.to_string());
    let merged = merged.map_or(Ok(members), |text| json::parse(&text));
    let Ok(Value::Object(mut members)) = merged else { return patch.clone() };
    let secrets = target.kind.integration_type.spec().members.iter().filter(|member| member.is_secret());
    let removed = secrets.filter(|member| patch.get(member.name) == Some(&Value::Null));
    members.extend(removed.map(|member| (member.name.to_owned(), Value::Null)));
    Value::Object(members)
}
