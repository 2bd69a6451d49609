//! The command line's shape: commands and the flags that all of them take.

#![expect(clippy::doc_markdown, reason = "these comments are the help that people read")]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use parse_size::parse_size;

use crate::cli::output::{Colour, Format};
use crate::cli::{file, form, help, serve, submission, tools};

/// Build forms and collect answers, from a file, a script or a server
#[derive(Debug, Parser)]
#[command(
    name = "forms",
    version,
    about,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    help_template = help::ROOT_TEMPLATE,
    after_help = help::ROOT_AFTER,
    max_term_width = 80
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command, before or after its name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Server address [env: FORMS_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// File with the API key, - for stdin [env: FORMS_API_KEY_FILE]
    #[arg(long, global = true, value_name = "PATH")]
    pub key_file: Option<PathBuf>,
    /// Work on a data directory, no server [env: FORMS_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Format of the result
    #[arg(short, long, global = true, value_name = "FORMAT", hide_possible_values = true)]
    #[arg(help = "Format of the result: table, json, jsonl, csv, yaml")]
    pub output: Option<Format>,
    /// Columns of tables and CSV, in this order: id,title
    #[arg(long, global = true, value_name = "A,B", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Log each request to stderr; -vv also logs bodies
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours: auto, always, never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub color: Colour,
    /// Never ask anything [env: FORMS_NO_INPUT]
    #[arg(long, global = true, hide_short_help = true)]
    pub no_input: bool,
    /// Time limit, retries included: 2m, 500ms
    #[arg(long, global = true, value_name = "TIME", value_parser = duration, default_value = "30s", hide_short_help = true)]
    pub timeout: Duration,
    /// How often to try again
    #[arg(long, global = true, value_name = "N", default_value_t = 2, hide_short_help = true)]
    pub retries: u32,
    /// Allow unencrypted HTTP beyond this machine
    #[arg(long, global = true, hide_short_help = true)]
    pub insecure_http: bool,
}

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Create(form::Create),
    Edit(form::Edit),
    Validate(file::Validate),
    Publish(form::Publish),
    Unpublish(form::Unpublish),
    Close(form::Close),
    List(form::List),
    Show(form::Show),
    Delete(form::Delete),
    Restore(form::Restore),
    Submit(submission::Submit),
    Responses(submission::Responses),
    Serve(serve::Serve),
    Whoami(tools::Whoami),
    Explain(tools::Explain),
    Completions(tools::Completions),
    Help(help::Help),
}

impl Command {
    /// The format that a flag of this command's own asks for.
    pub fn format(&self) -> Option<Format> {
        let Self::Validate(validate) = self else { return None };
        validate.format()
    }
}

/// Reads a number of items.
pub fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_unfit| format!("expected a number such as 10, got `{text}`"))
}

/// Reads `30s`, `2m`, `500ms`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let duration = seconds.or_else(|| humantime::parse_duration(text).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("expected a time such as 30s, got `{text}`"))
}

/// Reads `64KiB`, `1MiB`, `2GiB`; a bare number is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|_unfit| format!("expected a size such as 64KiB, 1MiB or 2GiB, got `{text}`"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Cli, duration, size};

    #[test]
    fn the_command_line_has_no_contradiction() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("512B", 512),
            ("64KiB", 65_536),
            ("1.5MiB", 3 << 19),
            ("2GiB", 2 << 30),
            ("1kB", 1_000),
        ] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "KiB", "1x", "-1", "18446744073709551615GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("7", 7_000),
            ("2m", 120_000),
            ("1h 1m", 3_660_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(duration(text).unwrap().as_millis(), millis);
        }
        for text in ["", "s", "0", "0s", "-1s", "1x", "99999999999999999999s", "18446744073709551615h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
