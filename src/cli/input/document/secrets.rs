//! Secrets of integrations in form files: `{ env: NAME }` is replaced by the variable's value when the form is sent.

use crate::cli::environment::Environment;
use crate::cli::input::document::Document;
use crate::cli::input::secret_members::{is_secret, is_secret_member};
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::integrations::{self, env, visit_secrets};
use crate::domain::integration::IntegrationType;
use crate::domain::json::Value;

/// The integrations of a file.
#[derive(Debug)]
pub struct FileIntegrations {
    /// The members to send, with the values of variables.
    pub sent: Value,
    /// In authoring form. A secret from another variable than the stored one has the member `changed`.
    pub compared: Value,
}

/// Problems of the secrets of one file.
#[derive(Default)]
struct SecretLint {
    /// JSON pointers of `{ env: NAME }` whose variable is not set, with the name.
    unset: Vec<(String, String)>,
    /// JSON pointers of secrets written in the file.
    literals: Vec<String>,
    /// JSON pointers of `{ set: true }`, which is how a secret is shown.
    shown: Vec<String>,
}

impl Document {
    /// Returns the integrations with the values of variables; `None` if the file has none. `stored` are those of the form
    /// now: a secret from the same variable may be kept if the variable is not set.
    ///
    /// # Errors
    /// If a variable is not set, with all of them.
    pub fn integrations(
        &self,
        stored: Option<&Value>,
        environment: &Environment,
    ) -> Result<Option<FileIntegrations>, CliError> {
        let Some(list) = self.value.get("integrations") else { return Ok(None) };
        let names = integrations::authoring(list);
        let stored_secret = |pointer: &str| {
            let (index, member) = pointer.trim_start_matches('/').split_once('/')?;
            let name = names.pointer(&format!("/{index}/name"))?.as_str()?;
            integrations::find(stored, name)?.pointer(&format!("/{member}"))
        };
        let mut compared = list.clone();
        let sent = self.with_values(list, "/integrations", &stored_secret, environment)?;
        visit_secrets(&mut compared, &mut |kind, pointer, secret| {
            *secret = match (env(secret), &*secret) {
                (Some(name), _) => {
                    with_mark([("env", name.into())], is_same(stored_secret(pointer), Some(name)))
                }
                (None, Value::String(_)) if is_whole_secret(kind, pointer) => {
                    with_mark([("set", true.into())], is_same(stored_secret(pointer), None))
                }
                _ => return,
            };
        });
        Ok(Some(FileIntegrations { sent, compared: integrations::authoring(&compared) }))
    }

    /// Returns the document, which is an integration, with the values of variables.
    ///
    /// # Errors
    /// If a variable is not set, with all of them.
    pub fn entry_with_secrets(&self, environment: &Environment) -> Result<Value, CliError> {
        let list = Value::Array(vec![self.value.clone()]);
        let sent = self.with_values(&list, "", &|_| None, environment)?;
        Ok(sent.as_array().and_then(<[_]>::first).cloned().unwrap_or(Value::Null))
    }

