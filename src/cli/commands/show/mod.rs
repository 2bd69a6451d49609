//! `forms show`: one form as text, JSON, or the file it can be created from.

mod outline;

use clap::Args;

use crate::api::{FormDetail, PageLinks};
use crate::cli::commands::page_links::{is_open, page_links};
use crate::cli::commands::show::outline::outline;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answers;
use crate::cli::output::columns::FORM;
use crate::cli::output::humanize::humanize;
use crate::cli::output::integrations::describe;
use crate::cli::output::yaml;
use crate::cli::output::{Format, fields, value_of};
use crate::domain::form::FormStatus;
use crate::domain::json::Value;
use crate::domain::open_enum::OpenEnum;

/// Show one form
#[derive(Debug, Args)]
#[command(
    visible_alias = "get",
    after_long_help = "\
Shows the form's settings, the address of its page if it is public, and of the
preview of a draft; and for each question its id, type, title and settings,
whether it is required, and when it is shown. With -o yaml: the file the form
can be created from, without id, status and times.

Examples:
  forms show frm_7k2m9q4x1abz
  forms show frm_7k2m9q4x1abz -o yaml > survey.yaml
  forms show frm_7k2m9q4x1abz -o json | jq .response_count"
)]
pub struct Show {
    /// Form, by id or slug
    form: String,
}

impl Run for Show {
    const COLUMNS: Columns = FORM;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        // A key that may only submit cannot read the addresses.
        let links = match session.output.format {
            Format::Table => page_links(session, &client, &self.form).await.ok(),
            _ => None,
        };
        match session.output.format {
            Format::Yaml => session.output.data(&yaml::yaml(&yaml::file(&form)?)?),
            Format::Table | Format::Json | Format::Jsonl | Format::Csv | Format::Xlsx => {
                session.output.object(&form, || summary(&form, links))
            }
        }
    }
}

fn summary(form: &FormDetail, links: Option<PageLinks>) -> String {
    let accepting = match &form.accepting_reason {
        Some(reason) => format!("no: {}", reason.to_string().replace('_', " ")),
        None => "yes".to_owned(),
    };
    fields(&[
        ("id", Some(form.id.to_string())),
        ("title", Some(form.title.to_string())),
        ("about", form.description.as_ref().map(ToString::to_string)),
        ("slug", form.slug.as_ref().map(ToString::to_string)),
        ("status", Some(form.status.to_string())),
        ("accepting", Some(accepting)),
        ("page", links.and_then(|links| page_address(form, links))),
        ("responses", Some(form.response_count.to_string())),
        ("version", Some(form.version.to_string())),
        ("created", Some(form.created_at.to_string())),
        ("updated", Some(form.updated_at.to_string())),
        ("published", form.published_at.map(|time| time.to_string())),
    ]) + "questions:\n"
        + &outline(&answers::parse_questions(&form.questions))
        + &fields(&[("settings", settings(form)), ("integrations", integrations(form))])
}

/// Returns the address of the page, if it is open, or of the preview of a draft.
fn page_address(form: &FormDetail, links: PageLinks) -> Option<String> {
    let is_draft = form.status == OpenEnum::Known(FormStatus::Draft);
    match is_open(form) {
        true => Some(links.url),
        false => {
            is_draft.then(|| format!("{} (preview until {})", links.preview_url, links.preview_expires_at))
        }
    }
}

fn integrations(form: &FormDetail) -> Option<String> {
    let name = |one: &Value| one.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let line = |one: &Value| format!("{}: {}\n", name(one), describe(one));
    let lines: String = yaml::integrations(form).as_array()?.iter().map(line).collect();
    Some(lines).filter(|lines| !lines.is_empty())
}

fn settings(form: &FormDetail) -> Option<String> {
    let Ok(Value::Object(settings)) = value_of(&form.settings) else { return None };
    let lines: String =
        settings.iter().map(|(name, value)| format!("{name}: {}\n", humanize(value))).collect();
    Some(lines).filter(|lines| !lines.is_empty())
}
