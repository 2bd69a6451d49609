//! `forms create`: a form from a file, from flags, or from what the person answers.

mod question_args;
mod wizard;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::api::{Code, Problem};
use crate::cli::commands::batch::Several;
use crate::cli::commands::{Group, Run, block_on};
use crate::cli::connection::session::Session;
use crate::cli::input::answers;
use crate::cli::input::assignment::Setting;
use crate::cli::input::document::violations::draw_violations;
use crate::cli::input::document::violations::rejected;
use crate::cli::input::document::{self, Document};
use crate::cli::input::draft::Draft;
use crate::cli::input::prompt;
use crate::cli::output::columns::{Columns, FORM};
use crate::cli::output::diagnostics::Report;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::counted;
use crate::cli::output::shell_quote::quoted;
use crate::client::{Client, ClientError};
use crate::domain::form::definition::Definition;
use crate::domain::json::{Object, Value};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Create a form from a file, from flags, or step by step
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the new form's id. The form is a draft until it is published. A file
may hold several forms, set apart by lines of ---. Without a file and without
--title the form is asked for at the terminal; if it is not created, what you
entered is kept in a file. With -f, --title and --slug take the place of those
in the file.

A question is TYPE:TITLE, with a ! behind the title if it must be answered.
Where there is something to choose from, it follows behind another colon, with
commas between: single_choice:Colour:red,green. A matrix has rows, a colon and
columns. For all else a question can have, write a file.

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
    /// One question of it: email:'Your email!'; repeat for more
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
    const GROUP: Group = Group::Write;
    const SUMMARY: &'static str = "create a form";

    fn columns(&self) -> Columns {
        FORM
    }

    fn run(self, session: &Session) -> Result<(), CliError> {
        block_on(session, self.execute(session))
    }
}

impl Create {
    /// Creates the form, or each form of the file. Nothing is sent unless all of them are fit; sizes are for the server
    /// to say.
    async fn execute(mut self, session: &Session) -> Result<(), CliError> {
        if let Some(stray) = &self.stray {
            let help = match self.title {
                Some(_) => format!("a question follows its flag: -Q {}", quoted(stray)),
                None => format!("{} create -f {}", session.again(), quoted(stray)),
            };
            return Err(CliError::usage_with_help(format!("unexpected argument `{stray}`"), help));
        }
        match (&self.file, &self.title) {
            (Some(file), _) => self.of_file(session, file).await,
            (None, Some(title)) => {
                let form = self.of_flags(title);
                self.unwritten(session, &form, None).await
            }
            (None, None) if session.may_ask() => self.ask(session).await,
            (None, None) => {
                let help = "add -f FILE, or --title T with -Q TYPE:TITLE for each question";
                Err(CliError::usage_with_help("there is no form to create, and no terminal to ask at", help))
            }
        }
    }

    /// Asks for the form. What was entered is kept unless the form is created.
    async fn ask(&mut self, session: &Session) -> Result<(), CliError> {
        // A mistake in a flag, or a server that does not answer, costs no answers.
        definition(&self.of_flags("Title"))?;
        session.probe().await?;
        let mut draft = Draft::create(session, "new", "", &self.continuing())?;
        let answers = self.answers(session, &draft);
        let form = prompt::dialogue(&session.output, "cancelled, nothing was created", answers).await?;
        draft.continue_with(session, &self.continuing());
        self.unwritten(session, &form, Some(draft)).await
    }

    /// The command that continues with a form that was kept.
    fn continuing(&self) -> String {
        let publish = if self.publish { " --publish" } else { "" };
        let dry_run = if self.dry_run { " --dry-run" } else { "" };
        format!("create{publish}{dry_run}")
    }

    async fn answers(&mut self, session: &Session, draft: &Draft) -> Result<Value, CliError> {
        let form = wizard::ask(session, draft, self.of_flags("")).await?;
        if !self.publish && !self.dry_run && question_args::asks_something(&form) {
            self.publish = prompt::yes("Publish it at once?").await?;
        }
        Ok(form)
    }

    async fn of_file(&self, session: &Session, file: &Path) -> Result<(), CliError> {
        session.warn_of_terminal(file);
        let documents = document::read(file, &Limits::UNLIMITED)?;
        if documents.len() > 1 && (self.title.is_some() || self.slug.is_some()) {
            let message =
                format!("--title and --slug are for one form, and the file has {}", documents.len());
            return Err(CliError::usage(message));
        }
        for document in &documents {
            self.expect_a_question(&definition(&self.over(document)?)?)?;
        }
        let client = self.client(session).await?;
        if documents.len() > 1 && !self.dry_run {
            rehearse(session, &client, &documents).await?;
        }
        let mut several = Several::begin(session, documents.len());
        for document in &documents {
            let refused = |error| self.refused(document, error);
            let form = self.over(document)?;
            several.note(&document.file, self.create(session, &client, &form, refused, None).await)?;
        }
        several.end()
    }

    /// A form that asks for no answer would stay a draft.
    fn expect_a_question(&self, form: &Definition) -> Result<(), CliError> {
        if !self.publish || form.questions.iter().any(|question| question.kind.rules().takes_answer()) {
            return Ok(());
        }
        let what = format!("\"{}\" has no question that takes an answer; nothing was stored", form.title);
        let problem = Problem::new(Code::FormHasNoQuestions).detail(what);
        let help = "add a question that takes an answer, or leave out --publish";
        Err(CliError::of_client(ClientError::Problem(Box::new(problem)), help))
    }

