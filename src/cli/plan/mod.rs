//! Plans: what a form on the server and a definition of it differ in, and the requests that make them equal.
//!
//! A plan is made with reading requests only. It is sent as it was shown: if the form has changed meanwhile, the server
//! refuses it.

mod changes;
mod matching;
pub mod render;

use std::rc::Rc;

use serde_json::value::RawValue;

use crate::api::{Code, FormCreated, FormDetail, Problem};
use crate::cli::connection::session::Session;
use crate::cli::input::document::violations::refused;
use crate::cli::input::document::{Document, FormState};
use crate::cli::output::exit::CliError;
use crate::cli::output::integrations;
use crate::cli::output::yaml;
use crate::client::{Client, ClientError, ReceivedBody, Revision, SubmissionQuery};
use crate::domain::form::FormStatus;
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::summary::report::{AnswerSummary, ChoiceValue, Summary, ValueCount};
use crate::domain::validation::limits::Limits;

use changes::{Affected, Class, patch};
use matching::adopt_ids;

pub use changes::{Change, Operation};

/// A form as it was read from the server.
#[derive(Debug)]
pub struct Base {
    pub form: ReceivedBody<FormDetail>,
    /// In authoring form, with `settings.closed`.
    pub definition: Value,
    revision: Revision,
}

impl Base {
    /// Reads the form `name`, its id or slug.
    pub async fn read(client: &Client, name: &str) -> Result<Self, CliError> {
        let (form, revision) = client.get_revision(&["forms", name]).await?;
        let definition = yaml::authoring(&form)?;
        Ok(Self { form, definition, revision })
    }

    /// Reads the form with this slug; `None` if there is none.
    pub async fn find(client: &Client, slug: &str) -> Result<Option<Self>, CliError> {
        match Self::read(client, slug).await {
            Ok(base) => Ok(Some(base)),
            Err(CliError::Client { error, .. }) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn id(&self) -> String {
        self.form.id.to_string()
    }

    /// Returns the changes from this form to the one that was read later.
    pub fn changes_to(&self, later: &Self) -> Vec<Change> {
        let [before, after] =
            [self, later].map(|base| with_state(&base.definition, Some(&base.form.status.to_string())));
        changes::changes(&before, &after)
    }
}

/// How a form changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Create,
    Update,
    Unchanged,
}

/// The changes that make a form equal to a definition.
#[derive(Debug)]
pub struct FormPlan {
    /// The form now; `None` if it is to be created.
    pub base: Option<Rc<Base>>,
    /// In authoring form, with `settings.closed`.
    pub definition: Value,
    /// The file it comes from.
    pub document: Option<Document>,
    pub changes: Vec<Change>,
    state: Option<FormState>,
}

impl FormPlan {
    /// Plans to make `base` what `document` says, or to create it. Without a `status` in the file the state of the form stays
    /// as it is, or becomes `state`.
    ///
    /// # Errors
    /// If a question without an id may be a new or a changed one, or if a form without questions is to be published.
    pub fn of_document(
        document: Document,
        base: Option<Rc<Base>>,
        state: Option<FormState>,
    ) -> Result<Self, CliError> {
        let mut definition = document.value.clone();
        if let Some(list) = definition.get_mut("integrations") {
            *list = integrations::authoring(list);
        }
        if let (Some(base), Some(Value::Array(questions))) = (&base, definition.get_mut("questions")) {
            let stored = base.definition.get("questions").and_then(Value::as_array).unwrap_or_default();
            document.refuse_ambiguous(&adopt_ids(stored, questions))?;
        }
        let state = document.state().or(state);
        let closed = base.as_ref().and_then(|base| base.definition.pointer("/settings/closed").cloned());
        match (state, closed, definition.pointer("/settings/closed")) {
            (Some(FormState::Closed), ..) => definition.set(&["settings", "closed"], true.into()),
            (Some(FormState::Published), ..) => definition.remove(&["settings", "closed"]),
            (_, Some(closed), None) => definition.set(&["settings", "closed"], closed),
            _ => {}
        }
        let plan = Self::new(yaml::canonical(&definition), state, base, Some(document));
        if plan.status() == Some(FormStatus::Published) {
            require_question(&plan.definition)?;
        }
        Ok(plan)
    }

    /// Plans to make `base` what `definition` says, in authoring form.
    pub fn of_definition(definition: Value, base: Rc<Base>) -> Self {
        Self::new(definition, None, Some(base), None)
    }

