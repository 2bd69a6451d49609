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
        // A header given as plain text is not a secret.
        let is_shown = matches!(member.value, Value::String(_)) && member.pointer.contains("/headers/");
        let is_set = member.value.get("set") == Some(&Value::Bool(true));
        if let Some(name) = member.env() {
            *member.value = Value::Object(vec![("env".to_owned(), name.into())]);
        } else if is_set || (member.is_literal() && !is_shown) {
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
fn set_secret() -> Value {
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
