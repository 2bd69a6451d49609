//! A form made step by step: what `forms create` asks where it gets neither a file nor a title.

use super::questions::{kinds, lists, question, takes_answer};
use crate::cli::document;
use crate::cli::exit::CliError;
use crate::cli::prompt;
use crate::cli::session::Session;
use crate::domain::definition::Definition;
use crate::domain::json::Value;
use crate::domain::limits::Limits;

/// Asks for a form, shows it as the file it would be, and gives it. What does not fit is told and asked for again.
pub(super) async fn ask(session: &Session) -> Result<Value, CliError> {
    let mut title = String::new();
    while title.is_empty() {
        title = prompt::text("Title", false).await?;
        if !is_fit(session, &form(&title, &[])) {
            title.clear();
        }
    }
    let mut questions = Vec::new();
    while let Some(question) = ask_question(session, &questions).await? {
        questions.push(question);
    }
    let form = form(&title, &questions);
    document::yaml(&form)?.lines().for_each(|line| session.output.say(line));
    Ok(form)
}

fn form(title: &str, questions: &[Value]) -> Value {
    let questions = Value::Array(questions.to_vec());
    Value::Object(vec![("title".to_owned(), title.into()), ("questions".to_owned(), questions)])
}

/// The question behind those `before`; `None` if there is none. Each part is fit before the next is asked for.
async fn ask_question(session: &Session, before: &[Value]) -> Result<Option<Value>, CliError> {
    let is_fit = |question: Value| is_fit(session, &form("Title", &[before, &[question]].concat()));
    let what = format!("Question {} (nothing if that is all)", before.len() + 1);
    let mut title = prompt::text(&what, true).await?;
    while !title.trim().is_empty() && !is_fit(question("statement", &title, false, &[])) {
        title = prompt::text(&what, true).await?;
    }
    if title.trim().is_empty() {
        return Ok(None);
    }
    let kinds = kinds();
    let kind = kinds[prompt::choose("Type", &kinds).await?];
    let mut items = ask_lists(kind).await?;
    while !items.is_empty() && !is_fit(question(kind, &title, false, &items)) {
        items = ask_lists(kind).await?;
    }
    let is_required = takes_answer(kind) && prompt::yes("Must it be answered?").await?;
    Ok(Some(question(kind, &title, is_required, &items)))
}

/// What a question of this type lets choose from.
async fn ask_lists(kind: &str) -> Result<Vec<String>, CliError> {
    let mut items = Vec::new();
    for name in lists(kind) {
        let what = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        items.push(prompt::text(&format!("{what}, with commas between"), false).await?);
    }
    Ok(items)
}

/// Whether the form is fit so far; says what is wrong if not.
fn is_fit(session: &Session, form: &Value) -> bool {
    let violations = Definition::read(form, &Limits::default()).err().unwrap_or_default();
    violations.iter().for_each(|violation| session.output.say(&format!("{}; once more", violation.message)));
    violations.is_empty()
}