    /// Plans to leave `base` as it is.
    pub fn unchanged(base: Rc<Base>) -> Self {
        Self::of_definition(base.definition.clone(), base)
    }

    fn new(
        definition: Value,
        state: Option<FormState>,
        base: Option<Rc<Base>>,
        document: Option<Document>,
    ) -> Self {
        let mut plan = Self { base, definition, document, changes: Vec::new(), state };
        let status = plan.base.as_ref().map(|base| base.form.status.to_string());
        let before = match &plan.base {
            Some(base) => with_state(&base.definition, status.as_deref()),
            // Title and slug are in the heading.
            None => {
                let shown =
                    ["title", "slug"].map(|name| (name.to_owned(), plan.definition.get(name).cloned()));
                Value::Object(shown.into_iter().filter_map(|(name, text)| Some((name, text?))).collect())
            }
        };
        let after = plan.status().map(FormStatus::name).or(status.as_deref());
        plan.changes = changes::changes(&before, &with_state(&plan.definition, after));
        plan
    }

    pub fn action(&self) -> Action {
        match &self.base {
            None => Action::Create,
            Some(_) if self.changes.is_empty() => Action::Unchanged,
            Some(_) => Action::Update,
        }
    }

    pub fn slug(&self) -> Option<&str> {
        self.definition.get("slug")?.as_str()
    }

