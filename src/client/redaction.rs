//! Hides the secrets of integrations in bodies that are shown to the user.

use serde_json::{Value, json};

/// Redacts secrets of integrations in the body of a request to `path`, or of its response.
pub(super) fn redact_secrets(path: &str, body: &str) -> String {
    let is_integration = path.contains("/integrations");
    if !is_integration && !body.contains("\"integrations\"") {
        return body.to_owned();
    }
    let Ok(mut value) = serde_json::from_str::<Value>(body) else { return "(secret)".to_owned() };
    if is_integration {
        redact(&mut value);
    }
    value.get_mut("integrations").and_then(Value::as_array_mut).into_iter().flatten().for_each(redact);
    value.to_string()
}

/// Redacts the secrets of one integration.
fn redact(integration: &mut Value) {
    let Some(members) = integration.as_object_mut() else { return };
    for (name, member) in members {
        match (name.as_str(), member) {
            ("headers", Value::Object(headers)) => headers.values_mut().for_each(redact_value),
            ("secret" | "bearer_token", text @ Value::String(_)) => *text = json!("(secret)"),
            ("secret" | "bearer_token", other) => redact_value(other),
            _ => {}
        }
    }
}

/// Redacts the member `value` of a secret.
fn redact_value(secret: &mut Value) {
    if let Some(value) = secret.get_mut("value") {
        *value = json!("(secret)");
    }
}

#[cfg(test)]
mod tests {
    use super::redact_secrets;

    #[test]
    fn secrets_of_integrations_are_hidden_and_nothing_else_is_changed() {
        let integration = r#"{"name":"hook","secret":"KEY","bearer_token":{"env":"E","value":"KEY"},"headers":{"A":"plain","B":{"value":"KEY"}}}"#;
        let form = format!(r#"{{"title":"Visit","integrations":[{integration}]}}"#);
        for (path, body) in [
            ("/api/v1/forms/visit/integrations", integration),
            ("/api/v1/forms/visit/integrations/hook/rotate-secret", r#"{"secret":"KEY"}"#),
            ("/api/v1/forms", &form),
            ("/api/v1/forms/visit/integrations", r#"{"secret":"KEY"#),
        ] {
            let shown = redact_secrets(path, body);
            assert!(!shown.contains("KEY") && shown.contains("(secret)"), "{shown}");
        }
        assert!(redact_secrets("/api/v1/forms", &form).contains("plain"));
        let answers = r#"{"answers":{"secret":"a", "n":1.10}}"#;
        assert_eq!(redact_secrets("/api/v1/forms/visit/submissions", answers), answers);
    }
}
