//! Secrets in a definition: a new value, the stored one, or none.

use super::DefinitionContext;
use crate::domain::integration::secret_field::SecretField;
use crate::domain::integration::settings::SIGNING_SECRET;
use crate::domain::json::{Value, join};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation, shortened};
use crate::id::IntegrationId;
use crate::secret::Secret;
use crate::vault::SecretContext;

/// Maximum bytes of a secret.
const MAX_SECRET: usize = 4_096;

/// Maximum characters of the name of an environment variable.
const MAX_ENV: usize = 128;

/// A secret as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::domain::integration) enum SecretInput {
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

/// How to read a secret.
#[derive(Clone, Copy)]
pub(in crate::domain::integration) struct SecretRules<'a> {
    pub pointer: &'a str,
    pub name: &'a str,
    pub stored: Option<&'a SecretField>,
    /// The member whose URL leads to another server than the stored one.
    pub moved: Option<&'a str>,
    /// Whether a secret must be sent if none is stored under that name: not when the stored ones are unknown.
    pub is_checked: bool,
    /// Explains what is wrong with a value, without quoting it.
    pub check: fn(&str) -> Result<(), String>,
}

impl SecretInput {
    /// Reads a secret, `None` if it is left out: text, or an object with `value`, `env`, or what readers are shown.
    pub(in crate::domain::integration) fn read(
        value: Option<&Value>,
        rules: SecretRules<'_>,
        violations: &mut Vec<Violation>,
    ) -> Option<Self> {
        let input = match value {
            None => Some(Self::Keep),
            Some(Value::Null) => Some(Self::Remove),
            Some(Value::String(text)) => {
                let value = rules.accept(text, rules.pointer, violations)?;
                Some(Self::Set { value, env: None })
            }
            Some(object @ Value::Object(_)) => Self::read_object(object, rules, violations),
            Some(other) => {
                let wanted = "text or an object with `value`";
                violations.push(Violation::wrong_type(rules.pointer, rules.name, wanted, other));
                None
            }
        };
        if input == Some(Self::Keep) {
            rules.refuse_moved(violations);
        }
        input
    }

    fn read_object(object: &Value, rules: SecretRules<'_>, violations: &mut Vec<Violation>) -> Option<Self> {
        let what = format!("`{}`", rules.name);
        let mut fields = Fields::open(object, rules.pointer, what, violations)?;
        let value = fields.value("value");
        let env = fields.text("env", MAX_ENV);
        let is_set = fields.flag("set").unwrap_or(false);
        if env.as_ref().is_some_and(|env| !is_variable_name(env)) {
            let message = "`env` must be the name of an environment variable, such as WEBHOOK_TOKEN";
            fields.refuse("env", Rule::InvalidRange, message);
        }
        fields.close(&[]);
        match value {
            Some(Value::String(text)) => {
                let value = rules.accept(text, &join(rules.pointer, "value"), violations)?;
                Some(Self::Set { value, env })
            }
            Some(other) => {
                let pointer = join(rules.pointer, "value");
                violations.push(Violation::wrong_type(pointer, "value", "text", other));
                None
            }
            None if !is_set && env.is_none() => {
                let message = "`value` is missing";
                violations.push(Violation::new(join(rules.pointer, "value"), Rule::MissingField, message));
                None
            }
            None => {
                rules.require_stored(env.as_deref(), violations);
                Some(Self::Keep)
            }
        }
    }
}

