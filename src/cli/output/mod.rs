//! The only place that prints.
//!
//! stdout is the result, stderr everything else. A reader that has gone (`| head`) is no error, and text from
//! elsewhere cannot steer the terminal.

pub mod columns;
pub mod diagnostics;
pub mod exit;
pub mod form_state;
pub mod github;
pub mod humanize;
pub mod io_error;
pub mod json;
pub mod listing;
pub mod render_error;
pub mod shell_quote;
pub mod table;
pub mod text;
pub mod yaml;

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::cli::environment::Environment;
use crate::cli::output::diagnostics::{Finding, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::table::Table;
use crate::domain::json::Value;

pub use crate::cli::output::json::{json_line, value_of};
pub use crate::cli::output::text::{visible, visible_lines, wrapped};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Columns for people, tab-separated in a pipe
    Table,
    /// The API's JSON, one document
    Json,
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values with a header
    Csv,
    /// YAML; of a form, the file to create it from
    Yaml,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal that can
    #[default]
    Auto,
    Always,
    Never,
}

/// What the person asked for, and what the streams are.
#[derive(Debug, Clone)]
pub struct Output {
    pub format: Format,
    pub quiet: bool,
    /// 1: requests; 2: also bodies.
    pub verbose: u8,
    /// The columns that tables and CSV have, in this order; the usual ones if it is empty.
    pub columns: Vec<String>,
    result: Stream,
    talk: Stream,
    width: usize,
    /// While a command works on several items.
    series: RefCell<Option<Series>>,
    /// What a command found before it failed.
    found: RefCell<Option<serde_json::Value>>,
    /// Warnings that programs get with the failure, or once the command is done.
    warnings: RefCell<Vec<String>>,
}

/// What a command on several items has to say once it is over.
#[derive(Debug, Clone, Default)]
struct Series {
    results: Vec<Value>,
    /// Problem documents.
    failures: Vec<serde_json::Value>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    is_terminal: bool,
    colour: bool,
}

impl Output {
    /// Output to the process's streams.
    pub fn new(format: Option<Format>, colour: Colour, environment: &Environment) -> Self {
        let stream = |is_terminal| Stream { is_terminal, colour: colours(colour, environment, is_terminal) };
        let talk = stream(io::stderr().is_terminal());
        let (_, columns) = console::Term::stderr().size();
        let width = if talk.is_terminal { usize::from(columns) } else { 100 };
        let result = stream(io::stdout().is_terminal());
        let format = format.unwrap_or(Format::Table);
        let (series, found, warnings) = (RefCell::new(None), RefCell::new(None), RefCell::new(Vec::new()));
        let columns = Vec::new();
        Self { format, quiet: false, verbose: 0, columns, result, talk, width, series, found, warnings }
    }

    /// Whether a person reads the talk.
    pub fn talk_is_terminal(&self) -> bool {
        self.talk.is_terminal
    }

    /// Writes a result line.
    pub fn line(&self, text: &str) -> Result<(), CliError> {
        self.write(&format!("{text}\n"))
    }

