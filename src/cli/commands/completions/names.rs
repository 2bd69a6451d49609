//! Completions that only a server or the user's contexts know: forms, questions, answers.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::{Arg, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time;

use crate::api::{DeliveryDetail, FormEntry};
use crate::cli;
use crate::cli::connection::global_flags::Global;
use crate::cli::connection::session::Session;
use crate::cli::environment::Environment;
use crate::cli::input::values::duration;
use crate::cli::input::{answer_hints, answers};
use crate::cli::output::text::is_terminal_control;
use crate::cli::output::{Colour, Format, Output, visible};
use crate::client::{FormQuery, MAX_PAGE};
use crate::domain::question::Question;

/// Values with their descriptions.
type Named = Vec<(String, String)>;

/// Adds to the arguments of all commands the completions of names; `words` precede the one to complete.
pub(super) fn with_names(command: Command, words: &[OsString]) -> Command {
    let name = command.get_name().to_owned();
    let add = |arg: Arg| {
        let Some(kind) = kind(&name, &arg) else { return arg };
        let words = words.to_vec();
        arg.add(ArgValueCompleter::new(move |typed: &OsStr| candidates(kind, &words, typed)))
    };
    command.mut_args(add).mut_subcommands(|command| with_names(command, words))
}

/// Returns what an argument of the command `name` names.
fn kind(command: &str, arg: &Arg) -> Option<&'static str> {
    let is_answer = || arg.get_value_names().is_some_and(|names| names[0] == "KEY=VALUE");
    match arg.get_id().as_str() {
        "forms" if command == "restore" => Some("trashed"),
        "form" | "forms" => Some("forms"),
        "context" => Some("contexts"),
        "name" | "names" if ["use", "remove", "logout"].contains(&command) => Some("contexts"),
        _ if arg.get_value_names().is_some_and(|names| names[0] == "CONTEXT") => Some("contexts"),
        "delivery" | "deliveries" => Some("deliveries"),
        _ if is_answer() || arg.get_long() == Some("where") => Some("answers"),
        _ => None,
    }
}

/// Returns the values of this kind that begin with what is typed; none if they are not known in time.
fn candidates(kind: &str, words: &[OsString], typed: &OsStr) -> Vec<CompletionCandidate> {
    let found = typed.to_str().and_then(|typed| find_in_time(kind, words, typed)).unwrap_or_default();
    // No shell is given control characters.
    let is_offered = |(value, _): &(String, String)| {
        value.starts_with(&*typed.to_string_lossy()) && !value.contains(is_terminal_control)
    };
    let candidate = |(value, about): (String, String)| {
        let about = Some(visible(&about)).filter(|about| !about.is_empty());
        CompletionCandidate::new(value).help(about.map(Into::into))
    };
    found.into_iter().filter(is_offered).map(candidate).collect()
}

fn find_in_time(kind: &str, words: &[OsString], typed: &str) -> Option<Named> {
    let mut matches = cli::command().ignore_errors(true).try_get_matches_from(words).ok()?;
    while let Some((_, inner)) = matches.remove_subcommand() {
        matches = inner;
    }
    let typed_flags = Global::from_arg_matches(&matches).ok()?;
    let key_file = typed_flags.key_file.clone().filter(|path| path != "-");
    let environment = Environment::of_process();
    let limit = environment.get("FORMS_COMPLETE_TIMEOUT").and_then(|limit| duration(limit).ok());
    // Of everything: the user waits after pressing a key.
    let timeout = limit.unwrap_or(Duration::from_millis(250));
    let global = Global { timeout, no_input: true, key_file, ..typed_flags };
    // In this format warnings are kept until the command ends.
    let mut output = Output::new(Some(Format::Json), Colour::Never, &environment);
    output.quiet = true;
    let session = Session::new(global, environment, output);
    let form = matches.try_get_one::<String>("form").ok().flatten().map_or("", String::as_str);
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let found = runtime.block_on(async { time::timeout(timeout, find(kind, &session, form, typed)).await });
    // What still runs ends with the process.
    runtime.shutdown_background();
    found.ok().flatten()
}

async fn find(kind: &str, session: &Session, form: &str, typed: &str) -> Option<Named> {
    if kind == "contexts" {
        let contexts = session.credentials().ok()?.contexts.iter();
        return Some(contexts.map(|(name, context)| (name.clone(), context.url.clone())).collect());
    }
    let client = session.client().await.ok()?;
    let found = match kind {
        "forms" | "trashed" => {
            let entry = |form: &FormEntry| {
                let slug = form.slug.clone().filter(|_| !typed.starts_with("frm_"));
                let reason = form.accepting_reason.as_ref().map(ToString::to_string);
                let state = reason.unwrap_or_else(|| form.status.to_string());
                (slug.unwrap_or_else(|| form.id.to_string()), format!("{} ({state})", form.title))
            };
            let query = FormQuery { trashed: kind == "trashed", ..FormQuery::default() };
            let forms = client.list_forms(&query, MAX_PAGE).next().await.ok()??;
            forms.iter().map(|form| entry(form)).collect()
        }
        "deliveries" => {
            let state = |one: &DeliveryDetail| {
                (one.id.to_string(), format!("{} {}", one.event.event_type, one.status))
            };
            let deliveries = client.list_deliveries(&json!({}), MAX_PAGE).next().await.ok()??;
            deliveries.iter().map(|one| state(one)).collect()
        }
        _ => {
            let form = client.get_form(form).await.ok()?;
            answer_args(&answers::known_questions(&answers::parse_questions(&form.questions)), typed)
        }
    };
    session.close().await.ok().map(|()| found)
}

/// Returns the beginnings of answers; or, once a question is typed, its answers if they can be listed.
fn answer_args(questions: &[Question], typed: &str) -> Named {
    let answerable = questions.iter().filter(|question| question.takes_answer());
    let Some((key, _)) = typed.split_once('=') else {
        let entry =
            |question: &Question| Some((format!("{}=", question.id.as_ref()?), question.title.clone()));
        return answerable.filter_map(entry).collect();
    };
    let Some(question) = questions.iter().find(|question| question.id.as_deref() == Some(key)) else {
        return Named::new();
    };
    let range = question.kind.rules().range().map(|bound| bound?.as_number()?.integer());
    let plain = |value: String| (value, String::new());
    let values: Named = match (question.kind.name(), range) {
        ("boolean" | "consent", _) => ["true", "false"].map(|value| plain(value.to_owned())).into(),
        ("rating" | "opinion_scale", [Some(least), Some(most)]) => {
            (least..=most).map(|value| plain(value.to_string())).collect()
        }
        _ => {
            answer_hints::choices(question, "options").into_iter().map(|one| (one.value, one.label)).collect()
        }
    };
    values.into_iter().map(|(value, label)| (format!("{key}={value}"), label)).collect()
}
