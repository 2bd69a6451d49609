//! `forms doctor`: what an operator would check, from where the command runs.

mod receivers;
mod server;

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::hints;
use crate::cli::connection::local_store::MailFlags;
use crate::cli::input::values::duration;
use crate::cli::output::listing::{Column, Listing};
use crate::cli::output::render_error::to_diagnostic;
use crate::cli::output::table::{Cell, Color};

/// Check server, key, certificate, clock, disk, mail and webhooks
#[derive(Debug, Args)]
#[command(after_long_help = "\
Looks from where it runs: at the server through its API, at the hosts of
webhooks of the key's workspace by connecting to them, and at the mail server by
logging in without sending anything, if this command has its settings: from
flags, or from the variables that `forms serve` reads too.

Prints a line for each check: its name, ok, warning, problem or skipped, what
was found, and what to do. Exit code 1 if there is a warning or a problem.

With --wait, first waits until the server accepts answers; exit code 7 if it
does not in time.

Examples:
  forms doctor
  forms serve --data ./store & forms doctor --wait 30s
  forms doctor -o json | jq '.checks[] | select(.result == \"problem\")'")]
pub struct Doctor {
    /// Wait until the server is ready, at most this long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    #[command(flatten)]
    mail: MailFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckResult {
    Ok,
    Warning,
    Problem,
    Skipped,
}

/// A check that was made, or could not be.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    result: CheckResult,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, result: CheckResult::Ok, detail: detail.into(), help: None }
    }

    fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        Self { result: CheckResult::Skipped, ..Self::ok(name, why) }
    }

    fn warning(name: &'static str, detail: impl Into<String>, help: &str) -> Self {
        Self { result: CheckResult::Warning, help: Some(help.to_owned()), ..Self::ok(name, detail) }
    }

    fn problem(name: &'static str, detail: impl Into<String>, help: &str) -> Self {
        Self { result: CheckResult::Problem, ..Self::warning(name, detail, help) }
    }

    /// Returns the check that ended in an error.
    fn failed(name: &'static str, session: &Session, error: CliError) -> Self {
        let diagnostic = to_diagnostic(&hints::annotate(session, error));
        let detail = [vec![diagnostic.message], diagnostic.notes].concat().join("; ");
        Self { help: diagnostic.help, ..Self::problem(name, detail, "") }
    }

    /// The check for a terminal, where a row would be cut.
    fn lines(&self) -> String {
        let Self { name, result, detail, help } = self;
        let result = serde_json::to_value(result).unwrap_or_default();
        let help = help.iter().map(|help| format!("          = help: {help}\n")).collect::<String>();
        format!("{:<9} {name}: {detail}\n{help}", result.as_str().unwrap_or_default())
    }

    fn is_finding(&self) -> bool {
        matches!(self.result, CheckResult::Warning | CheckResult::Problem)
    }
}

impl Run for Doctor {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let mail = self.mail.config()?;
        if let Some(wait) = self.wait {
            server::wait_until_ready(session, deadline(wait)).await?;
        }
        let mut checks = server::check(session).await;
        checks.push(receivers::check_mail(&mail).await);
        checks.push(receivers::check_webhooks(session).await);
        let findings = checks.iter().filter(|check| check.is_finding()).count();
        if session.output.truncates_rows() {
            checks.iter().try_for_each(|check| session.output.data(&check.lines()))?;
        } else {
            Listing::new(&session.output, "checks", "", columns()).show_items(checks)?;
        }
        if findings > 0 { Err(CliError::Findings { count: findings }) } else { Ok(()) }
    }
}

/// The moment after `wait`; of one beyond what a clock can count, a year.
fn deadline(wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + wait.min(YEAR)
}

fn columns() -> Vec<Column<'static, Check>> {
    let result = |check: &Check| match check.result {
        CheckResult::Ok => Cell::text("ok").with_colour(Color::DarkGreen),
        CheckResult::Warning => Cell::text("warning").with_colour(Color::DarkYellow),
        CheckResult::Problem => Cell::text("problem").with_colour(Color::DarkRed),
        CheckResult::Skipped => Cell::text("skipped"),
    };
    vec![
        Column::new("name", |check: &Check| Cell::text(check.name)),
        Column::new("result", result),
        Column::new("detail", |check: &Check| Cell::text(&*check.detail)),
        Column::new("help", |check: &Check| Cell::text(check.help.clone().unwrap_or_default())),
    ]
}
