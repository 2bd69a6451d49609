//! Where the secrets of an integration are, for those that show, read or write one as JSON.

use std::collections::BTreeSet;

use super::IntegrationType;
use super::spec::Member;
use crate::domain::json::{Value, join};

/// Headers whose texts are secrets, in lower case.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "x-api-key"];

/// Whether the text of a member is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    Open,
    /// May be secret: a header, or, if the type is not known, a member that is secret in some types.
    Possible,
    Secret,
}

/// A member of an integration, or one of its headers.
#[derive(Debug)]
pub struct SecretMember<'a> {
    /// JSON pointer within what is visited: `/headers/X-Key`, in a list `/0/headers/X-Key`.
    pub pointer: String,
    pub secrecy: Secrecy,
    pub value: &'a mut Value,
}

impl SecretMember<'_> {
    /// The environment variable that the value comes from.
    pub fn env(&self) -> Option<&str> {
        env(self.value)
    }

    /// Whether the text of the secret is written here.
    pub fn is_literal(&self) -> bool {
        match &*self.value {
            Value::String(_) => self.secrecy == Secrecy::Secret,
            value => value.get("value").is_some_and(|value| *value != Value::Null),
        }
    }
}

/// Returns the environment variable that a secret comes from.
pub fn env(secret: &Value) -> Option<&str> {
    matches!(secret, Value::Object(_)).then(|| secret.get("env")?.as_str())?
}

/// Calls `visit` with each member and header of an integration, or of those in a list, that may be a secret or an object in
/// place of one.
pub fn visit_secrets(integrations: &mut Value, mut visit: impl FnMut(SecretMember<'_>)) {
    match integrations {
        Value::Array(items) => {
            let numbered = items.iter_mut().enumerate();
            numbered.for_each(|(index, item)| visit_one(item, &format!("/{index}"), &mut visit));
        }
        one => visit_one(one, "", &mut visit),
    }
}

fn visit_one(integration: &mut Value, base: &str, visit: &mut impl FnMut(SecretMember<'_>)) {
    let kind = type_of(integration);
    let Value::Object(members) = integration else { return };
    for (name, value) in members {
        let pointer = join(base, name);
        match value {
            Value::Object(headers) if name == "headers" => {
                for (header, value) in headers {
                    let secrecy = if is_credential(header) { Secrecy::Secret } else { Secrecy::Possible };
                    visit(SecretMember { pointer: join(&pointer, header), secrecy, value });
                }
            }
            _ if name == "when" || name == "fields" => {}
            value => visit(SecretMember { pointer, secrecy: secrecy(kind, name), value }),
        }
    }
}

/// Whether the text of the header `name` is a secret.
fn is_credential(name: &str) -> bool {
    CREDENTIALS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns whether the member `name` is a secret in the type, or in all types that have it if the type is not known.
pub fn secrecy(kind: Option<IntegrationType>, name: &str) -> Secrecy {
    let types = IntegrationType::ALL.into_iter().filter(|one| kind.is_none_or(|kind| kind == *one));
    let members = types.filter_map(|one| one.spec().member(name));
    let (secret, open): (Vec<&Member>, Vec<&Member>) = members.partition(|member| member.is_secret());
    match (secret.is_empty(), open.is_empty()) {
        (true, _) => Secrecy::Open,
        (false, true) => Secrecy::Secret,
        (false, false) => Secrecy::Possible,
    }
}

/// Returns the names of the members that are secrets in the type, or in some type if it is not known.
pub fn secret_names(kind: Option<IntegrationType>) -> BTreeSet<&'static str> {
    let names = IntegrationType::all_members().map(|member| member.name);
    names.filter(|name| secrecy(kind, name) != Secrecy::Open).collect()
}

/// Whether `name` is that of a secret in some type of integration.
pub fn is_secret_name(name: &str) -> bool {
    let mut members = IntegrationType::all_members();
    is_credential(name) || members.any(|member| member.name == name && member.is_secret())
}

/// Returns the type of the integration `value`, if it is known.
pub fn type_of(value: &Value) -> Option<IntegrationType> {
    IntegrationType::parse(value.get("type")?.as_str()?)
}
