//! Secrets of integrations in form files: `{ env: NAME }` is replaced by the variable's value when the form is sent.

use crate::cli::environment::Environment;
use crate::cli::input::document::Document;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::integrations;
use crate::domain::integration::secret_members::{env, visit_secrets};
use crate::domain::json::Value;

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
    ) -> Result<Option<Value>, CliError> {
        let Some(list) = self.value.get("integrations") else { return Ok(None) };
        let names = integrations::authoring(list);
        let stored_variable = |pointer: &str| {
            let (index, member) = pointer.trim_start_matches('/').split_once('/')?;
            let name = names.pointer(&format!("/{index}/name"))?.as_str()?;
            env(integrations::find(stored, name)?.pointer(&format!("/{member}"))?)
        };
        self.with_values(list, "/integrations", stored_variable, environment).map(Some)
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
        let mut warnings = Vec::new();
        visit_secrets(&mut list, |member| {
            let name = member.pointer.rsplit('/').next().unwrap_or_default();
            let (rank, warning) = match member.env() {
                Some(variable) if environment.get(variable).is_none() => {
                    (0, format!("environment variable `{variable}` is not set here"))
                }
                None if member.is_literal() => {
                    (1, format!("the text of `{name}` is in the file: {{ env: NAME }} keeps it out"))
                }
                None if member.value.get("set").is_some() => {
                    (2, format!("the value of `{name}` is not in the file: a new form needs {{ env: NAME }}"))
                }
                _ => return,
            };
            let place = self.place(&format!("/integrations{}", member.pointer));
            warnings.push((rank, format!("{place}: {warning}")));
        });
        warnings.sort_by_key(|(rank, _)| *rank);
        warnings.into_iter().map(|(_, warning)| warning).collect()
    }

    fn unset_variable(&self, pointer: &str, name: &str) -> Diagnostic {
        let message = format!("environment variable `{name}` is not set");
        let mut problem = self.problem(pointer, "unset_variable", message);
        problem.location.iter_mut().for_each(|location| location.label = Some("not set"));
        problem.help(Some(format!("set it before the command: export {name}=…")))
    }

    /// Returns file and line of the value at `pointer`.
    pub(super) fn place(&self, pointer: &str) -> String {
        let span = self.span(pointer, false).unwrap_or_default();
        format!("{}:{}", self.file, self.location(span).line_and_column().0)
    }
}
