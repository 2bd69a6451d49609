//! Which members of an integration are secrets.

use std::collections::BTreeSet;

use crate::domain::integration::IntegrationType;
use crate::domain::json::Value;

/// Headers whose values are secrets, in lower case.
const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// Whether `name`, in lower case, may be the name of a secret in some integration.
pub fn names() -> impl Iterator<Item = &'static str> {
    secrets_of(None).into_iter().chain(HEADERS)
}

/// Whether the member at the path `names` of an integration is a secret, or part of one: `["headers", "Cookie"]`. If the type
/// is not known, whether it is one in every type that has it.
pub fn is_secret(kind: Option<IntegrationType>, names: &[&str]) -> bool {
    match names {
        ["headers", name, rest @ ..] => {
            HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) || rest.first() == Some(&"value")
        }
        [name, ..] => is_secret_member(kind, name),
        [] => false,
    }
}

/// Whether the member `name` is a secret; if the type is not known, whether it is one in every type that has it.
pub fn is_secret_member(kind: Option<IntegrationType>, name: &str) -> bool {
    match kind {
        Some(kind) => kind.spec().member(name).is_some_and(|member| member.is_secret()),
        None => {
            let mut same = IntegrationType::all_members().filter(|member| member.name == name).peekable();
            same.peek().is_some() && same.all(|member| member.is_secret())
        }
    }
}

/// Whether the member at the path `names` can be set to a secret: any header can. If the type is not known, whether it can in
/// some type.
pub fn can_be_secret(kind: Option<IntegrationType>, path: &[&str]) -> bool {
    match path {
        ["headers", _] => true,
        [name] => secrets_of(kind).contains(name),
        _ => false,
    }
}

/// The members that are secrets in the type, or in some type.
pub fn secrets_of(kind: Option<IntegrationType>) -> BTreeSet<&'static str> {
    let types = IntegrationType::ALL.into_iter().filter(|one| kind.is_none_or(|kind| kind == *one));
    let members = types.flat_map(|one| one.spec().members);
    members.filter(|member| member.is_secret()).map(|member| member.name).collect()
}

/// Returns the path of the first secret in `value`, which is the member at the path `names`.
pub fn find_secret(kind: Option<IntegrationType>, names: &[&str], value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        _ if is_secret(kind, names) => Some(names.join(".")),
        Value::Object(members) if names == ["headers"] || matches!(names, ["headers", _]) => {
            members.iter().find_map(|(name, value)| find_secret(kind, &[names, &[name]].concat(), value))
        }
        _ => None,
    }
}

/// Returns the type of the integration `value`, if it is known.
pub fn type_of(value: &Value) -> Option<IntegrationType> {
    IntegrationType::parse(value.get("type")?.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::{can_be_secret, find_secret};
    use crate::domain::integration::IntegrationType;
    use crate::domain::json;

    #[test]
    fn secrets_are_members_some_headers_and_what_is_in_them() {
        for (path, value, expected) in [
            ("secret", r#""a""#, Some("secret")),
            ("secret", "null", None),
            ("bearer_token.value", r#""a""#, Some("bearer_token.value")),
            ("headers.authorization", r#""a""#, Some("headers.authorization")),
            ("headers", r#"{"X-A":"a","Cookie":"b"}"#, Some("headers.Cookie")),
            ("headers", r#"{"X-A":{"value":"a"}}"#, Some("headers.X-A.value")),
            ("headers.X-A", r#""a""#, None),
            ("when.secret", r#""a""#, None),
            ("url", r#""a""#, None),
        ] {
            let names: Vec<_> = path.split('.').collect();
            let found = find_secret(None, &names, &json::parse(value).unwrap());
            assert_eq!(found.as_deref(), expected, "{path} {value}");
        }
        let url = json::parse(r#""https://a/b""#).unwrap();
        assert_eq!(find_secret(Some(IntegrationType::Webhook), &["url"], &url), None);
        assert!(find_secret(Some(IntegrationType::Slack), &["url"], &url).is_some());
        for path in [&["secret"][..], &["headers", "X-A"], &["url"]] {
            assert!(can_be_secret(None, path), "{path:?}");
        }
        assert!(!can_be_secret(None, &["path"]) && !can_be_secret(None, &["secret", "value"]));
        assert!(!can_be_secret(Some(IntegrationType::Webhook), &["url"]));
    }
}
