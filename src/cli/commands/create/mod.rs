//! `forms create`: creates forms from a file, from flags, or interactively.

mod question_args;
mod wizard;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::value::RawValue;

use crate::api::{Code, Problem};
use crate::cli::commands::batch::Batch;
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::input::answers;
use crate::cli::input::assignment::Setting;
use crate::cli::input::document::violations::refused;
use crate::cli::input::document::{self, Document, FormState};
use crate::cli::input::draft::Draft;
use crate::cli::input::prompt;
use crate::cli::output::columns::FORM;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::shell_quote::shell_quote;
use crate::cli::plan::{not_published, require_question};
use crate::client::{Client, ClientError};
use crate::domain::form::definition::Definition;
use crate::domain::json::{self, Object, Value};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Create a form from a file, from flags, or step by step
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the new form's id. The form is a draft until it is published, unless the
file says `status: published` or `closed`. A file
may contain several forms, separated by lines of ---. Without a file and without
--title the form is asked for on the terminal; if it is not created, your input
is kept in a file. With -f, --title and --slug override those in the file.

A question is TYPE:TITLE, followed by ! if it must be answered. Choices follow
after another colon, separated by commas: single_choice:Colour:red,green. A
matrix has rows, a colon and columns. For other settings, use a file.

Examples:
  forms create -f survey.yaml
  id=$(forms create -f survey.yaml --publish)
  forms create --title Lunch -Q 'short_text:What would you like?!' \\
    -Q 'multiple_choice:Which days?:Mon,Tue,Wed'
  forms create
  forms show frm_7k2m9q4x1abz -o yaml | forms create -f -")]
pub struct Create {
    /// File in YAML or JSON, - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "question")]
    file: Option<PathBuf>,
    /// Title of the form
    #[arg(long)]
    title: Option<String>,
    /// A question, such as email:'Your email!'; repeat for more
    #[arg(short = 'Q', long, value_name = "TYPE:TITLE", requires = "title", value_parser = question_args::parse)]
    question: Vec<Value>,
    /// Slug of the form
    #[arg(long)]
    slug: Option<String>,
    /// Publish it at once
    #[arg(long)]
    publish: bool,
    /// Let the server check it, store nothing
    #[arg(long, conflicts_with = "publish")]
    dry_run: bool,
    /// A file, or a question, without its flag
    #[arg(hide = true)]
    stray: Option<String>,
}

impl Run for Create {
    const COLUMNS: Columns = FORM;

    /// Creates the form, or each form of the file. Nothing is sent unless all of them are valid; size limits are checked
    /// by the server.
    async fn run(mut self, session: &Session) -> Result<(), CliError> {
        if let Some(stray) = &self.stray {
            let help = match self.title {
                Some(_) => format!("a question follows its flag: -Q {}", shell_quote(stray)),
                None => format!("{} create -f {}", session.command_prefix(), shell_quote(stray)),
            };
            return Err(CliError::usage_with_help(format!("unexpected argument `{stray}`"), help));
        }
        match (&self.file, &self.title) {
            (Some(file), _) => {
                let forms = self.read(session, file).await?;
                self.create_all(session, &forms, None).await
            }
            (None, Some(title)) => {
                self.create_all(
                    session,
                    &[NewForm::without_file(self.form_from_flags(title), self.publish)],
                    None,
                )
                .await
            }
            (None, None) => match session.prompt_obstacle() {
                None => self.ask(session).await,
                Some(obstacle) => {
                    let help = "add -f FILE, or --title T with -Q TYPE:TITLE for each question";
                    Err(CliError::usage_with_help(format!("cannot ask for the form: {obstacle}"), help))
                }
            },
        }
    }
}

/// A form to create.
struct NewForm {
    definition: Value,
    /// The file it comes from.
    document: Option<Document>,
    /// Whether it is to be published.
    publish: bool,
}

impl NewForm {
    fn without_file(definition: Value, publish: bool) -> Self {
        Self { definition, document: None, publish }
    }

    fn file(&self) -> &str {
        self.document.as_ref().map_or("", |document| &document.file)
    }
}

