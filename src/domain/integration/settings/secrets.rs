//! Parsing of secrets: a new value, the stored one, or none.

use super::read::Reader;
use super::{SIGNING_SECRET, SecretField};
use crate::domain::integration::spec::{Check, ensure};
use crate::domain::json::{Value, join};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation, shortened};
use crate::secret::Secret;

/// Maximum bytes of a secret.
const MAX_SECRET: usize = 4_096;

/// Maximum characters of the name of an environment variable.
const MAX_ENV: usize = 128;

/// A secret as sent.
pub(super) enum SecretInput {
    /// Left out, or sent back as it was shown: the stored one stays.
    Keep,
    /// `null`.
    Remove,
    Set {
        value: Secret<String>,
        /// The environment variable that it was taken from.
        env: Option<String>,
    },
}

#[derive(Clone, Copy)]
pub(super) struct SecretContext<'a> {
    /// The stored member.
    pub field: &'a str,
    /// The member's name in error messages.
    pub name: &'a str,
    pub pointer: &'a str,
    pub check: Check,
}

impl Reader<'_, '_, '_> {
    /// Reads a secret: text, or an object with `value`, `env`, or what readers are shown.
    pub(super) fn read_secret_input(
        &mut self,
        value: Option<&Value>,
        place: SecretContext<'_>,
    ) -> Option<SecretInput> {
        match value {
            None => Some(self.keep(place)),
            Some(Value::Null) => Some(SecretInput::Remove),
            Some(Value::String(text)) => self.accept(text, place.pointer, None, place),
            Some(object @ Value::Object(_)) => self.read_secret_object(object, place),
            Some(other) => {
                let wanted = "text or an object with `value`";
                self.fields.violations.push(Violation::wrong_type(place.pointer, place.name, wanted, other));
                None
            }
        }
    }

    fn read_secret_object(&mut self, object: &Value, place: SecretContext<'_>) -> Option<SecretInput> {
        let what = format!("`{}`", place.name);
        let mut fields = Fields::open(object, place.pointer, what, self.fields.violations)?;
        let value = fields.value("value");
        let env = fields.text("env", MAX_ENV);
        let is_set = fields.flag("set").unwrap_or(false);
        if env.as_ref().is_some_and(|env| !is_variable_name(env)) {
            let message = "`env` must be the name of an environment variable, such as WEBHOOK_TOKEN";
            fields.refuse("env", Rule::InvalidRange, message);
        }
        fields.close(&[]);
        let pointer = join(place.pointer, "value");
        let violation = match value {
            Some(Value::String(text)) => return self.accept(text, &pointer, env, place),
            Some(other) => Violation::wrong_type(pointer, "value", "text", other),
            None if !is_set && env.is_none() => {
                Violation::new(pointer, Rule::MissingField, "`value` is missing")
            }
            None => {
                self.require_stored(env.as_deref(), place);
                return Some(self.keep(place));
            }
        };
        self.fields.violations.push(violation);
        None
    }

    fn accept(
        &mut self,
        text: &str,
        pointer: &str,
        env: Option<String>,
        SecretContext { name, check, .. }: SecretContext<'_>,
    ) -> Option<SecretInput> {
        let (rule, message) = if text.trim().is_empty() {
            (Rule::Empty, format!("`{name}` must not be empty"))
        } else if text.len() > MAX_SECRET {
            (Rule::TooLong, format!("`{name}` has {} bytes, {MAX_SECRET} are allowed", text.len()))
        } else if let Err(message) = check(text) {
            (Rule::InvalidRange, format!("`{name}` {message}"))
        } else {
            return Some(SecretInput::Set { value: Secret::new(text.to_owned()), env });
        };
        self.fields.violations.push(Violation::new(pointer, rule, message));
        None
    }

    /// Keeps the stored secret. Reports that it must be sent again if a URL leads to another server.
    fn keep(&mut self, SecretContext { field, name, pointer, .. }: SecretContext<'_>) -> SecretInput {
        if let Some(url) = self.moved
            && self.is_stored(field)
        {
            let message = format!("`{name}` must be sent again: `{url}` leads to another host");
            let without = if name == SIGNING_SECRET { "for a new one" } else { "to remove it" };
            let violation = Violation::new(pointer, Rule::SecretRequired, message);
            self.fields.violations.push(violation.help(format!("send its value, or null {without}")));
        }
        SecretInput::Keep
    }

    pub(super) fn is_stored(&self, field: &str) -> bool {
        self.stored.is_some_and(|stored| stored.secret(field).is_some())
    }

    /// Reports that no secret is stored, or none from the variable `env`.
    fn require_stored(
        &mut self,
        env: Option<&str>,
        SecretContext { field, name, pointer, .. }: SecretContext<'_>,
    ) {
        let stored = self.stored.and_then(|stored| stored.secret(field));
        let is_kept = |stored: &SecretField| env.is_none_or(|env| stored.env.as_deref() == Some(env));
        if self.input.is_lint || stored.is_some_and(is_kept) {
            return;
        }
        let message = match env {
            Some(env) => format!("`{name}` has no stored value from the variable `{}`", shortened(env)),
            None => format!("`{name}` has no stored value"),
        };
        let violation = Violation::new(pointer, Rule::SecretRequired, message);
        self.fields.violations.push(violation.help("send its `value`; the server does not read variables"));
    }

    /// Stores the secret that `input` leaves; returns whether there is one. A value equal to the stored one is not sealed
    /// again, so that sending it changes nothing.
    pub(super) fn store_secret(&mut self, field: &str, input: SecretInput) -> bool {
        let stored = self.stored.and_then(|stored| stored.secret(field));
        let secret = match input {
            SecretInput::Keep => stored.cloned(),
            SecretInput::Remove => None,
            SecretInput::Set { value, env } => {
                let is_same = |stored: &&SecretField| {
                    self.sealer.open(field, &stored.sealed).is_ok_and(|old| old == value)
                };
                let sealed = stored.filter(is_same).map(|stored| stored.sealed.clone());
                let sealed =
                    sealed.unwrap_or_else(|| self.sealer.seal(field, &value, self.input.context.random));
                Some(SecretField { sealed, env })
            }
        };
        let is_set = secret.is_some();
        self.settings.secrets.extend(secret.map(|secret| (field.to_owned(), secret)));
        is_set
    }
}

fn is_variable_name(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_valid) && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// Checks that a header can hold `value`: printable ASCII without spaces at the ends.
pub(super) fn check_header_text(value: &str) -> Result<(), String> {
    let is_valid = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    ensure(is_valid, "must be printable ASCII, without spaces at the ends")
}

/// Checks that `token` can be sent as a bearer token (RFC 6750 §2.1), and nothing beside it.
pub(in crate::domain::integration) fn check_bearer_token(token: &str) -> Result<(), String> {
    ensure(token.bytes().all(|byte| byte.is_ascii_graphic()), "must be printable ASCII without spaces")
}
