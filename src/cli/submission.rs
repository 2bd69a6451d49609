//! Commands on submissions.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::value::RawValue;

use crate::api::SubmissionDetail;
use crate::cli::answers::{self, Written};
use crate::cli::columns::{self, Columns, DELETED, OF_SUBMISSION, SUBMISSION};
use crate::cli::document;
use crate::cli::exit::CliError;
use crate::cli::failure::grouped;
use crate::cli::filter;
use crate::cli::listing::{Listing, Want};
use crate::cli::output::{Format, value_of, visible};
use crate::cli::session::Session;
use crate::cli::submission_trash::{Delete, Restore};
use crate::cli::table::{Cell, Table};
use crate::client::SubmissionQuery;
use crate::domain::json::{self, Value};

/// Send answers to a form
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each answer is KEY=VALUE, the key being the question's id: `forms show FORM`
lists them. The value is everything after the first `=`, and is read by the
question's type: a number, true, false, yes or no, and for a matrix JSON; all
else is text. A list is made by giving its key several times. KEY=@FILE takes
the text from a file, @- from standard input; to begin a text with @ write
KEY=\\@text. KEY:=JSON is sent as it is. Prints the submission's id.

--file takes one record, {\"answers\": {\"q1\": \"hello\"}} or the inner map alone,
with values as the API takes them; KEY=VALUE beside it goes before what the
file has. Arguments can be seen by other users of this machine while the
command runs; what is in a file cannot.

Examples:
  forms submit frm_7k2m9q4x1abz q1=hello
  forms submit frm_7k2m9q4x1abz name=\"Ann Lee\" email=ann@example.com score=5
  forms submit frm_7k2m9q4x1abz colour=red colour=blue comment=@comment.txt
  forms submit frm_7k2m9q4x1abz 'other:={\"other\":\"purple\"}'
  forms submit frm_7k2m9q4x1abz --file answers.json
  forms submit frm_7k2m9q4x1abz --dry-run q1=hello")]
pub struct Submit {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Answers
    #[arg(value_name = "KEY=VALUE")]
    answers: Vec<String>,
    /// Answers in JSON or YAML, - for standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Check the answers, store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Submit {
    /// Sends the answers. All that is wrong with them is told before anything is sent.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let written = self.read(session)?;
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let output = &session.output;
        let fitting = answers::fit(&form, &written, session.now());
        // A program hears of a failure in one document alone.
        if fitting.is_ok() || output.format == Format::Table {
            answers::left_out(&form, &written).iter().for_each(|warning| output.warn(warning));
        }
        let body = fitting?;
        let refused = |error| answers::refused(&form, &written, error);
        if self.dry_run {
            let tried = client.try_submission(&self.form, &body).await.map_err(refused)?;
            output.object(&tried, || "(dry run)\n".to_owned())?;
            output.say("the answers would be taken; nothing was stored");
            return Ok(());
        }
        let made = client.create_submission(&self.form, &body).await.map_err(refused)?;
        output.object(&made, || format!("{}\n", made.id))?;
        output.say(&format!("submitted to \"{}\"", form.title));
        Ok(())
    }

    fn read(&self, session: &Session) -> Result<Written, CliError> {
        let file = self.file.as_deref();
        let given = answers::parse(&self.answers, file.as_slice(), |path| {
            session.warn_of_terminal(path);
            answers::read_file(path)
        })?;
        let read = |path| {
            session.warn_of_terminal(path);
            document::record(path)
        };
        Ok(Written { given, record: file.map(read).transpose()? })
    }
}