impl Create {
    /// Asks for the form. The input is kept in a file unless the form is created.
    async fn ask(&mut self, session: &Session) -> Result<(), CliError> {
        // Check the flags and the server first, so that no input is lost to either.
        self.check(&NewForm::without_file(self.form_from_flags("Title"), self.publish))?;
        session.probe().await?;
        let mut draft = Draft::create(session, "new", "", &self.resume_command())?;
        let answers = self.answers(session, &draft);
        let form = prompt::dialogue(&session.output, "canceled, nothing was created", answers).await?;
        draft.set_resume_command(session, &self.resume_command());
        self.create_all(session, &[NewForm::without_file(form, self.publish)], Some(draft)).await
    }

    /// Returns the command that resumes with a kept draft.
    fn resume_command(&self) -> String {
        let publish = if self.publish { " --publish" } else { "" };
        let dry_run = if self.dry_run { " --dry-run" } else { "" };
        format!("create{publish}{dry_run}")
    }

    async fn answers(&mut self, session: &Session, draft: &Draft) -> Result<Value, CliError> {
        let form = wizard::ask(session, draft, self.form_from_flags("")).await?;
        let read = Definition::read(&form, &Limits::UNLIMITED);
        if !self.publish && !self.dry_run && read.is_ok_and(|form| takes_answers(&form)) {
            self.publish = prompt::yes_or_no("Publish it at once?").await?;
        }
        Ok(form)
    }

    /// Reads the forms of `file`, with the fields given as flags, and the secrets from the environment.
    async fn read(&self, session: &Session, file: &Path) -> Result<Vec<NewForm>, CliError> {
        session.announce_stdin(file);
        let path = file.to_owned();
        let documents = read_input(move || document::read(&path)).await?;
        if documents.len() > 1 && (self.title.is_some() || self.slug.is_some()) {
            let message =
                format!("--title and --slug are for one form, and the file has {}", documents.len());
            return Err(CliError::usage(message));
        }
        let form = |document: Document| {
            let mut form = document.value.clone();
            let integrations = document.integrations(None, &session.environment)?;
            if let (Some(list), Some(integrations)) = (form.get_mut("integrations"), integrations) {
                *list = integrations;
            }
            let set = |form: Value, (name, text): (&str, &str)| Setting::named(name, text).apply(&form);
            let mut definition = self.fields().try_fold(form, set)?;
            let state = document.state();
            if state == Some(FormState::Closed) {
                definition.set(&["settings", "closed"], true.into());
            }
            let publish = state.map_or(self.publish, |state| state != FormState::Draft);
            Ok(NewForm { definition, document: Some(document), publish })
        };
        documents.into_iter().map(form).collect()
    }

    /// Creates the forms. Nothing is sent unless all of them are valid; size limits are checked by the server. `draft` holds
    /// the interactive input, if any.
    async fn create_all(
        &self,
        session: &Session,
        forms: &[NewForm],
        mut draft: Option<Draft>,
    ) -> Result<(), CliError> {
        for form in forms {
            self.check(form)?;
            if form.publish {
                require_question(&form.definition)?;
            }
        }
        // Only a dry run needs a store that exists.
        let client = if self.dry_run { session.client().await? } else { session.connect().await? };
        if forms.len() > 1 && !self.dry_run {
            self.dry_run_all(session, &client, forms).await?;
        }
        let mut batch = Batch::begin(session, forms.len());
        for form in forms {
            batch.record(form.file(), self.create(session, &client, form, draft.take()).await)?;
        }
        batch.finish()
    }

    /// Fails unless the server accepts all of `forms`. Creating only some would make a retry conflict with them.
    async fn dry_run_all(
        &self,
        session: &Session,
        client: &Client,
        forms: &[NewForm],
    ) -> Result<(), CliError> {
        let mut batch = Batch::begin(session, forms.len());
        for form in forms {
            let tried = match client.create_form(&form.definition.to_string(), true).await {
                Err(error) if error.problem().is_none_or(|problem| problem.errors.is_empty()) => {
                    return Err(error.into());
                }
                tried => tried.map(drop).map_err(|error| self.refused(form, error)),
            };
            batch.record(form.file(), tried)?;
        }
        batch.finish_with_worst().inspect_err(|_| session.output.status("nothing was stored"))
    }

