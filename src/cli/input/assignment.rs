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
    ///
    /// # Errors
    /// If the path does not exist.
    pub fn apply(&self, form: &Value) -> Result<Value, CliError> {
        if self.text.is_empty() || (self.is_yaml && self.text == "null") {
            return self.with(form, None);
        }
        let text = Value::String(self.text.clone());
        if !self.is_yaml {
            return self.with(form, Some(text));
        }
        let value = match document::read_value(&self.text) {
            // Only quoted text is YAML: otherwise ` #` would begin a comment.
            Some(Value::String(_)) if !self.text.starts_with(['"', '\'']) => text.clone(),
            Some(value) => value,
            None => text.clone(),
        };
        let read = self.with(form, Some(value))?;
        if !self.is_mistyped(&read) {
            return Ok(read);
        }
        let typed = self.with(form, Some(text))?;
        Ok(if self.is_mistyped(&typed) { read } else { typed })
    }

    /// Whether the member has a value of the wrong type.
    fn is_mistyped(&self, form: &Value) -> bool {
        let violations = Definition::read(form, &Limits::UNLIMITED).err().unwrap_or_default();
        let pointer = self.pointer(form);
        violations.iter().any(|found| found.code == Rule::TypeMismatch && found.pointer == pointer)
    }

    fn pointer(&self, form: &Value) -> String {
        let names = self.path.iter().enumerate().map(|(depth, name)| match (depth, place(form, name)) {
            (1, Some(place)) if self.path[0] == "questions" => place.to_string(),
            _ => name.clone(),
        });
        names.fold(String::new(), |pointer, name| join(&pointer, &name))
    }

    fn with(&self, form: &Value, value: Option<Value>) -> Result<Value, CliError> {
        let mut form = form.clone();
        let names: Vec<_> = self.path.iter().map(String::as_str).collect();
        match &names[..] {
            ["questions", id, rest @ ..] => change_question(&mut form, id, rest, value)?,
            names => put(&mut form, names, value)?,
        }
        Ok(form)
    }
}

/// Returns the index of the question `id`.
fn place(form: &Value, id: &str) -> Option<usize> {
    let Some(Value::Array(questions)) = form.get("questions") else { return None };
    questions.iter().position(|question| question.get("id") == Some(&id.into()))
}

fn change_question(form: &mut Value, id: &str, names: &[&str], value: Option<Value>) -> Result<(), CliError> {
    let place = place(form, id).ok_or_else(|| unknown(form, id))?;
    let Value::Object(members) = form else { return Ok(()) };
    let questions = members.iter_mut().find(|(name, _)| name == "questions");
    let Some((_, Value::Array(questions))) = questions else { return Ok(()) };
    match (names, value) {
        ([], None) => drop(questions.remove(place)),
        ([], Some(_)) => {
            let help = format!("name one of its members, as in questions.{id}.title=…");
            return Err(CliError::usage_with_help(format!("question `{id}` is set member by member"), help));
        }
        (names, value) => put(&mut questions[place], names, value)?,
    }
    Ok(())
}

fn unknown(form: &Value, id: &str) -> CliError {
    let Some(Value::Array(questions)) = form.get("questions") else {
        return CliError::usage("the form has no questions");
    };
    let ids = questions.iter().filter_map(|question| match question.get("id") {
        Some(Value::String(id)) => Some(id.as_str()),
        _ => None,
    });
    let help = similar(id, ids).map(|id| format!("a question with a similar id exists: `{id}`"));
    CliError::Usage { message: format!("`{id}` is not a question of the form"), help }
}

/// Sets the member at the path `names` in `object`, or removes it.
fn put(object: &mut Value, names: &[&str], value: Option<Value>) -> Result<(), CliError> {
    let [name, rest @ ..] = names else { return Ok(()) };
    let Value::Object(members) = object else {
        return Err(CliError::usage(format!("there is no `{name}` in {}: set it as a whole", object.kind())));
    };
    let place = members.iter().position(|(known, _)| known == name);
    match (place, value) {
        (None, None) => {}
        (Some(place), None) if rest.is_empty() => drop(members.remove(place)),
        (Some(place), Some(value)) if rest.is_empty() => members[place].1 = value,
        (None, Some(value)) if rest.is_empty() => members.push(((*name).to_owned(), value)),
        (Some(place), value) => put(&mut members[place].1, rest, value)?,
        (None, value) => {
            let mut new = Value::Object(Object::new());
            put(&mut new, rest, value)?;
            members.push(((*name).to_owned(), new));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Setting;
    use crate::cli::output::exit::CliError;
    use crate::domain::json::parse;

    const FORM: &str = r#"{"title":"T","questions":[{"type":"page","title":"P"},{"id":"name","type":"short_text","title":"N"},{"id":"size","type":"rating","title":"S","labels":{"1":"Bad"}}],"settings":{"closed":true}}"#;

    fn set(argument: &str) -> Result<String, CliError> {
        Setting::parse(argument).unwrap().apply(&parse(FORM).unwrap()).map(|form| form.to_string())
    }

    #[test]
    fn a_value_is_what_its_member_takes() {
        for (argument, old, new) in [
            ("title=Lunch: today # or not", r#""title":"T""#, r#""title":"Lunch: today # or not""#),
            ("title=1.10", r#""title":"T""#, r#""title":"1.10""#),
            ("title=yes", r#""title":"T""#, r#""title":"yes""#),
            ("title=[a, b]", r#""title":"T""#, r#""title":"[a, b]""#),
            ("title=\"# a\"", r#""title":"T""#, r##""title":"# a""##),
            ("questions.name.pattern=[a-z]+", r#""N"}"#, r#""N","pattern":"[a-z]+"}"#),
            ("questions.name.required=true", r#""N"}"#, r#""N","required":true}"#),
            ("questions.name.show_if={size: [1, 2]}", r#""N"}"#, r#""N","show_if":{"size":[1,2]}}"#),
            ("questions.size.labels.5=1", r#"{"1":"Bad"}"#, r#"{"1":"Bad","5":"1"}"#),
            ("questions.size.labels.1=", r#""labels":{"1":"Bad"}"#, r#""labels":{}"#),
            ("questions.size.max=7", r#""labels""#, r#""max":7,"labels""#),
            ("questions.name=", r#"{"id":"name","type":"short_text","title":"N"},"#, ""),
            ("settings.closed=null", r#"{"closed":true}"#, "{}"),
            ("settings.max_responses=100", r#"true}"#, r#"true,"max_responses":100}"#),
            ("settings.language=007", r#"true}"#, r#"true,"language":"007"}"#),
            (
                "settings.confirmation.message=Thanks!",
                r#"true}"#,
                r#"true,"confirmation":{"message":"Thanks!"}}"#,
            ),
            // A value of the wrong type is sent unchanged; the server reports it.
            ("settings.closed=5", r#""closed":true"#, r#""closed":5"#),
        ] {
            assert!(FORM.contains(old), "{old}");
            let expected = FORM.replacen(old, new, 1);
            let found = set(argument).unwrap();
            // The order of members does not matter.
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(value(&found), value(&expected), "{argument}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused() {
        for argument in ["questions.nmae.title=A", "questions.name={type: email}", "title.a=1"] {
            assert!(matches!(set(argument), Err(CliError::Usage { .. })), "{argument}");
        }
        for argument in ["title", "=5", "settings.=5", ".title=A"] {
            assert!(Setting::parse(argument).is_err(), "{argument}");
        }
    }
}