    /// Writes a result as it is.
    pub fn write(&self, text: &str) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::ClosedPipe),
            Err(error) => Err(CliError::io("cannot write to standard output", error)),
        }
    }

    /// Writes a result that holds text from elsewhere and is data where it is no terminal.
    pub fn data(&self, text: &str) -> Result<(), CliError> {
        if self.result.is_terminal { self.write(&visible_lines(text)) } else { self.write(text) }
    }

    /// Writes one JSON document: indented where a person reads it, else on one line.
    pub fn json<T: Serialize>(&self, object: &T) -> Result<(), CliError> {
        match self.result {
            Stream { is_terminal: true, colour } => self.write(&json::indented(&value_of(object)?, colour)),
            Stream { is_terminal: false, .. } => self.write(&json_line(object)?),
        }
    }

    /// Begins the results of several items, which [`Output::finish`] ends: programs get one document with all of them.
    pub fn begin_series(&self) {
        *self.series.borrow_mut() = Some(Series::default());
    }

    /// Writes what a series has kept.
    pub fn finish(&self) -> Result<(), CliError> {
        let series = self.series.borrow();
        match series.as_ref().map_or(&[][..], |series| &series.results) {
            [] => Ok(()),
            results if self.format == Format::Json => self.json(&results),
            results => self.rows(&Table::of_objects(results, &self.columns)),
        }
    }

    /// Writes one object: as `text` where people read, else in the format that was asked for.
    pub fn object<T: Serialize>(&self, object: &T, text: impl FnOnce() -> String) -> Result<(), CliError> {
        match (self.format, &mut *self.series.borrow_mut()) {
            (Format::Table, _) if self.columns.is_empty() => self.write(&text()),
            (Format::Table | Format::Json | Format::Csv, Some(series)) => {
                series.results.push(value_of(object)?);
                Ok(())
            }
            (Format::Json, None) => self.json(object),
            (Format::Jsonl, _) => self.data(&json_line(object)?),
            (Format::Table | Format::Csv, None) => {
                self.rows(&Table::of_objects(&[value_of(object)?], &self.columns))
            }
            (Format::Yaml, series) => {
                let begin = if series.is_some() { "---\n" } else { "" };
                self.data(&(begin.to_owned() + &yaml::yaml(&value_of(object)?)?))
            }
        }
    }

    /// Shows what a command found that will fail: people read `text` at once, programs `object` with the failure.
    pub fn found(&self, object: serde_json::Value, text: impl FnOnce() -> String) -> Result<(), CliError> {
        if self.format == Format::Table {
            return self.write(&text());
        }
        *self.found.borrow_mut() = Some(object);
        Ok(())
    }

    /// Writes rows as CSV if that was asked for, else for people.
    pub fn rows(&self, table: &Table) -> Result<(), CliError> {
        if self.format == Format::Csv { self.data(&table.csv(false)) } else { self.table(table) }
    }

    /// Writes rows for people: columns on a terminal, tabs in a pipe.
    pub fn table(&self, table: &Table) -> Result<(), CliError> {
        if self.result.is_terminal {
            let (_, columns) = console::Term::stdout().size();
            let of = table.headers.len();
            // What was chosen stays.
            let table =
                if self.columns.is_empty() { table.clone().without_empty(columns) } else { table.clone() };
            self.write(&table.columns(columns, self.result.colour))?;
            let shown = table.fitting(columns).len();
            if shown < of {
                let hidden = of - shown;
                self.say(&format!(
                    "no room for {hidden} of {of} columns: choose with --columns, or take -o csv"
                ));
            }
            Ok(())
        } else {
            self.write(&table.tabs())
        }
    }

    /// Whether rows may be cut off at the end of a line.
    pub fn cuts_rows(&self) -> bool {
        self.format == Format::Table && self.result.is_terminal
    }

    /// Says something to the person, unless `-q`. A program that reads results as data gets failures as data, and
    /// nothing between them.
    pub fn say(&self, text: &str) {
        let is_heard = self.format == Format::Table || self.talk.is_terminal;
        if is_heard && !self.quiet {
            self.talk(&visible(text));
        }
    }

    /// Says that a change was made; a person sees a check mark before it.
    pub fn done(&self, text: &str) {
        if !self.talk.is_terminal {
            return self.say(text);
        }
        if !self.quiet {
            let mark = if self.talk.colour { "\u{1b}[32m✓\u{1b}[0m" } else { "✓" };
            self.talk(&format!("{mark} {}", visible(text)));
        }
    }

    /// Tells of a request, with `-v`; of its body, with `-vv`.
    pub fn trace(&self, text: &str, is_body: bool) {
        if self.verbose > u8::from(is_body) {
            self.talk(&visible(text));
        }
    }

    /// Warns, also with `-q`. Programs that read results as data get warnings as members of a failure, which is one line.
    pub fn warn(&self, text: &str) {
        if self.format == Format::Table {
            self.talk(&format!("warning: {}", visible(text)));
        } else {
            self.warnings.borrow_mut().push(visible(text));
        }
    }

    /// Shows the warnings of a command that is done, where none was shown yet.
    pub fn flush_warnings(&self) {
        self.warnings.take().iter().for_each(|warning| self.talk(&format!("warning: {warning}")));
    }

    /// Writes help to where clap wants it; `styled` has colours, `plain` none.
    pub fn help(&self, plain: &str, styled: &str, is_error: bool) -> Result<(), CliError> {
        let stream = if is_error { self.talk } else { self.result };
        let text = if stream.colour { styled } else { plain };
        if is_error {
            self.talk(text.trim_end());
            return Ok(());
        }
        self.write(text)
    }

    /// Tells why the command failed; programs also hear of every item that did.
    pub fn fail(&self, error: &CliError) {
        match error {
            CliError::ClosedPipe => {}
            _ if self.format != Format::Table => {
                let mut document = render_error::document(error);
                let failures = self.series.take().unwrap_or_default().failures;
                if !failures.is_empty() {
                    document["failures"] = failures.into();
                }
                if let Some(found) = self.found.take() {
                    document["found"] = found;
                }
                let warnings = self.warnings.take();
                if !warnings.is_empty() {
                    document["warnings"] = warnings.into();
                }
                let text = document.to_string();
                self.talk(&if self.talk.is_terminal { visible(&text) } else { text });
            }
            CliError::Rejected(report) => self.report(report),
            // The terminal shows the ^C already.
            CliError::Interrupted => {}
            _ => self.finding(&render_error::tell(error)),
        }
    }

    /// Tells why one of several items failed, and the `help` with that.
    pub fn fail_item(&self, item: &str, error: &CliError, help: Option<&str>) {
        match &mut *self.series.borrow_mut() {
            Some(series) if self.format != Format::Table => {
                let mut document = render_error::document(error);
                document["item"] = item.into();
                series.failures.push(document);
            }
            // What is wrong with a file is drawn in it.
            _ if matches!(error, CliError::Rejected(_)) => self.fail(error),
            _ => {
                let finding = Finding { help: help.map(str::to_owned), ..render_error::tell(error) };
                let names_it = finding.message.contains(&format!("`{item}`"));
                self.finding(&if names_it { finding } else { finding.about(item) });
            }
        }
    }

    /// Draws everything that is wrong with a file.
    pub fn report(&self, report: &Report) {
        self.talk(&report.draw(self.talk.colour, self.width));
    }

    fn finding(&self, finding: &Finding) {
        self.talk(&self.wrapped(&finding.draw(self.talk.colour, self.width)));
    }

    /// `text` with its message in lines as wide as the terminal; as it is where nobody reads it there.
    fn wrapped(&self, text: &str) -> String {
        if self.talk.is_terminal { text::wrapped_message(text, self.width) } else { text.to_owned() }
    }

    /// Nobody to tell if even this cannot be written.
    fn talk(&self, text: &str) {
        let _unheard = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Whether a stream gets colours: the flag, then `NO_COLOR`, then `FORCE_COLOR` and `CLICOLOR_FORCE`, then whether
/// it is a terminal that can.
fn colours(flag: Colour, environment: &Environment, is_terminal: bool) -> bool {
    let is_set = |name| environment.get(name).is_some();
    let is_on = |name| environment.get(name).is_some_and(|value| value != "0");
    match flag {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto if is_set("NO_COLOR") => false,
        Colour::Auto if is_on("FORCE_COLOR") || is_on("CLICOLOR_FORCE") => true,
        Colour::Auto => is_terminal && environment.get("TERM") != Some("dumb"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Colour, colours};
    use crate::cli::environment::Environment;

    #[test]
    fn colour_follows_the_flag_then_the_environment_then_the_stream() {
        for (flag, variables, is_terminal, expected) in [
            (Colour::Auto, &[][..], true, true),
            (Colour::Auto, &[], false, false),
            (Colour::Auto, &[("TERM", "dumb")], true, false),
            (Colour::Auto, &[("NO_COLOR", "1")], true, false),
            (Colour::Auto, &[("NO_COLOR", "")], true, true),
            (Colour::Auto, &[("FORCE_COLOR", "1")], false, true),
            (Colour::Auto, &[("FORCE_COLOR", "0")], false, false),
            (Colour::Auto, &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], false, true),
            (Colour::Auto, &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], true, false),
            (Colour::Always, &[("NO_COLOR", "1")], false, true),
            (Colour::Never, &[("FORCE_COLOR", "1")], true, false),
        ] {
            let environment = Environment::of(variables);
            assert_eq!(colours(flag, &environment, is_terminal), expected, "{flag:?} {variables:?}");
        }
    }
}
