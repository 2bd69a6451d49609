//! Whether a form takes answers: `forms publish`, `unpublish` and `close`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use super::each;
use crate::api::{Code, FormDetail, Problem};
use crate::cli::answers;
use crate::cli::exit::CliError;
use crate::cli::session::Session;
use crate::cli::spelling::quoted;
use crate::cli::words::counted;
use crate::client::ClientError;
use crate::clock::Timestamp;
use crate::domain::admission::Shut;
use crate::domain::form::Status;
use crate::domain::open_enum::OpenEnum;

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
    /// Let the server check it, change nothing
    #[arg(long)]
    dry_run: bool,
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
    /// Let the server check it, change nothing
    #[arg(long)]
    dry_run: bool,
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
    #[arg(required = true, value_name = "FORM", value_parser = NonEmptyStringValueParser::new())]
    forms: Vec<String>,
    /// Let the server check it, change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Publish {
    /// Publishes the forms, those too that were closed.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        let patch = json!({"status": Status::Published, "settings": {"closed": null}});
        change(session, &self.forms, &patch, self.dry_run).await
    }
}

impl Unpublish {
    /// Takes the forms back to draft.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"status": Status::Draft}), self.dry_run).await
    }
}

impl Close {
    /// Closes the forms.
    pub async fn run(self, session: &Session) -> Result<(), CliError> {
        change(session, &self.forms, &json!({"settings": {"closed": true}}), self.dry_run).await
    }
}

/// Changes each form alike, and says what it has come to.
async fn change(
    session: &Session,
    forms: &[String],
    patch: &serde_json::Value,
    dry_run: bool,
) -> Result<(), CliError> {
    let client = session.client().await?;
    each(session, forms, async |form| {
        let changed = client.update_form(form, &patch.to_string(), None, dry_run).await?;
        if dry_run {
            session.output.object(&changed, || "(dry run)\n".to_owned())?;
            session
                .output
                .say(&format!("\"{}\": the server would take it; nothing was stored", changed.title));
            return Ok(());
        }
        session.output.object(&changed, || format!("{}\n", changed.id))?;
        session.output.done(&format!("\"{}\" {}", changed.title, state(&changed)));
        let ids = answers::ids(&answers::questions(&changed.questions));
        if let (None, Some(id)) = (&changed.accepting_reason, ids.first()) {
            session.output.say(&format!("next: {} submit {} {id}=VALUE", session.again(), changed.id));
        }
        Ok(())
    })
    .await
}

/// Whether the form takes answers, and why not.
pub(super) fn state(form: &FormDetail) -> String {
    let settings = &form.settings;
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let Some(reason) = &form.accepting_reason else { return "is published: it takes answers".to_owned() };
    match reason {
        OpenEnum::Known(Shut::Draft) => "is a draft: it takes no answers".to_owned(),
        OpenEnum::Known(Shut::Closed) => "is closed: it takes no answers".to_owned(),
        OpenEnum::Known(Shut::NotOpenYet) => format!("takes answers from {} on", time(settings.opens_at)),
        OpenEnum::Known(Shut::Expired) => format!("takes no answers since {}", time(settings.closes_at)),
        OpenEnum::Known(Shut::Full) => {
            let limit = counted(settings.max_responses.unwrap_or_default(), "response");
            format!("has reached its limit of {limit}")
        }
        OpenEnum::Unknown(reason) => format!("takes no answers: {}", reason.replace('_', " ")),
    }
}

/// The refusal of answers to `form`, which takes none: in its author's words, where there are some.
pub fn shut(form: &FormDetail, why: Shut, again: &str) -> CliError {
    let plain = || format!("\"{}\" ({}) {}", form.title, form.id, state(form));
    let problem = Problem::new(why.into()).detail(why.message(&form.settings).unwrap_or_else(plain));
    or_opened(ClientError::Problem(Box::new(problem)), &name(form), again)
}

/// `error`; if it is that the form called `name` takes no answers, with the command after which it does. Commands begin
/// with `again`, see [`Session::again`].
pub fn or_opened(error: ClientError, name: &str, again: &str) -> CliError {
    let name = quoted(name);
    let set = |setting| format!("{again} edit {name} --set settings.{setting}=");
    let help = error.problem().and_then(|problem| match problem.code.known()? {
        Code::FormNotPublished | Code::FormClosed => Some(format!("{again} publish {name}")),
        Code::FormNotOpenYet => Some(set("opens_at")),
        Code::FormExpired => Some(set("closes_at")),
        Code::FormFull => Some(set("max_responses")),
        _ => None,
    });
    CliError::Client { error, notes: Vec::new(), help }
}

/// What a person calls the form.
pub fn name(form: &FormDetail) -> String {
    form.slug.clone().unwrap_or_else(|| form.id.to_string())
}