    /// Returns `list`, which is at `base` in the file or whose only item is the file, with the values of variables. A secret
    /// that `stored_secret` has from the same variable may be kept if the variable is not set.
    fn with_values<'a>(
        &self,
        list: &Value,
        base: &str,
        stored_secret: &dyn Fn(&str) -> Option<&'a Value>,
        environment: &Environment,
    ) -> Result<Value, CliError> {
        let (mut sent, mut unset) = (list.clone(), Vec::new());
        visit_secrets(&mut sent, &mut |_, pointer, secret| {
            let Some(name) = env(secret).map(str::to_owned) else { return };
            match environment.get(&name) {
                Some(value) => *secret = object([("value", value.into()), ("env", Value::String(name))]),
                None if stored_secret(pointer).and_then(env) == Some(&name) => {}
                None => unset.push((pointer.to_owned(), name)),
            }
        });
        if unset.is_empty() {
            return Ok(sent);
        }
        let diagnostic = |(pointer, name): &(String, String)| {
            let pointer = if base.is_empty() { pointer.trim_start_matches("/0") } else { pointer };
            self.unset_variable(&format!("{base}{pointer}/env"), name)
        };
        Err(Report::of_file(&self.file, unset.iter().map(diagnostic).collect()).into())
    }

    /// Returns a warning for each variable that is not set, and for each secret that is written in the file.
    pub fn secret_warnings(&self, environment: &Environment) -> Vec<String> {
        let SecretLint { unset, literals, shown } = self.lint_secrets(environment);
        let unset = unset.into_iter().map(|(pointer, name)| {
            format!("{}: environment variable `{name}` is not set here", self.place(&pointer))
        });
        let literals = literals.into_iter().map(|pointer| {
            let (place, name) = (self.place(&pointer), last_name(&pointer));
            format!("{place}: the text of `{name}` is in the file: {{ env: NAME }} keeps it out")
        });
        let shown = shown.into_iter().map(|pointer| {
            let (place, name) = (self.place(&pointer), last_name(&pointer));
            format!("{place}: the value of `{name}` is not in the file: a new form needs {{ env: NAME }}")
        });
        unset.chain(literals).chain(shown).collect()
    }

    fn lint_secrets(&self, environment: &Environment) -> SecretLint {
        let mut lint = SecretLint::default();
        let mut list = self.value.get("integrations").cloned().unwrap_or(Value::Null);
        visit_secrets(&mut list, &mut |kind, pointer, secret| match (env(secret), &*secret) {
            (Some(name), _) if environment.get(name).is_none() => {
                lint.unset.push((pointer.to_owned(), name.to_owned()));
            }
            (None, secret) if is_literal(kind, pointer, secret) => lint.literals.push(pointer.to_owned()),
            (None, secret) if secret.get("set").is_some() => lint.shown.push(pointer.to_owned()),
            _ => {}
        });
        lint
    }

    fn unset_variable(&self, pointer: &str, name: &str) -> Diagnostic {
        let span = self.span(pointer, false);
        let location = span.map(|span| self.location(span, Some("not set"), None));
        let message = format!("environment variable `{name}` is not set");
        let help = Some(format!("set it before the command: export {name}=…"));
        Diagnostic { location, ..Diagnostic::new("unset_variable", message) }.help(help)
    }

    /// Returns file and line of the value at `pointer` in the list of integrations.
    fn place(&self, pointer: &str) -> String {
        let span = self.span(&format!("/integrations{pointer}"), false).unwrap_or_default();
        format!("{}:{}", self.file, self.location(span, None, None).line_and_column().0)
    }
}

fn last_name(pointer: &str) -> &str {
    pointer.rsplit('/').next().unwrap_or_default()
}

/// Whether the stored secret is from the variable `name`, or from none.
fn is_same(stored: Option<&Value>, name: Option<&str>) -> bool {
    stored.is_some_and(|stored| env(stored) == name)
}

/// Whether the server stores the member at `pointer` as a secret, also if it is sent as text.
fn is_whole_secret(kind: Option<IntegrationType>, pointer: &str) -> bool {
    matches!(pointer.split('/').collect::<Vec<_>>()[..], [_, _, member] if is_secret_member(kind, member))
}

/// Whether `secret`, the member at `pointer`, has the text of a secret.
fn is_literal(kind: Option<IntegrationType>, pointer: &str, secret: &Value) -> bool {
    let names: Vec<_> = pointer.split('/').skip(2).collect();
    matches!(secret, Value::String(_)) && is_secret(kind, &names) || secret.get("value").is_some()
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Creates an object, with `changed: true` unless `is_same`.
fn with_mark<const N: usize>(members: [(&str, Value); N], is_same: bool) -> Value {
    let members = members.into_iter().chain((!is_same).then_some(("changed", true.into())));
    Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect())
}
