//! Integrations in authoring form: with names, without defaults, and with `{ env: NAME }` for secrets.

use crate::domain::integration::IntegrationType;
use crate::domain::integration::secret_members::{env, type_of, visit_secrets};
use crate::domain::integration::spec::Need;
use crate::domain::json::{self, Value};

/// Members that only the server sets.
const SET_BY_SERVER: [&str; 4] = ["id", "health", "created_at", "updated_at"];

/// Members of all types, and one that may be empty, with their default as JSON.
const DEFAULTS: [(&str, &str); 3] =
    [("enabled", "true"), ("events", r#"["submission.completed"]"#), ("headers", "{}")];

/// Returns a list of integrations, from a file or the server, in authoring form. Anything but a list of objects is
/// returned unchanged.
pub fn authoring(list: &Value) -> Value {
    let mut list = with_names(list);
    visit_secrets(&mut list, |member| {
        if let Some(name) = member.env() {
            *member.value = Value::Object(vec![("env".to_owned(), name.into())]);
        } else if member.value.get("set") == Some(&Value::Bool(true)) {
            *member.value = set_secret();
        }
    });
    if let Value::Array(items) = &mut list {
        for item in items {
            let kind = type_of(item);
            if let Value::Object(members) = item {
                members.retain(|(name, value)| !is_implied(kind, name, value));
            }
        }
    }
    list
}

/// Whether the member is the same without being written: set by the server, a default, or a signing secret, which is kept, or
/// made for a new integration.
fn is_implied(kind: Option<IntegrationType>, name: &str, value: &Value) -> bool {
    let own = kind.and_then(|kind| match kind.spec().member(name)?.need {
        Need::Default(text) => Some(text),
        Need::Required | Need::Optional => None,
    });
    let common = DEFAULTS.iter().find(|(other, _)| *other == name).map(|(_, text)| *text);
    let default = own.or(common).and_then(|text| json::parse(text).ok());
    SET_BY_SERVER.contains(&name)
        || default.as_ref() == Some(value)
        || (name == "secret" && *value == set_secret())
}

/// Creates a secret as it is shown if its value is in no variable.
pub fn set_secret() -> Value {
    Value::Object(vec![("set".to_owned(), Value::Bool(true))])
}

/// Returns the list with the names that the server would give.
fn with_names(list: &Value) -> Value {
    let Value::Array(items) = list else { return list.clone() };
    let mut taken: Vec<String> =
        items.iter().filter_map(|item| item.get("name")?.as_str()).map(str::to_owned).collect();
    let mut named = |item: &Value| {
        let (Value::Object(members), None) = (item, item.get("name")) else { return item.clone() };
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let numbered = (2..).map(|number| format!("{kind}-{number}"));
        let name = std::iter::once(kind.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = name.unwrap_or(kind);
        taken.push(name.clone());
        let name = ("name".to_owned(), Value::String(name));
        Value::Object([name].into_iter().chain(members.iter().cloned()).collect())
    };
    Value::Array(items.iter().map(&mut named).collect())
}

/// Finds the integration `name` in a list.
pub fn find<'a>(list: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let mut items = list?.as_array()?.iter();
    items.find(|item| item.get("name").and_then(Value::as_str) == Some(name))
}

/// Members that say where an integration sends to; the first one that is set counts.
const TARGETS: [&str; 8] =
    ["url", "path", "to", "to_question", "chat_id", "room_id", "spreadsheet_id", "server"];

/// Returns a short description: `webhook https://example.com/hook`.
pub fn describe(integration: &Value) -> String {
    let kind = integration.get("type").and_then(Value::as_str).map(str::to_owned);
    kind.into_iter().chain(target(integration)).collect::<Vec<_>>().join(" ")
}

/// Returns where an integration sends to, without secrets: an address, a file, the variable of a secret URL.
pub fn target(integration: &Value) -> Option<String> {
    let text = |name: &&str| {
        let text = target_text(name, integration.get(name)?)?;
        Some(text).filter(|text| !text.is_empty())
    };
    TARGETS.iter().find_map(text)
}

fn target_text(name: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(match name {
            "to_question" => format!("the answer to {text}"),
            "server" => host(text).to_owned(),
            _ => text.clone(),
        }),
        Value::Array(items) => Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
        Value::Object(_) => Some(format!("from {}", env(value)?)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Returns the host and port of a URL.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{authoring, describe};
    use crate::domain::json;

    #[test]
    fn authoring_form_is_what_an_author_would_write() {
        let shown = r#"[
            {"id":"int_1","name":"crm","type":"webhook","enabled":true,"events":["submission.completed"],"url":"https://a/b",
             "payload":"full","secret":{"set":true},"headers":{"X-Key":{"set":true,"env":"KEY"},"X-A":"b"},
             "bearer_token":{"set":true},"when":{"env":"x"},"health":{},"created_at":"","updated_at":""},
            {"name":"webhook","type":"webhook","payload":"thin","enabled":false,"secret":{"set":true,"env":"S"}}
        ]"#;
        let expected = r#"[{"name":"crm","type":"webhook","url":"https://a/b","headers":{"X-Key":{"env":"KEY"},"X-A":"b"},"bearer_token":{"set":true},"when":{"env":"x"}},{"name":"webhook","type":"webhook","payload":"thin","enabled":false,"secret":{"env":"S"}}]"#;
        assert_eq!(authoring(&json::parse(shown).unwrap()).to_string(), expected);
    }

    #[test]
    fn a_description_has_the_target_but_no_template_and_no_secret() {
        for (integration, expected) in [
            (r#"{"type":"webhook","url":"https://a/b"}"#, "webhook https://a/b"),
            (r#"{"type":"csv_file","path":"lunch.csv"}"#, "csv_file lunch.csv"),
            (r#"{"type":"email","to":["a@b.org","c@d.org"],"subject":"Hi"}"#, "email a@b.org, c@d.org"),
            (r#"{"type":"email","to_question":"mail","subject":"Hi"}"#, "email the answer to mail"),
            (r#"{"type":"slack","url":{"set":true,"env":"S"},"title":"{{ form.title }}"}"#, "slack from S"),
            (r#"{"type":"discord","title":"{{ form.title }}","url":{"env":"S"}}"#, "discord from S"),
            (r#"{"type":"teams","title":"{{ form.title }}","url":{"set":true}}"#, "teams"),
            (
                r#"{"type":"telegram","token":{"set":true},"server":"https://a","chat_id":"-100"}"#,
                "telegram -100",
            ),
            (r#"{"type":"matrix","server":"https://a.org","room_id":"!r:a.org"}"#, "matrix !r:a.org"),
            (
                r#"{"type":"ntfy","server":"https://ntfy.sh:8443/a","topic":{"set":true}}"#,
                "ntfy ntfy.sh:8443",
            ),
            (r#"{"type":"google_sheets","spreadsheet_id":"1AbC","sheet":"S"}"#, "google_sheets 1AbC"),
            (r#"{"type":"from_the_future","url":"https://a"}"#, "from_the_future https://a"),
        ] {
            assert_eq!(describe(&json::parse(integration).unwrap()), expected);
        }
    }

    #[test]
    fn names_are_those_that_the_server_gives() {
        let list = r#"[{"type":"webhook"},{"type":"csv_file"},{"type":"webhook"},{"name":"webhook-2"}]"#;
        let named = authoring(&json::parse(list).unwrap());
        let names: Vec<_> = named
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item.get("name").unwrap().as_str().unwrap())
            .collect();
        assert_eq!(names, ["webhook", "csv_file", "webhook-3", "webhook-2"]);
    }
}
