//! `forms show`: one form as text, JSON, or the file it can be created from.

mod outline;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::api::FormDetail;
use crate::cli::commands::Run;
use crate::cli::commands::show::outline::outline;
use crate::cli::connection::session::Session;
use crate::cli::input::answers;
use crate::cli::output::columns::{Columns, FORM};
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::humanize;
use crate::cli::output::integrations::describe;
use crate::cli::output::yaml;
use crate::cli::output::{Format, value_of, visible, wrap};
use crate::domain::json::Value;

/// Show one form
#[derive(Debug, Args)]
#[command(
    visible_alias = "get",
    after_long_help = "\
Shows the form's settings, and for each question its id, type, title and
settings, whether it is required, and when it is shown. With -o yaml: the file
the form can be created from, without id, status and times.

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

impl Run for Show {
    fn columns(&self) -> Columns {
        FORM
    }

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let form = session.client().await?.get_form(&self.form).await?;
        match session.output.format {
            Format::Yaml => session.output.data(&yaml::authoring_file(&form)?),
            Format::Table | Format::Json | Format::Jsonl | Format::Csv | Format::Xlsx => {
                session.output.object(&form, || summary(&form))
            }
        }
    }
}

fn summary(form: &FormDetail) -> String {
    let accepting = match &form.accepting_reason {
        Some(reason) => format!("no: {}", visible(&reason.to_string()).replace('_', " ")),
        None => "yes".to_owned(),
    };
    let mut text = format!("id:         {}\ntitle:      {}\n", form.id, paragraph(&form.title));
    if let Some(description) = &form.description {
        let lines: Vec<_> = description.trim_end().lines().map(paragraph).collect();
        text += &format!("about:      {}\n", lines.join(BELOW));
    }
    if let Some(slug) = &form.slug {
        text += &format!("slug:       {slug}\n");
    }
    text += &format!("status:     {}\n", visible(&form.status.to_string()));
    text += &format!("accepting:  {accepting}\n");
    text += &format!("responses:  {}\n", form.response_count);
    text += &format!("version:    {}\n", form.version);
    text += &format!("created:    {}\nupdated:    {}\n", form.created_at, form.updated_at);
    if let Some(published) = form.published_at {
        text += &format!("published:  {published}\n");
    }
    text + "questions:\n"
        + &outline(&answers::parse_questions(&form.questions))
        + &setting_lines(form)
        + &integration_lines(form)
}

/// A line break and the indentation of values.
const BELOW: &str = "\n            ";

/// Wraps a line of text beside its name, in 80 columns.
fn paragraph(line: &str) -> String {
    wrap(&visible(line), 68).replace('\n', BELOW)
}

fn integration_lines(form: &FormDetail) -> String {
    let Value::Array(list) = yaml::integrations(form) else { return String::new() };
    let title = if list.is_empty() { "" } else { "integrations:\n" };
    let line = |one: &Value| {
        let name = one.get("name").and_then(Value::as_str).unwrap_or_default();
        format!("  {}: {}\n", visible(name), visible(&describe(one)))
    };
    list.iter().map(line).fold(title.to_owned(), |text, line| text + &line)
}

fn setting_lines(form: &FormDetail) -> String {
    let Ok(Value::Object(settings)) = value_of(&form.settings) else { return String::new() };
    let title = if settings.is_empty() { "" } else { "settings:\n" };
    let line = |(name, value): &(String, Value)| format!("  {name}: {}\n", visible(&humanize(value)));
    settings.iter().map(line).fold(title.to_owned(), |text, line| text + &line)
}