impl SecretRules<'_> {
    fn accept(&self, text: &str, pointer: &str, violations: &mut Vec<Violation>) -> Option<Secret<String>> {
        let (rule, message) = if text.trim().is_empty() {
            (Rule::Empty, format!("`{}` must not be empty", self.name))
        } else if text.len() > MAX_SECRET {
            (Rule::TooLong, format!("`{}` has {} bytes, {MAX_SECRET} are allowed", self.name, text.len()))
        } else if let Err(message) = (self.check)(text) {
            (Rule::InvalidRange, format!("`{}` {message}", self.name))
        } else {
            return Some(Secret::new(text.to_owned()));
        };
        violations.push(Violation::new(pointer, rule, message));
        None
    }

    /// Reports that a stored secret must be sent again, because a URL leads to another server.
    fn refuse_moved(&self, violations: &mut Vec<Violation>) {
        let Some(url) = self.moved.filter(|_| self.is_checked && self.stored.is_some()) else { return };
        let message = format!("`{}` must be sent again: `{url}` leads to another host", self.name);
        let without = if self.name == SIGNING_SECRET { "for a new one" } else { "to remove it" };
        let violation = Violation::new(self.pointer, Rule::SecretRequired, message);
        violations.push(violation.help(format!("send its value, or null {without}")));
    }

    /// Reports that no secret is stored, or none from the variable `env`.
    fn require_stored(&self, env: Option<&str>, violations: &mut Vec<Violation>) {
        let is_kept = |stored: &SecretField| env.is_none_or(|env| stored.env.as_deref() == Some(env));
        if !self.is_checked || self.stored.is_some_and(is_kept) {
            return;
        }
        let message = match env {
            Some(env) => {
                format!("`{}` has no stored value from the variable `{}`", self.name, shortened(env))
            }
            None => format!("`{}` has no stored value", self.name),
        };
        let violation = Violation::new(self.pointer, Rule::SecretRequired, message);
        violations.push(violation.help("send its `value`; the server does not read variables"));
    }
}

fn is_variable_name(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_valid) && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// Checks that a header can hold `value`: printable ASCII without spaces at the ends.
pub(in crate::domain::integration) fn check_header_text(value: &str) -> Result<(), String> {
    if value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value {
        return Ok(());
    }
    Err("must be printable ASCII, without spaces at the ends".to_owned())
}

/// Seals the secrets of one integration.
#[derive(Clone, Copy)]
pub(in crate::domain::integration) struct Sealer<'a> {
    pub integration: IntegrationId,
    pub context: DefinitionContext<'a>,
}

impl Sealer<'_> {
    /// Returns what is stored after `input`. A value equal to the stored one is not sealed again, so that sending it changes
    /// nothing.
    pub(in crate::domain::integration) fn apply(
        &self,
        field: &str,
        input: SecretInput,
        stored: Option<&SecretField>,
    ) -> Option<SecretField> {
        match input {
            SecretInput::Keep => stored.cloned(),
            SecretInput::Remove => None,
            SecretInput::Set { value, env } => {
                let same = stored.filter(|stored| self.opens_to(field, stored, &value));
                Some(match same {
                    Some(same) => SecretField { env, ..same.clone() },
                    None => self.seal(field, value.reveal(), env),
                })
            }
        }
    }

    /// Whether the stored value of `field` was sealed with this master key.
    pub(in crate::domain::integration) fn can_unseal(&self, field: &str, stored: &SecretField) -> bool {
        self.context.vault.unseal(self.place(field), &stored.sealed).is_ok()
    }

    pub(in crate::domain::integration) fn seal(
        &self,
        field: &str,
        value: &str,
        env: Option<String>,
    ) -> SecretField {
        let sealed = self.context.vault.seal(self.place(field), value, self.context.random);
        SecretField { sealed, env }
    }

    fn opens_to(&self, field: &str, stored: &SecretField, value: &Secret<String>) -> bool {
        self.context.vault.unseal(self.place(field), &stored.sealed).is_ok_and(|opened| opened == *value)
    }

    fn place<'p>(&self, field: &'p str) -> SecretContext<'p> {
        SecretContext { workspace: self.context.workspace, integration: self.integration, field }
    }
}

/// Checks that `token` can be sent as a bearer token (RFC 6750 §2.1), and nothing beside it.
pub(in crate::domain::integration) fn check_bearer_token(token: &str) -> Result<(), String> {
    if token.bytes().all(|byte| matches!(byte, b'!'..=b'~')) {
        return Ok(());
    }
    Err("must be printable ASCII without spaces".to_owned())
}