    pub fn title(&self) -> &str {
        self.definition.get("title").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns what the form is called: its slug, else its title.
    pub fn name(&self) -> &str {
        self.slug().unwrap_or(self.title())
    }

    /// Returns the status that the form is to have, if that is given.
    pub fn status(&self) -> Option<FormStatus> {
        self.state.map(|state| match state {
            FormState::Draft => FormStatus::Draft,
            FormState::Published | FormState::Closed => FormStatus::Published,
        })
    }

    /// Whether stored answers are of another type than their question then has.
    pub fn retypes(&self) -> bool {
        self.changes.iter().any(|change| change.class == Class::Retypes)
    }

    /// Counts the answers that the changes touch, by one summary of the form. A change that touches none is a plain one; an
    /// unknown number, from a server without summaries, does not fail the plan.
    pub async fn count_answers(&mut self, client: &Client) {
        let Some(base) = self.base.as_ref().filter(|_| self.changes.iter().any(|one| one.affected.is_some()))
        else {
            return;
        };
        let summary = client.get_summary(&base.id(), &SubmissionQuery::default()).await.ok();
        for change in self.changes.iter_mut() {
            let Some(affected) = &change.affected else { continue };
            change.answers = summary.as_ref().and_then(|summary| count(&summary.summary, affected));
            if change.answers == Some(0) {
                (change.class, change.affected) = (Class::Plain, None);
            }
        }
    }

    /// Returns the body that creates the form, or updates it; with the values of secrets.
    ///
    /// # Errors
    /// If the variable of a secret is not set.
    pub fn body(&self, session: &Session) -> Result<Value, CliError> {
        let stored = self.base.as_ref().map(|base| yaml::integrations(&base.form));
        let mut body = match &self.base {
            Some(base) => patch(&base.definition, &self.definition).unwrap_or(Value::Object(Vec::new())),
            None => self.definition.clone(),
        };
        if let (Some(list), Some(document)) = (body.get_mut("integrations"), &self.document)
            && let Some(with_secrets) = document.integrations(stored.as_ref(), &session.environment)?
        {
            *list = with_secrets;
        }
        if let (Some(status), Some(_)) = (self.status(), &self.base) {
            body.set(&["status"], status.name().into());
        }
        Ok(body)
    }

    /// Creates the form, and publishes it if it is to be; or updates it, unless it was changed since it was read. A dry run only
    /// lets the server check it.
    pub async fn send(&self, session: &Session, client: &Client, dry_run: bool) -> Result<Sent, CliError> {
        let body = self.body(session)?.to_string();
        let refused = |error| self.refused(error);
        if let Some(base) = &self.base {
            let updated = client.update_form(&base.id(), &body, Some(&base.revision), dry_run).await;
            return updated.map(Sent::Updated).map_err(refused);
        }
        let created = client.create_form(&body, dry_run).await.map_err(refused)?;
        if self.status() == Some(FormStatus::Published) && !dry_run {
            let id = created.id.to_string();
            let published = client.update_form(&id, r#"{"status":"published"}"#, None, false).await;
            published.map_err(|error| not_published(session, &id, error))?;
        }
        Ok(Sent::Created(created))
    }

    /// Converts the server's refusal to an error, with locations in the file.
    fn refused(&self, error: ClientError) -> CliError {
        match error {
            ClientError::Problem(mut problem) if problem.status == 412 => {
                let detail = "the form was changed after it was read; your change was not stored";
                problem.detail = Some(detail.to_owned());
                CliError::client_with_help(ClientError::Problem(problem), "look at the plan again")
            }
            error => refused(self.document.as_ref(), &self.definition, error),
        }
    }
}

/// The server's answer to a plan.
#[derive(Debug)]
pub enum Sent {
    Created(ReceivedBody<FormCreated>),
    Updated(ReceivedBody<FormDetail>),
}

impl Sent {
    /// Returns the form's id and its integrations, some with secrets that the server has made.
    pub fn parts(&self) -> (String, &[Box<RawValue>]) {
        match self {
            Self::Created(form) => (form.id.to_string(), &form.integrations),
            Self::Updated(form) => (form.id.to_string(), &form.integrations),
        }
    }
}

/// Returns the number of `affected` answers; `None` if the summary does not have it.
fn count(summary: &Summary, affected: &Affected) -> Option<u64> {
    let question = summary.questions.iter().find(|question| question.id == affected.question)?;
    let Some((list, value)) = &affected.value else { return Some(question.answered) };
    let value = ChoiceValue::Text(value.clone());
    let of_value =
        |options: &[ValueCount]| options.iter().find(|one| one.value == value).map(|one| one.count);
    match (&question.summary, *list) {
        (AnswerSummary::Choice { options, .. }, "options") => of_value(options),
        (
            AnswerSummary::Scale { options, .. } | AnswerSummary::Nps { options, .. },
            bound @ ("min" | "max"),
        ) => {
            let ChoiceValue::Text(text) = &value else { return None };
            let limit: i64 = text.parse().ok()?;
            let is_beyond = |found: i64| if bound == "max" { found > limit } else { found < limit };
            let is_gone =
                |one: &&ValueCount| matches!(one.value, ChoiceValue::Number(found) if is_beyond(found));
            Some(options.iter().filter(is_gone).map(|one| one.count).sum())
        }
        (AnswerSummary::Matrix { rows }, "rows") => {
            rows.iter().find(|row| row.row.value == value).map(|row| row.row.count)
        }
        (AnswerSummary::Matrix { rows }, "columns") => {
            Some(rows.iter().filter_map(|row| of_value(&row.options)).sum())
        }
        _ => None,
    }
}

/// Refuses to publish a form without a question to answer.
pub fn require_question(definition: &Value) -> Result<(), CliError> {
    let Ok(form) = Definition::read(definition, &Limits::UNLIMITED) else { return Ok(()) };
    if form.questions.iter().any(Question::takes_answer) {
        return Ok(());
    }
    let what = format!("\"{}\" has no question that takes an answer; nothing was stored", form.title);
    let problem = Problem::new(Code::FormHasNoQuestions).detail(what);
    let help = "add a question that takes an answer, or do not publish it";
    Err(CliError::client_with_help(ClientError::Problem(Box::new(problem)), help))
}

/// Creates the error for a form that was created and could not be published.
pub fn not_published(session: &Session, id: &str, error: ClientError) -> CliError {
    let notes = vec![format!("{id} was created and stays a draft")];
    CliError::Client { error, notes, help: Some(format!("{} publish {id}", session.command_prefix())) }
}

/// How several forms change.
#[derive(Debug)]
pub struct Plan {
    pub forms: Vec<FormPlan>,
    /// The forms of the server that are in no file: id, slug and title.
    pub unmanaged: Vec<serde_json::Value>,
    /// The server or data directory.
    pub target: String,
}

impl Plan {
    pub fn has_changes(&self) -> bool {
        self.forms.iter().any(|form| form.action() != Action::Unchanged)
    }
}

/// Returns the definition with its state as `status`, instead of `settings.closed`.
fn with_state(definition: &Value, status: Option<&str>) -> Value {
    let mut shown = definition.clone();
    let is_closed = definition.pointer("/settings/closed") == Some(&Value::Bool(true));
    shown.remove(&["settings", "closed"]);
    let state = match (status, is_closed) {
        (Some("published"), true) => Some("closed"),
        (Some("draft"), true) => Some("draft, closed"),
        (status, _) => status,
    };
    if let Some(state) = state {
        shown.set(&["status"], state.into());
    }
    shown
}
