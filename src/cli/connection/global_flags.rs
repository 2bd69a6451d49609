//! The global flags.
#![expect(clippy::doc_markdown, reason = "these comments are the help that people read")]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::cli::input::values::duration;
use crate::cli::output::{Colour, Format};

/// Flags of every command, before or after its name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Server address [env: FORMS_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// Context, made by forms login [env: FORMS_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// API key file, - for stdin [env: FORMS_API_KEY_FILE]
    #[arg(long, global = true, value_name = "PATH")]
    pub key_file: Option<PathBuf>,
    /// Work on a data directory, no server [env: FORMS_DATA]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// Output format
    #[arg(short, long, global = true, value_name = "FORMAT", hide_possible_values = true)]
    #[arg(help = "Output format: table, json, jsonl, csv, yaml, xlsx")]
    pub output: Option<Format>,
    /// Columns of tables, CSV, XLSX, in this order: id,title
    #[arg(long, global = true, value_name = "A,B", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Log each request to stderr; -vv also logs bodies
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours: auto, always, never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub color: Colour,
    /// Never prompt [env: FORMS_NO_INPUT]
    #[arg(long, global = true)]
    pub no_input: bool,
    /// Time limit including retries: 2m, 500ms
    #[arg(long, global = true, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub timeout: Duration,
    /// Maximum number of retries
    #[arg(long, global = true, value_name = "N", default_value_t = 2)]
    pub retries: u32,
    /// Allow unencrypted HTTP beyond this machine
    #[arg(long, global = true)]
    pub insecure_http: bool,
}
