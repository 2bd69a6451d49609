//! The interactive `forms create`.

use crate::cli::commands::create::question_args::{list_settings, question, takes_answer, type_names};
use crate::cli::commands::{CliError, Session};
use crate::cli::input::draft::Draft;
use crate::cli::input::prompt;
use crate::cli::output::yaml;
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::language::ENGLISH;
use crate::domain::question::QuestionKind;
use crate::domain::validation::limits::Limits;

/// Asks for a form and shows it as YAML. `flags` is the form to start from. Invalid input is asked for again, except for
/// size limits, which the server checks. Everything entered is saved to `draft`.
pub(super) async fn ask(session: &Session, draft: &Draft, flags: Value) -> Result<Value, CliError> {
    let mut wizard = Wizard { session, draft, form: flags };
    wizard.ask_title().await?;
    let mut questions = Vec::new();
    while let Some(question) = wizard.ask_question(&questions).await? {
        questions.push(question);
        wizard.form.set(&["questions"], Value::Array(questions.clone()));
    }
    yaml::yaml(&wizard.form)?.lines().for_each(|line| session.output.status(line));
    Ok(wizard.form)
}

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
            self.form.set(&["title"], title.as_str().into());
            if self.is_valid(&self.form) {
                return self.draft.write(&yaml::yaml(&self.form)?);
            }
        }
    }

    /// Asks for one more question after `before`, the questions so far; `None` if the user adds none. Validates each part
    /// before it asks for the next.
    async fn ask_question(&self, before: &[Value]) -> Result<Option<Value>, CliError> {
        let form = |question: Value| {
            let mut form = self.form.clone();
            form.set(&["questions"], Value::Array([before, &[question]].concat()));
            form
        };
        let what = format!("Question {} (Enter to finish)", before.len() + 1);
        let mut title = prompt::text(&what, "", true).await?;
        while !title.trim().is_empty() && !self.is_valid(&form(question("statement", &title, false, &[]))) {
            title = prompt::text(&what, &title, true).await?;
        }
        if title.trim().is_empty() {
            return Ok(None);
        }
        let save = |question: Value| self.draft.write(&yaml::yaml(&form(question))?);
        let kinds = type_names();
        save(question(kinds[0], &title, false, &[]))?;
        let kind = kinds[prompt::choose("Type", &explained(&kinds)).await?];
        let save_lists = |lists: &[Vec<String>]| save(question(kind, &title, false, lists));
        save_lists(&[])?;
        let mut lists = ask_lists(kind, &[], save_lists).await?;
        while !lists.is_empty() && !self.is_valid(&form(question(kind, &title, false, &lists))) {
            lists = ask_lists(kind, &lists, save_lists).await?;
        }
        let is_required = takes_answer(kind) && prompt::yes_or_no("Must it be answered?").await?;
        let question = question(kind, &title, is_required, &lists);
        save(question.clone())?;
        Ok(Some(question))
    }

    /// Whether the form is valid so far; prints what is wrong if not.
    fn is_valid(&self, form: &Value) -> bool {
        let violations = Definition::read(form, &Limits::UNLIMITED).err().unwrap_or_default();
        for violation in &violations {
            self.session.output.status(&format!("{}; try again", violation.message));
        }
        violations.is_empty()
    }
}

/// Returns the question types with the answers that they expect.
fn explained(kinds: &[&str]) -> Vec<String> {
    let width = kinds.iter().map(|kind| kind.len()).max().unwrap_or_default();
    let line = |kind: &&str| match QuestionKind::example(kind) {
        Some(example) => format!("{kind:<width$}  {}", example.rules().expects(ENGLISH)),
        None => (*kind).to_owned(),
    };
    kinds.iter().map(line).collect()
}

/// Asks for the lists of a question type, item by item. `refused` holds the previous input, `save` is called after each
/// item.
async fn ask_lists(
    kind: &str,
    refused: &[Vec<String>],
    save: impl Fn(&[Vec<String>]) -> Result<(), CliError>,
) -> Result<Vec<Vec<String>>, CliError> {
    let mut lists = Vec::new();
    for (place, name) in list_settings(kind).iter().enumerate() {
        let item = format!("{}{}", name[..1].to_uppercase(), name[1..].trim_end_matches('s'));
        lists.push(Vec::new());
        loop {
            let number = lists[place].len();
            let initial = refused.get(place).and_then(|list| list.get(number)).map_or("", String::as_str);
            let end = if number == 0 { "" } else { " (Enter to finish)" };
            let text = prompt::text(&format!("{item} {}{end}", number + 1), initial, number > 0).await?;
            if text.trim().is_empty() {
                break;
            }
            lists[place].push(text.trim().to_owned());
            save(&lists)?;
        }
    }
    Ok(lists)
}