/// List, show, delete and restore the answers to a form
#[derive(Debug, Args)]
#[command(
    visible_alias = "submissions",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = "\
`forms responses FORM` is short for `forms responses list FORM`; `forms help
responses list` has more about --where.

Examples:
  forms responses frm_7k2m9q4x1abz
  forms responses frm_7k2m9q4x1abz -o csv > answers.csv
  forms responses frm_7k2m9q4x1abz -o jsonl | jq -r .answers.q1"
)]
pub struct Responses {
    #[command(subcommand)]
    command: Option<ResponsesCommand>,
    #[command(flatten)]
    list: Option<ResponsesList>,
}

#[derive(Debug, Subcommand)]
enum ResponsesCommand {
    List(ResponsesList),
    Show(ResponsesShow),
    Delete(Delete),
    Restore(Restore),
}

/// List the answers to a form, newest first
#[derive(Debug, Args)]
#[command(after_long_help = "\
Columns are id, submitted_at, and one for each question; with --trashed it is
deleted_at instead.

--where takes QUESTION=VALUE or QUESTION.OPERATOR=VALUE, and nothing that a shell
would take for its own. The operators are those of conditions: eq, ne, lt, lte,
gt, gte, in (VALUE,VALUE), includes (an option of several, or part of a text),
matches (a regular expression) and answered (true or false). Given several
times, all must hold.

Examples:
  forms responses list frm_7k2m9q4x1abz
  forms responses list frm_7k2m9q4x1abz --limit 10 -o json
  forms responses list frm_7k2m9q4x1abz --since 2026-11-01T00:00:00Z
  forms responses list frm_7k2m9q4x1abz --where score.gte=4 --where colour=red")]
struct ResponsesList {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Show so many at most
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    all: bool,
    /// Only those of this time and later: 2026-11-20T09:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only those with this answer: colour=red, score.gte=4
    #[arg(long = "where", value_name = "QUESTION=VALUE", value_parser = filter::parse)]
    tests: Vec<filter::Test>,
    /// Those in the trash
    #[arg(long, conflicts_with_all = ["since", "until", "tests"])]
    trashed: bool,
    /// In CSV: leave text that a spreadsheet would run as a formula as it is
    #[arg(long)]
    raw: bool,
}

/// Show one submission
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  forms responses show frm_7k2m9q4x1abz sub_01k3v8m2f4q6s8t0w2y4z6a8bc")]
struct ResponsesShow {
    /// Form, by id or slug
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    form: String,
    /// Submission id
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    submission: String,
}

impl Responses {
    /// What there is to choose from with `--columns`.
    pub fn columns(&self) -> Columns {
        match &self.command {
            Some(ResponsesCommand::Restore(_)) => SUBMISSION,
            Some(ResponsesCommand::Delete(_)) => DELETED,
            Some(ResponsesCommand::List(_) | ResponsesCommand::Show(_)) | None => Columns::OfList,
        }
    }

    /// Lists, shows, deletes or restores submissions.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        match (self.command, self.list) {
            (Some(ResponsesCommand::Show(show)), _) => show.run(session).await,
            (Some(ResponsesCommand::Delete(delete)), _) => delete.run(session).await,
            (Some(ResponsesCommand::Restore(restore)), _) => restore.run(session).await,
            (Some(ResponsesCommand::List(list)), _) | (None, Some(list)) => list.run(session).await,
            (None, None) => Err(CliError::usage("which form?")),
        }
    }
}

impl ResponsesList {
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let want = Want::of(self.limit, self.all);
        let query = SubmissionQuery {
            since: self.since,
            until: self.until,
            answers: self.tests,
            trashed: self.trashed,
        };
        let mut pages = client.list_submissions(&self.form, &query, want.page(session.output.format));
        let listed = answers::questions(&form.questions);
        let ids = answers::ids(&listed);
        let now = session.now();
        let others = std::cell::Cell::new(false);
        let row = |submission: &SubmissionDetail| {
            let answers = json::parse(submission.answers.get()).unwrap_or(Value::Null);
            if let Value::Object(members) = &answers
                && members.iter().any(|(key, _)| !ids.contains(key))
            {
                others.set(true);
            }
            let moment = submission.deleted_at.unwrap_or(submission.submitted_at);
            let fixed = [Cell::text(submission.id.to_string()), Cell::time(moment, now)];
            let answer = |id: &String| answers.get(id).map_or_else(|| Cell::text(""), Cell::value);
            fixed.into_iter().chain(ids.iter().map(answer)).collect()
        };
        let body = |submissions| {
            Value::Object(vec![
                ("submissions".to_owned(), Value::Array(submissions)),
                ("next_cursor".to_owned(), Value::Null),
            ])
        };
        let moment = if self.trashed { "deleted_at" } else { "submitted_at" };
        let fixed = ["id", moment].into_iter().map(str::to_owned);
        let headers = fixed.chain(ids.iter().cloned()).collect();
        let output = &*session.output;
        let listing = Listing { output, want, raw: self.raw, headers, row: &row, body: &body };
        let in_flags = |error| filter::in_flags(error, &query.answers, &listed, &form.title);
        if let Some(shown) = listing.show(&mut pages).await.map_err(in_flags)? {
            // To count those in the trash, or those that a filter takes, the server would have to look at all.
            let of = if query.is_empty() {
                format!(" of {}", grouped(form.response_count))
            } else {
                String::new()
            };
            output.say(&format!("showing {shown}{of} — use --all or --limit N"));
        }
        if others.get() {
            output.warn("answers to questions that the form has no more are left out; -o jsonl has them");
        }
        Ok(())
    }
}

impl ResponsesShow {
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let submission = client.get_submission(&self.form, &self.submission).await?;
        let output = &session.output;
        if !matches!(output.format, Format::Table | Format::Csv) {
            return output.object(&submission, String::new);
        }
        let form = client.get_form(&self.form).await?;
        let listed = answers::questions(&form.questions);
        if output.format == Format::Table && output.columns.is_empty() {
            return output.write(&summary(&submission, &listed));
        }
        let table = table(&submission, &answers::ids(&listed))?;
        columns::find(&output.columns, &table.headers)?;
        output.rows(&table.only(&output.columns))
    }
}

/// What is shown of a submission, with a column for each of the questions with these `ids` in place of the answers.
fn table(submission: &SubmissionDetail, ids: &[String]) -> Result<Table, CliError> {
    let (whole, answers) = (value_of(submission)?, value_of(&submission.answers)?);
    let cell = |object: &Value, name: &str| object.get(name).map_or_else(|| Cell::text(""), Cell::value);
    let beside = || OF_SUBMISSION.iter().copied().filter(|name| *name != "answers");
    let cells = beside().map(|name| cell(&whole, name));
    let row = cells.chain(ids.iter().map(|id| cell(&answers, id))).collect();
    let headers = beside().map(str::to_owned).chain(ids.iter().cloned()).collect();
    Ok(Table { headers, rows: vec![row] })
}

fn summary(submission: &SubmissionDetail, questions: &[Value]) -> String {
    let mut text = format!(
        "id:         {}\nform:       {}\nsubmitted:  {}\n",
        submission.id, submission.form_id, submission.submitted_at
    );
    if let Some(edited) = submission.updated_at {
        text += &format!("edited:     {edited}\n");
    }
    if let Some(metadata) = &submission.metadata {
        text += &format!("metadata:\n{}", member_lines(metadata, &[]));
    }
    text + "answers:\n" + &member_lines(&submission.answers, questions)
}

/// A line for each member, called by the title of the question that it answers.
fn member_lines(object: &RawValue, questions: &[Value]) -> String {
    let Ok(Value::Object(members)) = json::parse(object.get()) else { return String::new() };
    let line = |(key, value): (String, Value)| {
        let value = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let asked = questions.iter().find(|question| question.get("id") == Some(&key.as_str().into()));
        let name = match asked.and_then(|question| question.get("title")) {
            Some(Value::String(title)) => format!("{title} ({key})"),
            _ => key,
        };
        format!("  {}: {}\n", visible(&name), visible(&value))
    };
    members.into_iter().map(line).collect()
}
