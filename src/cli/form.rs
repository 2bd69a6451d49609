//! Commands on forms.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::api::{FormCreated, FormDetail, FormEntry};
use crate::cli::answers;
use crate::cli::diagnostics::{Report, draw_violations};
use crate::cli::document::{self, Document};
use crate::cli::exit::CliError;
use crate::cli::failure;
use crate::cli::listing::{Listing, Want};
use crate::cli::output::{Format, value_of, visible};
use crate::cli::prompt::Confirmation;
use crate::cli::session::Session;
use crate::cli::several::Several;
use crate::cli::table::{Cell, Table};
use crate::client::{Client, ClientError, FormQuery};
use crate::clock::Timestamp;
use crate::domain::admission::Shut;
use crate::domain::form::Status;
use crate::domain::json::Value;
use crate::domain::limits::Limits;
use crate::id::FormId;

/// Create a form from a file
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the new form's id. The form is a draft until it is published. A file
may hold several forms, set apart by lines of ---.

Examples:
  forms create -f survey.yaml
  id=$(forms create -f survey.yaml)
  forms create -f survey.yaml --publish
  forms show frm_7k2m9q4x1abz -o yaml | forms create -f -")]
pub struct Create {
    /// File in YAML or JSON, - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Publish it at once
    #[arg(long)]
    publish: bool,
    /// Let the server check it, store nothing
    #[arg(long, conflicts_with = "publish")]
    dry_run: bool,
}

impl Create {
    /// Creates each form of the file. Nothing is sent unless all of them are fit; sizes are for the server to say.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        session.warn_of_terminal(&self.file);
        let documents = document::read(&self.file, &Limits::BOUNDLESS)?;
        let client = if self.dry_run { session.client().await } else { session.connect().await }?;
        let mut several = Several::begin(session, documents.len());
        for document in &documents {
            several.note(&document.file, self.create(session, &client, document).await)?;
            if several.has_failed() {
                break;
            }
        }
        several.end()
    }

    async fn create(&self, session: &Session, client: &Client, document: &Document) -> Result<(), CliError> {
        let output = &session.output;
        if self.dry_run {
            let tried = client.try_form(&document.body()).await.map_err(|error| in_file(document, error))?;
            output.object(&tried, || "(dry run)\n".to_owned())?;
            output.say("the server would take it; nothing was stored");
            return Ok(());
        }
        let created = client.create_form(&document.body()).await.map_err(|error| in_file(document, error))?;
        let id = created.id.to_string();
        if self.publish {
            let published =
                client.update_form(&id, &json!({"status": "published"})).await.map_err(|error| {
                    let notes = vec![format!("{id} was created and stays a draft")];
                    CliError::Client { error, notes, help: Some(format!("forms publish {id}")) }
                })?;
            output.object(&published, || format!("{id}\n"))?;
            output.say(&format!("created and published \"{}\"", published.title));
            return Ok(());
        }
        output.object(&created, || format!("{id}\n"))?;
        output.say(&format!("created \"{}\" (draft, {})", created.title, questions(&created)));
        output.say(&format!("next: forms publish {id}"));
        Ok(())
    }
}

/// The server's problems, drawn in the file they are about.
fn in_file(document: &Document, error: ClientError) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let findings = draw_violations(document, &problem.errors);
            Report { code: problem.code, ..Report::of_file(&document.file, findings) }.into()
        }
        ClientError::Unsure(_) => CliError::of_client(error, "forms list"),
        other => other.into(),
    }
}

fn questions(form: &FormCreated) -> String {
    match answers::questions(&form.questions).len() {
        1 => "1 question".to_owned(),
        count => format!("{count} questions"),
    }
}

/// Open forms for answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. One that is published already stays so.

Examples:
  forms publish frm_7k2m9q4x1abz")]
pub struct Publish {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
}

/// Take forms back to draft: they take no more answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. Its answers stay. One that is a draft already
stays so.

Examples:
  forms unpublish frm_7k2m9q4x1abz")]
pub struct Unpublish {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
}

