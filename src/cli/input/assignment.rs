//! Parsing and applying `--set settings.max_responses=100`.

use crate::api::{Code, Problem};
use crate::cli::input::document;
use crate::cli::input::document::violations::rejected;
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

    /// Returns `form` with the setting applied; what it removes is null. Where the form expects text, the value is the text
    /// as typed.
    ///
    /// # Errors
    /// If the path names no question, or what it should remove is not a field of forms.
    pub fn apply(&self, form: &Value) -> Result<Value, CliError> {
        if self.text.is_empty() || (self.is_yaml && self.text == "null") {
            let removed = self.with(form, Value::Null)?;
            let unknown = self.violation(&removed, Rule::UnknownField);
            return match unknown.filter(|_| form.pointer(&self.pointer(form)).is_none()) {
                Some(unknown) => Err(rejected(&removed, &[unknown], Problem::new(Code::ValidationFailed))),
                None => Ok(removed),
            };
        }
        let as_text = self.with(form, Value::String(self.text.clone()))?;
        let as_yaml = match document::read_value(&self.text).filter(|_| self.is_yaml) {
            None => return Ok(as_text),
            // Only quoted text is YAML: otherwise ` #` would begin a comment.
            Some(Value::String(_)) if !self.text.starts_with(['"', '\'']) => return Ok(as_text),
            Some(value) => self.with(form, value)?,
        };
        let is_mistyped = |form: &Value| self.violation(form, Rule::TypeMismatch).is_some();
        Ok(if is_mistyped(&as_yaml) && !is_mistyped(&as_text) { as_text } else { as_yaml })
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

    /// Returns `form` with `value` at the path.
    fn with(&self, form: &Value, value: Value) -> Result<Value, CliError> {
        let mut form = form.clone();
        let names: Vec<_> = self.path.iter().map(String::as_str).collect();
        let ["questions", id, names @ ..] = &names[..] else {
            form.set(&names, value);
            return Ok(form);
        };
        let index = question_index(&form, id).ok_or_else(|| unknown(&form, id))?;
        let Some(Value::Array(questions)) = form.get_mut("questions") else { return Ok(form) };
        match (names, value) {
            ([], Value::Null) => drop(questions.remove(index)),
            ([], _) => {
                let help = format!("name one of its members, as in questions.{id}.title=…");
                let message = format!("question `{id}` is set member by member");
                return Err(CliError::usage_with_help(message, help));
            }
            (names, value) => questions[index].set(names, value),
        }
        Ok(form)
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
