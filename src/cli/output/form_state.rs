//! Whether a form takes answers, in words, and the command after which it does.

use crate::api::{Code, FormDetail, Problem};
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::counted;
use crate::cli::output::shell_quote::quoted;
use crate::client::ClientError;
use crate::clock::Timestamp;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::open_enum::OpenEnum;

/// Whether the form takes answers, and why not.
pub fn state(form: &FormDetail) -> String {
    let settings = &form.settings;
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let Some(reason) = &form.accepting_reason else { return "is published: it takes answers".to_owned() };
    match reason {
        OpenEnum::Known(AcceptingReason::Draft) => "is a draft: it takes no answers".to_owned(),
        OpenEnum::Known(AcceptingReason::Closed) => "is closed: it takes no answers".to_owned(),
        OpenEnum::Known(AcceptingReason::NotOpenYet) => {
            format!("takes answers from {} on", time(settings.opens_at))
        }
        OpenEnum::Known(AcceptingReason::Expired) => {
            format!("takes no answers since {}", time(settings.closes_at))
        }
        OpenEnum::Known(AcceptingReason::Full) => {
            let limit = counted(settings.max_responses.unwrap_or_default(), "response");
            format!("has reached its limit of {limit}")
        }
        OpenEnum::Unknown(reason) => format!("takes no answers: {}", reason.replace('_', " ")),
    }
}

/// The refusal of answers to `form`, which takes none: in its author's words, where there are some.
pub fn shut(form: &FormDetail, why: AcceptingReason, again: &str) -> CliError {
    let plain = || format!("\"{}\" ({}) {}", form.title, form.id, state(form));
    let problem = Problem::new(why.into()).detail(why.message(&form.settings).unwrap_or_else(plain));
    or_opened(ClientError::Problem(Box::new(problem)), &name(form), again)
}

/// `error`; if it is that the form called `name` takes no answers, with the command after which it does. Commands begin
/// with `again`, which has the flags of this run.
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
