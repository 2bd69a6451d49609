//! `forms explain`.

use crate::api::{self, Code};
use crate::cli::commands::completions::candidates;
use crate::cli::commands::help::topics::{definition, show_rows};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::document::FILE_CODES;
use crate::cli::output::render_error;
use crate::cli::output::wrap;
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::validation::similar::similar;
use crate::domain::validation::violation::Rule;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};

/// Explain an error code
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without a code: lists all of them.

Examples:
  forms explain
  forms explain unknown_field
  forms explain form_not_published")]
pub struct Explain {
    /// The code in brackets after `error`, or the `error.code` of a delivery
    #[arg(add = ArgValueCandidates::new(|| candidates(all_codes().map(str::to_owned))))]
    code: Option<String>,
}

impl Run for Explain {
    const COLUMNS: Columns = Columns::Fixed(&["code", "status", "title", "meaning"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let Some(code) = &self.code else { return list_codes(session) };
        let code = code.trim_matches(['[', ']']);
        let Some(meaning) = meaning(code) else {
            let message = format!("there is no code `{code}`");
            let help = match similar(code, all_codes()) {
                Some(name) => format!("a similar code exists: {name}"),
                None => "forms explain lists all codes".to_owned(),
            };
            return Err(CliError::usage_with_help(message, help));
        };
        let title = Code::parse(code).map(|code| format!("{} (status {}).\n", code.title(), code.status()));
        let text = || title.unwrap_or_default() + &wrap(&meaning, 80) + "\n";
        session.output.object(&entry(code), text)
    }
}

/// Lists all codes, each with its title or the first sentence of its meaning.
fn list_codes(session: &Session) -> Result<(), CliError> {
    let codes: Vec<_> = all_codes().map(entry).collect();
    let text = |entry: &Value| {
        let meaning = entry["title"].as_str().or(entry["meaning"].as_str()).unwrap_or_default();
        let first = meaning.split_inclusive(". ").next().unwrap_or_default().trim_end();
        definition(entry["code"].as_str().unwrap_or_default(), first)
    };
    show_rows(session, "codes", &codes, &[], || codes.iter().map(text).collect())
}

fn entry(code: &str) -> Value {
    let known = Code::parse(code);
    let (status, title) = (known.map(Code::status), known.map(Code::title));
    json!({"code": code, "status": status, "title": title, "meaning": meaning(code)})
}

/// Returns what a code means: of an error of the API or the command line, of a delivery, or both.
fn meaning(code: &str) -> Option<String> {
    let is_it = |(name, _): &&(&str, &str)| *name == code;
    let general = api::explain(code).or_else(|| own_codes().find(is_it).map(|(_, meaning)| *meaning));
    let delivery = ErrorCode::parse(code).map(ErrorCode::meaning);
    match (general, delivery) {
        (Some(general), Some(delivery)) => Some(format!("{general} In deliveries: {delivery}")),
        (general, delivery) => general.or(delivery).map(str::to_owned),
    }
}

fn all_codes() -> impl Iterator<Item = &'static str> {
    let codes = Code::ALL.iter().map(|code| code.name());
    let general =
        codes.chain(Rule::ALL.iter().map(|rule| rule.name())).chain(own_codes().map(|(name, _)| *name));
    let is_other = |name: &&str| api::explain(name).is_none() && own_codes().all(|(other, _)| other != name);
    general.chain(ErrorCode::ALL.iter().map(|code| code.name()).filter(is_other))
}

/// Returns the codes that only the command line uses, with their meanings.
fn own_codes() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    FILE_CODES.iter().chain(&render_error::CODES)
}
