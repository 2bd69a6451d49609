//! Parsing and applying `--set settings.max_responses=100`.

use crate::cli::input::document;
use crate::cli::output::exit::CliError;
use crate::domain::form::definition::Definition;
use crate::domain::json::{Object, Value};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::{Rule, join};

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
    pub fn apply(&self, form: &Value) -> Result<Value, CliError> {
        if self.text.is_empty() || (self.is_yaml && self.text == "null") {
            return self.with(form, None);
        }
        let as_text = self.with(form, Some(Value::String(self.text.clone())))?;
        if !self.is_yaml {
            return Ok(as_text);
        }
        let as_yaml = match document::read_value(&self.text) {
            None => return Ok(as_text),
            // Only quoted text is YAML: otherwise ` #` would begin a comment.
            Some(Value::String(_)) if !self.text.starts_with(['"', '\'']) => return Ok(as_text),
            value => self.with(form, value)?,
        };
        let prefers_text = self.is_mistyped(&as_yaml) && !self.is_mistyped(&as_text);
        Ok(if prefers_text { as_text } else { as_yaml })
    }

    fn is_mistyped(&self, form: &Value) -> bool {
        let violations = Definition::read(form, &Limits::UNLIMITED).err().unwrap_or_default();
        let pointer = self.pointer(form);
        violations
            .iter()
            .any(|violation| violation.code == Rule::TypeMismatch && violation.pointer == pointer)
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

    fn with(&self, form: &Value, value: Option<Value>) -> Result<Value, CliError> {
        let mut form = form.clone();
        let names: Vec<_> = self.path.iter().map(String::as_str).collect();
        match &names[..] {
            ["questions", id, rest @ ..] => change_question(&mut form, id, rest, value)?,
            names => set_member(&mut form, names, value)?,
        }
        Ok(form)
    }
}

fn question_index(form: &Value, id: &str) -> Option<usize> {
    let questions = form.get("questions")?.as_array()?;
    questions.iter().position(|question| question.get("id") == Some(&id.into()))
}

fn change_question(form: &mut Value, id: &str, names: &[&str], value: Option<Value>) -> Result<(), CliError> {
    let index = question_index(form, id).ok_or_else(|| unknown(form, id))?;
    let Value::Object(members) = form else { return Ok(()) };
    let questions = members.iter_mut().find(|(name, _)| name == "questions");
    let Some((_, Value::Array(questions))) = questions else { return Ok(()) };
    match (names, value) {
        ([], None) => drop(questions.remove(index)),
        ([], Some(_)) => {
            let help = format!("name one of its members, as in questions.{id}.title=…");
            return Err(CliError::usage_with_help(format!("question `{id}` is set member by member"), help));
        }
        (names, value) => set_member(&mut questions[index], names, value)?,
    }
    Ok(())
}

fn unknown(form: &Value, id: &str) -> CliError {
    let Some(questions) = form.get("questions").and_then(Value::as_array) else {
        return CliError::usage("the form has no questions");
    };
    let ids = questions.iter().filter_map(|question| question.get("id")?.as_str());
    let help = similar(id, ids).map(|id| format!("a question with a similar id exists: `{id}`"));
    CliError::Usage { message: format!("`{id}` is not a question of the form"), help }
}

/// Sets the member at the path `names` in `object`, or removes it.
fn set_member(object: &mut Value, names: &[&str], value: Option<Value>) -> Result<(), CliError> {
    let [name, rest @ ..] = names else { return Ok(()) };
    let Value::Object(members) = object else {
        return Err(CliError::usage(format!("there is no `{name}` in {}: set it as a whole", object.kind())));
    };
    let index = members.iter().position(|(key, _)| key == name);
    match (index, value) {
        (None, None) => {}
        (Some(index), None) if rest.is_empty() => drop(members.remove(index)),
        (Some(index), Some(value)) if rest.is_empty() => members[index].1 = value,
        (None, Some(value)) if rest.is_empty() => members.push(((*name).to_owned(), value)),
        (Some(index), value) => set_member(&mut members[index].1, rest, value)?,
        (None, value) => {
            let mut new = Value::Object(Object::new());
            set_member(&mut new, rest, value)?;
            members.push(((*name).to_owned(), new));
        }
    }
    Ok(())
}