/// Close published forms: they take no more answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. It stays published, its answers stay, and `forms
publish` opens it again. One that is closed already stays so.

Examples:
  forms close frm_7k2m9q4x1abz")]
pub struct Close {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM")]
    forms: Vec<String>,
}

impl Publish {
    /// Publishes the forms, those too that were closed.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let patch = json!({"status": Status::Published, "settings": {"closed": null}});
        change(session, &self.forms, &patch).await
    }
}

impl Unpublish {
    /// Takes the forms back to draft.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"status": Status::Draft})).await
    }
}

impl Close {
    /// Closes the forms.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"settings": {"closed": true}})).await
    }
}

/// Changes each form alike, and says what it has come to.
async fn change(session: &Session, forms: &[String], patch: &serde_json::Value) -> Result<(), CliError> {
    let client = session.client().await?;
    each(session, forms, async |form| {
        let changed = client.update_form(form, patch).await?;
        session.output.object(&changed, || format!("{}\n", changed.id))?;
        session.output.say(&format!("\"{}\" {}", changed.title, state(&changed)));
        Ok(())
    })
    .await
}

/// Whether the form takes answers, and why not.
fn state(form: &FormDetail) -> String {
    let settings = &form.settings;
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    match form.accepting_reason {
        None => "is published: it takes answers".to_owned(),
        Some(Shut::Draft) => "is a draft: it takes no answers".to_owned(),
        Some(Shut::Closed) => "is closed: it takes no answers".to_owned(),
        Some(Shut::NotOpenYet) => format!("takes answers from {} on", time(settings.opens_at)),
        Some(Shut::Expired) => format!("takes no answers since {}", time(settings.closes_at)),
        Some(Shut::Full) => {
            format!("has all {} answers it takes", settings.max_responses.unwrap_or_default())
        }
    }
}

/// Does the same to each form; one that fails does not keep the others.
async fn each(
    session: &Session,
    forms: &[String],
    act: impl AsyncFn(&str) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut several = Several::begin(session, forms.len());
    for form in forms {
        several.note(form, act(form).await)?;
    }
    several.end()
}

/// List forms
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_long_help = "\
Newest first: id, status, responses, updated, title. Of forms in the trash the
time is that of their deletion.

Examples:
  forms list
  forms list --status published
  forms list --trashed
  forms list -o jsonl | jq -r .title"
)]
pub struct List {
    /// Show so many at most
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
    /// Only drafts, or only published ones
    #[arg(long, value_name = "STATUS", value_parser = ["draft", "published"])]
    status: Option<String>,
    /// Those in the trash
    #[arg(long)]
    trashed: bool,
}

impl List {
    /// Lists the forms.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let want = Want::of(self.limit, self.all);
        let format = session.output.format;
        let status = self.status.as_deref();
        let query = FormQuery { status, trashed: self.trashed, count: want.may_be_cut(format) };
        let mut pages = client.list_forms(&query, want.page(format));
        let now = session.now();
        let row = |form: &FormEntry| {
            vec![
                Cell::text(form.id.to_string()),
                Cell::text(form.status.name()),
                Cell::number(form.response_count),
                Cell::time(form.deleted_at.unwrap_or(form.updated_at), now),
                Cell::text(&*form.title),
            ]
        };
        let body = |forms| Value::Object(vec![("forms".to_owned(), Value::Array(forms))]);
        let moment = if self.trashed { "deleted" } else { "updated" };
        let headers = ["id", "status", "responses", moment, "title"].map(str::to_owned).to_vec();
        let listing = Listing { output: &session.output, want, raw: false, headers, row: &row, body: &body };
        if let Some(shown) = listing.show(&mut pages).await? {
            let of = pages.total().map(|total| format!(" of {}", failure::grouped(total)));
            let of = of.unwrap_or_default();
            session.output.say(&format!("showing {shown}{of} — use --all or --limit N"));
        }
        Ok(())
    }
}

/// Show one form
#[derive(Debug, Args)]
#[command(
    visible_alias = "get",
    after_long_help = "\
With -o yaml: the file the form could be created from, without id, status and
times.

Examples:
  forms show frm_7k2m9q4x1abz
  forms show frm_7k2m9q4x1abz -o yaml > survey.yaml
  forms show frm_7k2m9q4x1abz -o json | jq .response_count"
)]
pub struct Show {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
}

impl Show {
    /// Shows the form.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let form = session.client().await?.get_form(&self.form).await?;
        match session.output.format {
            Format::Yaml => session.output.data(&document::authoring_file(&form)?),
            Format::Table | Format::Json | Format::Jsonl | Format::Csv => {
                session.output.object(&form, || summary(&form))
            }
        }
    }
}

fn summary(form: &FormDetail) -> String {
    let accepting = if form.accepting { "yes".to_owned() } else { format!("no, it {}", state(form)) };
    let mut text = format!("id:         {}\ntitle:      {}\n", form.id, visible(&form.title));
    if let Some(description) = &form.description {
        let lines: Vec<_> = description.trim_end().lines().map(visible).collect();
        text += &format!("about:      {}\n", lines.join("\n            "));
    }
    if let Some(slug) = &form.slug {
        text += &format!("slug:       {slug}\n");
    }
    text += &format!("status:     {}\n", form.status.name());
    text += &format!("accepting:  {accepting}\n");
    text += &format!("responses:  {}\n", form.response_count);
    text += &format!("version:    {}\n", form.version);
    text += &format!("created:    {}\nupdated:    {}\n", form.created_at, form.updated_at);
    if let Some(published) = form.published_at {
        text += &format!("published:  {published}\n");
    }
    text + "questions:\n" + &question_lines(form) + &setting_lines(form)
}

fn setting_lines(form: &FormDetail) -> String {
    let Ok(Value::Object(settings)) = value_of(&form.settings) else { return String::new() };
    let title = if settings.is_empty() { "" } else { "settings:\n" };
    let line = |(name, value): (String, Value)| match value {
        Value::String(text) => format!("  {name}: {}\n", visible(&text)),
        other => format!("  {name}: {}\n", visible(&other.to_string())),
    };
    settings.into_iter().map(line).fold(title.to_owned(), |text, line| text + &line)
}

fn question_lines(form: &FormDetail) -> String {
    let cell = |question: &Value, name| question.get(name).map_or_else(|| Cell::text(""), Cell::value);
    let mut table = Table::default();
    for question in &answers::questions(&form.questions) {
        let required = question.get("required") == Some(&Value::Bool(true));
        let mark = Cell::text(if required { "required" } else { "" });
        table.rows.push(vec![cell(question, "id"), cell(question, "type"), mark, cell(question, "title")]);
    }
    table.aligned().lines().map(|line| format!("  {line}\n")).collect()
}

/// Move forms and their answers to the trash, or erase them
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_long_help = "\
Asks first; where nobody can be asked, --yes is needed. Prints the id of each
form.

Examples:
  forms delete frm_7k2m9q4x1abz
  forms delete --yes frm_7k2m9q4x1abz
  forms delete --purge frm_7k2m9q4x1abz"
)]
pub struct Delete {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Erase at once and for ever, answers included
    #[arg(long)]
    purge: bool,
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
}

impl Delete {
    /// Deletes the forms.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        each(session, &self.forms, async |form| self.delete(session, &client, form).await).await
    }

    async fn delete(&self, session: &Session, client: &Client, id: &str) -> Result<(), CliError> {
        if self.dry_run {
            let form = client.get_form(id).await?;
            session.output.object(&json!({"id": form.id, "deleted": false}), || format!("{}\n", form.id))?;
            session.output.say(&format!("would delete {}", named(&form)));
            return Ok(());
        }
        let id = &if self.yes && id.parse::<FormId>().is_ok() {
            id.to_owned()
        } else {
            self.named(session, client, id).await?
        };
        client.delete_form(id, self.purge).await?;
        session.output.object(&json!({"id": id, "deleted": true}), || format!("{}\n", visible(id)))?;
        if self.purge {
            session.output.say("erased");
        } else {
            session.output.say(&format!("moved to the trash; forms restore {} takes it out", visible(id)));
        }
        Ok(())
    }

    /// The id of the form that is to go, once that was confirmed.
    async fn named(&self, session: &Session, client: &Client, form: &str) -> Result<String, CliError> {
        let form = client.get_form(form).await?;
        if !self.yes {
            self.ask(session, &form).await?;
        }
        Ok(form.id.to_string())
    }

    /// A form with answers asks for its slug to be typed, or its id where it has none; one without for a y. The question names the target.
    async fn ask(&self, session: &Session, form: &FormDetail) -> Result<(), CliError> {
        let verb = if self.purge { "Erase" } else { "Delete" };
        let question = format!("{verb} {} on {}?", named(form), session.target_name()?);
        let how = match form.response_count {
            0 => Confirmation::Yes,
            _ => Confirmation::Typed(form.slug.clone().unwrap_or_else(|| form.id.to_string())),
        };
        session.confirm(&format!("deleting {}", named(form)), question, how).await
    }
}

/// Take forms and their answers out of the trash
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the id of each form. `forms list --trashed` shows what can be restored;
what has lain in the trash for longer than the server keeps it is erased.

Examples:
  forms restore frm_7k2m9q4x1abz
  forms list --trashed -o jsonl | jq -r .id | xargs forms restore")]
pub struct Restore {
    /// Forms, by id or slug
    #[arg(required = true, value_name = "FORM")]
    forms: Vec<String>,
}

impl Restore {
    /// Restores the forms.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        each(session, &self.forms, async |form| {
            let restored = client.restore_form(form).await?;
            session.output.object(&restored, || format!("{}\n", restored.id))?;
            session.output.say(&format!("{} is back", named(&restored)));
            Ok(())
        })
        .await
    }
}

fn named(form: &FormDetail) -> String {
    let responses = if form.response_count == 1 { "response" } else { "responses" };
    format!("\"{}\" ({} {responses})", form.title, failure::grouped(form.response_count))
}
