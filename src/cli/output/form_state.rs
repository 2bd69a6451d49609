//! Whether a form accepts answers, as text, and the command that opens it.

use crate::api::{Code, FormDetail, Problem};
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::shell_quote::shell_quote;
use crate::client::ClientError;
use crate::clock::Timestamp;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::open_enum::OpenEnum;

/// Describes whether the form accepts answers, and why not.
pub fn describe(form: &FormDetail) -> String {
    let settings = &form.settings;
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let Some(reason) = &form.accepting_reason else { return "is published and accepts answers".to_owned() };
    match reason {
        OpenEnum::Known(AcceptingReason::Draft) => "is a draft and does not accept answers".to_owned(),
        OpenEnum::Known(AcceptingReason::Closed) => "is closed and does not accept answers".to_owned(),
        OpenEnum::Known(AcceptingReason::NotOpenYet) => {
            format!("accepts answers from {} on", time(settings.opens_at))
        }
        OpenEnum::Known(AcceptingReason::Expired) => {
            format!("has not accepted answers since {}", time(settings.closes_at))
        }
        OpenEnum::Known(AcceptingReason::Full) => {
            let limit = count_noun(settings.max_responses.unwrap_or_default(), "response");
            format!("has reached its limit of {limit}")
        }
        OpenEnum::Unknown(reason) => format!("does not accept answers: {}", reason.replace('_', " ")),
    }
}

/// Returns the error for a form that does not accept answers, with its author's message if there is one.
pub fn not_accepting(form: &FormDetail, reason: AcceptingReason, prefix: &str) -> CliError {
    let plain = || format!("\"{}\" ({}) {}", form.title, form.id, describe(form));
    let problem = Problem::new(reason.into()).detail(reason.message(&form.settings).unwrap_or_else(plain));
    with_open_hint(ClientError::Problem(Box::new(problem)), &display_name(form), prefix)
}

/// Adds to an error that the form `name` does not accept answers the command that changes it. `prefix` is the command
/// prefix.
pub fn with_open_hint(error: ClientError, name: &str, prefix: &str) -> CliError {
    let name = shell_quote(name);
    let set = |setting| format!("{prefix} edit {name} --set settings.{setting}=");
    let help = error.problem().and_then(|problem| match problem.code.known()? {
        Code::FormNotPublished | Code::FormClosed => Some(format!("{prefix} publish {name}")),
        Code::FormNotOpenYet => Some(set("opens_at")),
        Code::FormExpired => Some(set("closes_at")),
        Code::FormFull => Some(set("max_responses")),
        _ => None,
    });
    CliError::Client { error, notes: Vec::new(), help }
}

/// Returns the slug of the form, or else its id.
pub fn display_name(form: &FormDetail) -> String {
    form.slug.clone().unwrap_or_else(|| form.id.to_string())
}
