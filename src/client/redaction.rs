//! Hides the secrets of integrations in bodies that are shown to the user.

use crate::domain::integration::secret_members::{Secrecy, visit_secrets};
use crate::domain::json::{self, Value};

/// Shown in place of a secret.
const HIDDEN: &str = "(secret)";

/// Redacts secrets of integrations in the body of a request to `path`, or of its response.
pub(super) fn redact_secrets(path: &str, body: &str) -> String {
    let is_integration = path.contains("/integrations");
    if !is_integration && !body.contains("\"integrations\"") {
        return body.to_owned();
    }
    let Ok(mut value) = json::parse(body) else { return HIDDEN.to_owned() };
    if is_integration {
        redact(&mut value);
    }
    value.get_mut("integrations").into_iter().for_each(redact);
    value.to_string()
}

/// Redacts what is or may be a secret of an integration, or of those in a list.
fn redact(integrations: &mut Value) {
    visit_secrets(integrations, |member| match member.value {
        Value::String(text) if member.secrecy != Secrecy::Open => HIDDEN.clone_into(text),
        secret => secret.get_mut("value").into_iter().for_each(|value| *value = HIDDEN.into()),
    });
}