    /// Validates `form`.
    ///
    /// # Errors
    /// If it is invalid, with all violations.
    fn check(&self, form: &NewForm) -> Result<Definition, CliError> {
        Definition::read(&form.definition, &Limits::UNLIMITED).map_err(|violations| {
            let problem = Problem { errors: violations, ..Problem::new(Code::ValidationFailed) };
            self.refused(form, ClientError::Problem(Box::new(problem)))
        })
    }

    fn form_from_flags(&self, title: &str) -> Value {
        let mut form: Object = vec![("title".to_owned(), title.into())];
        form.extend(self.slug.as_deref().map(|slug| ("slug".to_owned(), slug.into())));
        form.push(("questions".to_owned(), Value::Array(self.question.clone())));
        Value::Object(form)
    }

    /// Returns the form fields given as flags.
    fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("title", self.title.as_deref()), ("slug", self.slug.as_deref())]
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
    }

    /// Locates the server's error in the file, unless it is about a flag.
    fn refused(&self, NewForm { definition, document, .. }: &NewForm, error: ClientError) -> CliError {
        let is_flag = |violation: &&Violation| {
            self.fields().any(|(name, _)| violation.pointer.strip_prefix('/') == Some(name))
        };
        match error {
            ClientError::Problem(mut problem) if problem.errors.iter().any(|one| is_flag(&one)) => {
                problem.errors.retain(|one| document.is_none() || is_flag(&one));
                refused(None, definition, ClientError::Problem(problem))
            }
            error => refused(document.as_ref(), definition, error),
        }
    }

    async fn create(
        &self,
        session: &Session,
        client: &Client,
        form: &NewForm,
        draft: Option<Draft>,
    ) -> Result<(), CliError> {
        let output = &session.output;
        let created = client.create_form(&form.definition.to_string(), self.dry_run).await;
        let created = created.map_err(|error| self.refused(form, error))?;
        if self.dry_run {
            output.object(&created, || "(dry run)\n".to_owned())?;
            output.status("the server would accept it; nothing was stored");
            return Ok(());
        }
        draft.into_iter().for_each(Draft::discard);
        let (id, prefix) = (created.id.to_string(), session.command_prefix());
        let stored = |error: CliError| error.after(&format!("the form is stored as {id}"));
        if form.publish {
            let published = client.update_form(&id, r#"{"status":"published"}"#, None, false).await;
            let published = published.map_err(|error| not_published(session, &id, error))?;
            output.object(&published, || format!("{id}\n")).map_err(stored)?;
            output.success(&format!("created and published \"{}\"", published.title));
        } else {
            output.object(&created, || format!("{id}\n")).map_err(stored)?;
            let questions = answers::parse_questions(&created.questions);
            let count = count_noun(questions.len(), "question");
            output.success(&format!("created \"{}\" (draft, {count})", created.title));
            match answers::answerable_ids(&questions).is_empty() {
                true => output.status(&format!("next: add a question: {prefix} edit {id}")),
                false => output.status(&format!("next: {prefix} publish {id}")),
            }
        }
        report_generated_secrets(session, &id, &created.integrations);
        if self.file.is_none() {
            output.status(&format!("as a file: {prefix} show {id} -o yaml"));
        }
        Ok(())
    }
}

/// Whether the form has a question that takes an answer.
fn takes_answers(form: &Definition) -> bool {
    form.questions.iter().any(|question| question.kind.rules().takes_answer())
}

/// Reports the webhooks of `form` for which the server has made a secret: it is not printed beside the form's id.
pub(super) fn report_generated_secrets(session: &Session, form: &str, integrations: &[Box<RawValue>]) {
    for one in integrations.iter().filter_map(|one| json::parse(one.get()).ok()) {
        let text = |name: &str| one.get(name).and_then(Value::as_str);
        let (Some(name), Some(_)) = (text("name"), text("secret")) else { continue };
        let command = format!("{} integrations rotate-secret {form} {name}", session.command_prefix());
        session.output.status(&format!("the server made a secret for `{name}`; to get one: {command}"));
    }
}
