//! Secrets of integrations in form files: `{ env: NAME }` is replaced by the variable's value when the form is sent.

use crate::cli::environment::Environment;
use crate::cli::input::document::Document;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::integrations::{self, set_secret};
use crate::domain::integration::secret_members::{env, visit_secrets};
use crate::domain::json::Value;

/// The integrations of a file.
#[derive(Debug)]
pub struct FileIntegrations {
    /// The members to send, with the values of variables.
    pub sent: Value,
    /// In authoring form, without values.
    pub compared: Value,
}

impl Document {
    /// Returns the integrations with the values of variables; `None` if the file has none. `stored` are those of the form
    /// now: a secret from the same variable is kept if the variable is not set.
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
        let stored_variable = |pointer: &str| {
            let (index, member) = pointer.trim_start_matches('/').split_once('/')?;
            let name = names.pointer(&format!("/{index}/name"))?.as_str()?;
            env(integrations::find(stored, name)?.pointer(&format!("/{member}"))?)
        };
        let sent = self.with_values(list, "/integrations", stored_variable, environment)?;
        let mut compared = list.clone();
        visit_secrets(&mut compared, |member| {
            let is_shown = matches!(member.value, Value::String(_)) && member.pointer.contains("/headers/");
            if member.env().is_none() && member.is_literal() && !is_shown {
                *member.value = set_secret();
            }
        });
        Ok(Some(FileIntegrations { sent, compared: integrations::authoring(&compared) }))
    }

    /// Returns the document, which is an integration, with the values of variables.
    ///
    /// # Errors
    /// If a variable is not set, with all of them.
    pub fn entry_with_secrets(&self, environment: &Environment) -> Result<Value, CliError> {
        self.with_values(&self.value, "", |_| None, environment)
    }

    /// Returns `integrations`, which are at `base` in the file, with the values of variables. A secret that has the variable in
    /// `stored_variable` is kept if the variable is not set.
    fn with_values<'a>(
        &self,
        integrations: &Value,
        base: &str,
        stored_variable: impl Fn(&str) -> Option<&'a str>,
        environment: &Environment,
    ) -> Result<Value, CliError> {
        let (mut sent, mut unset) = (integrations.clone(), Vec::new());
        visit_secrets(&mut sent, |member| {
            let Some(name) = member.env().map(str::to_owned) else { return };
            match environment.get(&name) {
                Some(value) => {
                    let members = [("value", value.to_owned()), ("env", name)];
                    let members = members.map(|(name, text)| (name.to_owned(), Value::String(text)));
                    *member.value = Value::Object(members.into());
                }
                None if stored_variable(&member.pointer) == Some(&name) => {}
                None => unset.push(self.unset_variable(&format!("{base}{}/env", member.pointer), &name)),
            }
        });
        if unset.is_empty() { Ok(sent) } else { Err(Report::of_file(&self.file, unset).into()) }
    }

    /// Returns a warning for each variable that is not set, then for each secret that is written in the file, then for each
    /// that is written as it is shown.
    pub fn secret_warnings(&self, environment: &Environment) -> Vec<String> {
        let mut list = self.value.get("integrations").cloned().unwrap_or(Value::Null);
        let (mut unset, mut literals, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        visit_secrets(&mut list, |member| {
            let place = || self.place(&format!("/integrations{}", member.pointer));
            let name = member.pointer.rsplit('/').next().unwrap_or_default();
            match member.env() {
                Some(variable) if environment.get(variable).is_none() => {
                    unset.push(format!("{}: environment variable `{variable}` is not set here", place()));
                }
                None if member.is_literal() => literals.push(format!(
                    "{}: the text of `{name}` is in the file: {{ env: NAME }} keeps it out",
                    place()
                )),
                None if member.value.get("set").is_some() => shown.push(format!(
                    "{}: the value of `{name}` is not in the file: a new form needs {{ env: NAME }}",
                    place()
                )),
                _ => {}
            }
        });
        [unset, literals, shown].concat()
    }

    fn unset_variable(&self, pointer: &str, name: &str) -> Diagnostic {
        let span = self.span(pointer, false);
        let location = span.map(|span| self.location(span, Some("not set"), None));
        let message = format!("environment variable `{name}` is not set");
        let help = Some(format!("set it before the command: export {name}=…"));
        Diagnostic { location, ..Diagnostic::new("unset_variable", message) }.help(help)
    }

    /// Returns file and line of the value at `pointer`.
    pub(super) fn place(&self, pointer: &str) -> String {
        let span = self.span(pointer, false).unwrap_or_default();
        format!("{}:{}", self.file, self.location(span, None, None).line_and_column().0)
    }
}
