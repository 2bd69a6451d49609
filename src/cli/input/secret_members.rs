//! Which members of an integration are secrets.

use crate::domain::integration::webhook::Webhook;
use crate::domain::json::Value;

/// Headers whose values are secrets, in lower case.
const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// All names in lower case that only secrets have.
pub const NAMES: [&str; 6] =
    [Webhook::SECRET, Webhook::BEARER_TOKEN, HEADERS[0], HEADERS[1], HEADERS[2], HEADERS[3]];

/// Whether the member at the path `names` is a secret, or part of one: `["headers", "Cookie"]`.
pub fn is_secret(names: &[&str]) -> bool {
    match names {
        ["headers", name, rest @ ..] => {
            HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)) || rest.first() == Some(&"value")
        }
        [name, ..] => Webhook::SECRETS.contains(name),
        [] => false,
    }
}

/// Whether the member at the path `names` can be set to a secret: any header can.
pub fn can_be_secret(names: &[&str]) -> bool {
    match names {
        ["headers", _] => true,
        [name] => Webhook::SECRETS.contains(name),
        _ => false,
    }
}

/// Returns the path of the first secret in `value`, which is the member at the path `names`.
pub fn find_secret(names: &[&str], value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        _ if is_secret(names) => Some(names.join(".")),
        Value::Object(members) if names == ["headers"] || matches!(names, ["headers", _]) => {
            members.iter().find_map(|(name, value)| find_secret(&[names, &[name]].concat(), value))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{can_be_secret, find_secret};
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
        ] {
            let names: Vec<_> = path.split('.').collect();
            let found = find_secret(&names, &json::parse(value).unwrap());
            assert_eq!(found.as_deref(), expected, "{path} {value}");
        }
        assert!(can_be_secret(&["secret"]) && can_be_secret(&["headers", "X-A"]));
        assert!(!can_be_secret(&["url"]) && !can_be_secret(&["secret", "value"]));
    }
}
