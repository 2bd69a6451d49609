//! A form made step by step: what `forms create` asks where it gets neither a file nor a title.

use crate::cli::commands::create::question_args::{kinds, lists, question, takes_answer};
use crate::cli::connection::session::Session;
use crate::cli::input::draft::Draft;
use crate::cli::input::prompt;
use crate::cli::output::exit::CliError;
use crate::cli::output::yaml;
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Asks for a form, shows it as the file it would be, and gives it: `flags` with a title and questions. What is not valid
/// is asked for again, sizes aside, which are for the server to judge; `draft` has what was entered so far.
pub(super) async fn ask(session: &Session, draft: &Draft, flags: Value) -> Result<Value, CliError> {
    let mut wizard = Wizard { session, draft, form: flags };
    wizard.ask_title().await?;
    let mut questions = Vec::new();
    while let Some(question) = wizard.ask_question(&questions).await? {
        questions.push(question);
        wizard.form = with(&wizard.form, "questions", Value::Array(questions.clone()));
    }
    yaml::yaml(&wizard.form)?.lines().for_each(|line| session.output.say(line));
    Ok(wizard.form)
}

/// A form that is being asked for.
struct Wizard<'a> {
    session: &'a Session,
    draft: &'a Draft,
    form: Value,
}

impl Wizard<'_> {
    async fn ask_title(&mut self) -> Result<(), CliError> {
        let mut title = String::new();
        loop {
            title = prompt::text("Title", &title, false).await?;
            let form = with(&self.form, "title", title.as_str().into());
            if self.is_valid(&form) {
                self.draft.write(&yaml::yaml(&form)?)?;
                self.form = form;
                return Ok(());
            }
        }
    }

    /// The question behind those `before`; `None` if there is none. Each part is valid before the next is asked for.
    async fn ask_question(&self, before: &[Value]) -> Result<Option<Value>, CliError> {
        let form =
            |question: Value| with(&self.form, "questions", Value::Array([before, &[question]].concat()));
        let what = format!("Question {} (nothing if that is all)", before.len() + 1);
        let mut title = prompt::text(&what, "", true).await?;
        while !title.trim().is_empty() && !self.is_valid(&form(question("statement", &title, false, &[]))) {
            title = prompt::text(&what, &title, true).await?;
        }
        if title.trim().is_empty() {
            return Ok(None);
        }
        let save = |question: Value| self.draft.write(&yaml::yaml(&form(question))?);
        let kinds = kinds();
        save(question(kinds[0], &title, false, &[]))?;
        let kind = kinds[prompt::choose("Type", &kinds).await?];
        let save_lists = |items: &[String]| save(question(kind, &title, false, items));
        save_lists(&[])?;
        let mut items = ask_lists(kind, &[], save_lists).await?;
        while !items.is_empty() && !self.is_valid(&form(question(kind, &title, false, &items))) {
            items = ask_lists(kind, &items, save_lists).await?;
        }
        let is_required = takes_answer(kind) && prompt::yes("Must it be answered?").await?;
        let question = question(kind, &title, is_required, &items);
        save(question.clone())?;
        Ok(Some(question))
    }

    /// Whether the form is valid so far; says what is wrong if not.
    fn is_valid(&self, form: &Value) -> bool {
        let violations = Definition::read(form, &Limits::UNLIMITED).err().unwrap_or_default();
        let say =
            |violation: &Violation| self.session.output.say(&format!("{}; try again", violation.message));
        violations.iter().for_each(say);
        violations.is_empty()
    }
}

/// `form` with `value` as its member `name`, which it has.
fn with(form: &Value, name: &str, value: Value) -> Value {
    let Value::Object(members) = form else { return form.clone() };
    let member = |(known, old): &(String, Value)| {
        (known.clone(), if known == name { value.clone() } else { old.clone() })
    };
    Value::Object(members.iter().map(member).collect())
}

/// What a question of this type lets choose from, `refused` being the last answers; `save` gets what was entered so far.
async fn ask_lists(
    kind: &str,
    refused: &[String],
    save: impl Fn(&[String]) -> Result<(), CliError>,
) -> Result<Vec<String>, CliError> {
    let mut items = Vec::new();
    for (place, name) in lists(kind).iter().enumerate() {
        let what = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        let initial = refused.get(place).map_or("", String::as_str);
        items.push(prompt::text(&format!("{what}, with commas between"), initial, false).await?);
        save(&items)?;
    }
    Ok(items)
}
