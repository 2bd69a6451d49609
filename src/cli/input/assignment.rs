//! Parsing and applying `--set settings.max_responses=100`.

use crate::api::{Code, Problem};
use crate::cli::input::document;
use crate::cli::input::document::violations::{describe_violations, not_stored};
use crate::cli::output::exit::CliError;
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::{Rule, Violation, join};

/// A path within a form and its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    path: Vec<String>,
    /// The value as typed; empty removes the member.
    text: String,
    /// Whether the text is YAML, where `null` removes the member too; otherwise it is plain text.
    is_yaml: bool,
}

impl Setting {
    /// Parses `PATH=VALUE`.
    pub fn parse(argument: &str) -> Result<Self, String> {
        let (path, text) = argument.split_once('=').ok_or("expected PATH=VALUE")?;
        let path: Vec<_> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err("expected names with dots between them before the `=`".to_owned());
        }
        Ok(Self { path, text: text.to_owned(), is_yaml: true })
    }

    /// Creates a setting of the form's own member `name` to plain text.
    pub fn named(name: &str, text: &str) -> Self {
        Self { path: vec![name.to_owned()], text: text.to_owned(), is_yaml: false }
    }

    /// Returns `form` with the setting applied. Where the form expects text, the value is the text as typed.
    ///
    /// # Errors
    /// If the path names no question, or what it should remove is not a field of forms.
    pub fn apply(&self, form: &Value) -> Result<Value, CliError> {
        if self.text.is_empty() || (self.is_yaml && self.text == "null") {
            return self.removed_from(form);
        }
        let as_text = self.with(form, Some(Value::String(self.text.clone())))?;
        let as_yaml = match document::read_value(&self.text).filter(|_| self.is_yaml) {
            None => return Ok(as_text),
            // Only quoted text is YAML: otherwise ` #` would begin a comment.
            Some(Value::String(_)) if !self.text.starts_with(['"', '\'']) => return Ok(as_text),
            value => self.with(form, value)?,
        };
        let is_mistyped = |form: &Value| self.violation(form, Rule::TypeMismatch).is_some();
        Ok(if is_mistyped(&as_yaml) && !is_mistyped(&as_text) { as_text } else { as_yaml })
    }

    /// Returns `form` without what is at the path; nothing may be there if it is a field of forms.
    fn removed_from(&self, form: &Value) -> Result<Value, CliError> {
        let removed = self.with(form, None)?;
        if form.pointer(&self.pointer(form)).is_some() {
            return Ok(removed);
        }
        let nulled = self.with(form, Some(Value::Null))?;
        match self.violation(&nulled, Rule::UnknownField) {
            Some(unknown) => {
                let unknown = describe_violations(&nulled, &[unknown]);
                Err(not_stored(unknown, Problem::new(Code::ValidationFailed)))
            }
            None => Ok(removed),
        }
    }

    /// Returns the violation of `rule` at the path.
    fn violation(&self, form: &Value, rule: Rule) -> Option<Violation> {
        let pointer = self.pointer(form);
        let violations = Definition::read(form, &Limits::UNLIMITED).err().unwrap_or_default();
        violations.into_iter().find(|violation| violation.code == rule && violation.pointer == pointer)
    }

    fn pointer(&self, form: &Value) -> String {
        let mut names = self.path.clone();
        if let [first, id, ..] = &mut names[..]
            && first == "questions"
            && let Some(index) = question_index(form, id)
        {
            *id = index.to_string();
        }
        names.iter().fold(String::new(), |pointer, name| join(&pointer, name))
    }

    /// Returns `form` with `value` at the path, or with nothing there.
    fn with(&self, form: &Value, value: Option<Value>) -> Result<Value, CliError> {
        let mut form = form.clone();
        let names: Vec<_> = self.path.iter().map(String::as_str).collect();
        let ["questions", id, names @ ..] = &names[..] else {
            set_or_remove(&mut form, &names, value);
            return Ok(form);
        };
        let index = question_index(&form, id).ok_or_else(|| unknown(&form, id))?;
        let Some(Value::Array(questions)) = form.get_mut("questions") else { return Ok(form) };
        match (names, value) {
            ([], None) => drop(questions.remove(index)),
            ([], Some(_)) => {
                let help = format!("name one of its members, as in questions.{id}.title=…");
                let message = format!("question `{id}` is set member by member");
                return Err(CliError::usage_with_help(message, help));
            }
            (names, value) => set_or_remove(&mut questions[index], names, value),
        }
        Ok(form)
    }
}

fn set_or_remove(object: &mut Value, names: &[&str], value: Option<Value>) {
    match value {
        Some(value) => object.set(names, value),
        None => object.remove(names),
    }
}

fn question_index(form: &Value, id: &str) -> Option<usize> {
    let questions = form.get("questions")?.as_array()?;
    questions.iter().position(|question| question.get("id") == Some(&id.into()))
}

fn unknown(form: &Value, id: &str) -> CliError {
    let questions = form.get("questions").and_then(Value::as_array).unwrap_or_default();
    let ids = questions.iter().filter_map(|question| question.get("id")?.as_str());
    let help = similar(id, ids).map(|id| format!("a question with a similar id exists: `{id}`"));
    CliError::Usage { message: format!("`{id}` is not a question of the form"), help }
}