    fn of_flags(&self, title: &str) -> Value {
        let mut form: Object = vec![("title".to_owned(), title.into())];
        form.extend(self.slug.as_deref().map(|slug| ("slug".to_owned(), slug.into())));
        form.push(("questions".to_owned(), Value::Array(self.question.clone())));
        Value::Object(form)
    }

    /// The fields of the form itself that flags give.
    fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("title", self.title.as_deref()), ("slug", self.slug.as_deref())]
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
    }

    /// The form in the file, with the fields that flags give.
    fn over(&self, document: &Document) -> Result<Value, CliError> {
        let form = document.value().clone();
        self.fields().try_fold(form, |form, (name, text)| Setting::named(name, text).apply(&form))
    }

    /// The server's refusal of the form in the file: drawn there, unless it is about a flag.
    fn refused(&self, document: &Document, error: ClientError) -> CliError {
        let ClientError::Problem(problem) = &error else { return in_file(document, error) };
        let is_flag = |violation: &&Violation| {
            self.fields().any(|(name, _)| violation.pointer.strip_prefix('/') == Some(name))
        };
        let flags: Vec<_> = problem.errors.iter().filter(is_flag).cloned().collect();
        match flags.is_empty() {
            true => in_file(document, error),
            false => rejected(document.value(), &flags, (**problem).clone()),
        }
    }

    /// Creates a form that is in no file of the person's own; `draft` has it if they were asked.
    async fn unwritten(&self, session: &Session, form: &Value, draft: Option<Draft>) -> Result<(), CliError> {
        self.expect_a_question(&definition(form)?)?;
        let client = self.client(session).await?;
        let refused = |error: ClientError| match error {
            ClientError::Problem(problem) if !problem.errors.is_empty() => {
                rejected(form, &problem.errors, (*problem).clone())
            }
            error => error.into(),
        };
        self.create(session, &client, form, refused, draft).await
    }

    async fn client(&self, session: &Session) -> Result<Client, CliError> {
        if self.dry_run { session.client().await } else { session.connect().await }
    }

    async fn create(
        &self,
        session: &Session,
        client: &Client,
        form: &Value,
        refused: impl Fn(ClientError) -> CliError,
        draft: Option<Draft>,
    ) -> Result<(), CliError> {
        let (output, form) = (&session.output, form.to_string());
        if self.dry_run {
            let tried = client.create_form(&form, true).await.map_err(refused)?;
            output.object(&tried, || "(dry run)\n".to_owned())?;
            output.say("the server would take it; nothing was stored");
            return Ok(());
        }
        let created = client.create_form(&form, false).await.map_err(refused)?;
        if let Some(draft) = draft {
            draft.discard();
        }
        let (id, again) = (created.id.to_string(), session.again());
        if self.publish {
            let published =
                client.update_form(&id, r#"{"status":"published"}"#, None, false).await.map_err(|error| {
                    let notes = vec![format!("{id} was created and stays a draft")];
                    CliError::Client { error, notes, help: Some(format!("{again} publish {id}")) }
                })?;
            output.object(&published, || format!("{id}\n"))?;
            output.done(&format!("created and published \"{}\"", published.title));
        } else {
            output.object(&created, || format!("{id}\n"))?;
            let questions = answers::questions(&created.questions);
            let count = counted(questions.len(), "question");
            output.done(&format!("created \"{}\" (draft, {count})", created.title));
            match answers::ids(&questions).is_empty() {
                true => output.say(&format!("next: add a question: {again} edit {id}")),
                false => output.say(&format!("next: {again} publish {id}")),
            }
        }
        if self.file.is_none() {
            output.say(&format!("as a file: {again} show {id} -o yaml"));
        }
        Ok(())
    }
}

/// `form` as a definition.
///
/// # Errors
/// With all that is wrong with it.
fn definition(form: &Value) -> Result<Definition, CliError> {
    Definition::read(form, &Limits::UNLIMITED)
        .map_err(|violations| rejected(form, &violations, Problem::new(Code::ValidationFailed)))
}

/// Fails unless the server would take all of `documents`: some of them alone would be in the way of another try.
async fn rehearse(session: &Session, client: &Client, documents: &[Document]) -> Result<(), CliError> {
    let mut several = Several::begin(session, documents.len());
    for document in documents {
        let tried = match client.create_form(&document.body(), true).await {
            Err(error) if error.problem().is_none_or(|problem| problem.errors.is_empty()) => {
                return Err(error.into());
            }
            tried => tried.map(drop).map_err(|error| in_file(document, error)),
        };
        several.note(&document.file, tried)?;
    }
    several.end_as_worst().inspect_err(|_| session.output.say("nothing was stored"))
}

/// The server's problems, drawn in the file they are about.
pub(super) fn in_file(document: &Document, error: ClientError) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let findings = draw_violations(document, &problem.errors);
            Report { problem: *problem, ..Report::of_file(&document.file, findings) }.into()
        }
        error => error.into(),
    }
}
