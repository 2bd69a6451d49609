//! The only place that prints.
//!
//! stdout has the result, stderr everything else. A closed pipe (`| head`) is not an error, and control characters in data
//! never reach the terminal.

pub mod chart;
mod colour;
pub mod columns;
pub mod destination;
pub mod diagnostics;
pub mod exit;
pub mod form_state;
pub mod github;
pub mod humanize;
pub mod integrations;
pub mod io_error;
pub mod json;
pub mod listing;
pub mod progress;
pub mod render_error;
pub mod shell_quote;
pub mod table;
pub mod text;
pub mod workbook;
pub mod yaml;

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::environment::Environment;
use crate::cli::output::colour::uses_colour;
use crate::cli::output::destination::{Destination, OutputFile};
use crate::cli::output::diagnostics::Diagnostic;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::grouped;
use crate::cli::output::table::Table;
use crate::cli::output::text::wrap_lines;
use crate::cli::output::workbook::Workbook;
use crate::domain::json::Value;

pub use crate::cli::output::colour::Colour;
pub use crate::cli::output::json::value_of;
pub use crate::cli::output::text::{fields, visible, visible_lines, wrap};

/// Output format.
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
    /// An Excel workbook
    Xlsx,
}

/// Output settings and streams.
#[derive(Debug)]
pub struct Output {
    pub format: Format,
    pub quiet: bool,
    /// 1: requests; 2: also bodies.
    pub verbose: u8,
    /// Columns of tables, CSV and XLSX, in this order; the default ones if empty.
    pub columns: Vec<String>,
    stdout: Stream,
    stderr: Stream,
    /// The width of stderr, if it is a terminal.
    width: Option<usize>,
    state: RefCell<State>,
}

/// The mutable part of [`Output`].
#[derive(Debug, Default)]
struct State {
    sink: Sink,
    /// Results of a command on several items, collected for one document.
    batch: Option<Vec<Value>>,
    /// A result printed with the error, in machine-readable formats.
    partial: Option<serde_json::Value>,
    /// Warnings to print with the error, or when the command is done.
    warnings: Vec<String>,
}

/// Where results go; files with the path that the user gave.
#[derive(Debug, Default)]
enum Sink {
    #[default]
    Stdout,
    File(OutputFile, PathBuf),
    Workbook(Box<Workbook>, OutputFile, PathBuf),
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    is_terminal: bool,
    colour: bool,
}

impl Output {
    /// Creates output to the process's streams.
    pub fn new(format: Option<Format>, colour: Colour, environment: &Environment) -> Self {
        let stream =
            |is_terminal| Stream { is_terminal, colour: uses_colour(colour, environment, is_terminal) };
        let stderr = stream(io::stderr().is_terminal());
        let (_, columns) = console::Term::stderr().size();
        Self {
            format: format.unwrap_or(Format::Table),
            quiet: false,
            verbose: 0,
            columns: Vec::new(),
            stdout: stream(io::stdout().is_terminal()),
            stderr,
            width: stderr.is_terminal.then_some(usize::from(columns)),
            state: RefCell::default(),
        }
    }

    pub fn stdout_is_terminal(&self) -> bool {
        self.stdout.is_terminal
    }

    pub fn stdout_has_colour(&self) -> bool {
        self.stdout.colour
    }

    pub fn stderr_is_terminal(&self) -> bool {
        self.stderr.is_terminal
    }

    /// Sends results to the file that the command and its format ask for.
    ///
    /// # Errors
    /// If the format needs a file or is not for files, or if the file cannot be created.
    pub fn open(&mut self, destination: Destination<'_>) -> Result<(), CliError> {
        let Some(path) = destination.file(self.format)? else { return Ok(()) };
        self.state.get_mut().sink = Sink::File(OutputFile::create(path)?, path.to_owned());
        self.stdout = Stream { is_terminal: false, colour: false };
        Ok(())
    }

    /// Saves the file with the results, if they go to one.
    pub fn save(&self) -> Result<(), CliError> {
        let (saved, path) = match std::mem::take(&mut self.state.borrow_mut().sink) {
            Sink::Stdout => return Ok(()),
            Sink::File(file, path) => (file.save().map(|()| 0), path),
            Sink::Workbook(workbook, mut file, path) => {
                (workbook.save(&mut file).and_then(|cut| file.save().map(|()| cut)), path)
            }
        };
        self.warn_of_cut(saved.map_err(|error| unwritable(&path, error))?);
        self.success(&format!("saved to {}", path.display()));
        Ok(())
    }

    /// Warns if texts were cut in a workbook.
    fn warn_of_cut(&self, count: u64) {
        let texts = match count {
            0 => return,
            1 => "1 text was".to_owned(),
            _ => format!("{} texts were", grouped(count)),
        };
        self.warn(&format!(
            "{texts} cut to 32,767 characters, the maximum of an XLSX cell; CSV has them whole"
        ));
    }

    /// Creates quiet output in `format` to the file at `path`; its warnings are kept.
    pub fn file(&self, path: &Path, format: Format) -> Result<Self, CliError> {
        let mut file = Self { format, quiet: true, columns: Vec::new(), state: RefCell::default(), ..*self };
        file.open(Destination::Export(Some(path)))?;
        Ok(file)
    }

    pub fn write(&self, text: &str) -> Result<(), CliError> {
        self.write_bytes(text.as_bytes())
    }

    fn write_bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        if let Sink::File(file, path) = &mut self.state.borrow_mut().sink {
            return file.write_all(bytes).map_err(|error| unwritable(path, error));
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::ClosedPipe),
            Err(error) => Err(CliError::io("cannot write to standard output", error)),
        }
    }

    /// Writes data to stdout; on a terminal, with control characters escaped.
    pub fn data(&self, text: &str) -> Result<(), CliError> {
        if self.stdout.is_terminal { self.write(&visible_lines(text)) } else { self.write(text) }
    }

    /// Writes exactly these bytes to stdout; on a terminal, as a line with control characters escaped.
    pub fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        match self.stdout.is_terminal {
            true => self.write(&(visible_lines(&String::from_utf8_lossy(bytes)) + "\n")),
            false => self.write_bytes(bytes),
        }
    }

    /// Writes one JSON document: indented on a terminal, else on one line.
    pub fn json<T: Serialize>(&self, object: &T) -> Result<(), CliError> {
        self.write(&match self.stdout.is_terminal {
            true => json::indented(&value_of(object)?, self.stdout.colour),
            false => json::json_line(object)?,
        })
    }

    /// Writes each object as JSON on one line.
    pub fn json_lines<T: Serialize>(&self, objects: &[T]) -> Result<(), CliError> {
        let line = |object: &T| match self.stdout.is_terminal {
            true => Ok(json::escaped(&value_of(object)?) + "\n"),
            false => json::json_line(object),
        };
        let lines: Result<String, CliError> = objects.iter().map(line).collect();
        self.write(&lines?)
    }

    /// Starts collecting the results of several items, which [`Output::finish`] writes as one document.
    pub fn begin_batch(&self) {
        self.state.borrow_mut().batch = Some(Vec::new());
    }

    /// Whether the command works on several items.
    pub fn is_batch(&self) -> bool {
        self.state.borrow().batch.is_some()
    }

    /// Writes the collected results.
    pub fn finish(&self) -> Result<(), CliError> {
        let results = self.state.borrow_mut().batch.take().unwrap_or_default();
        match self.format {
            _ if results.is_empty() => Ok(()),
            Format::Json => self.json(&results),
            _ => self.rows(&Table::of_objects(&results, &self.columns)),
        }
    }

    /// Writes one object: as `text` in the table format, else as the object.
    pub fn object<T: Serialize>(&self, object: &T, text: impl FnOnce() -> String) -> Result<(), CliError> {
        let is_batch = self.state.borrow().batch.is_some();
        match self.format {
            Format::Table if self.columns.is_empty() => self.write(&text()),
            Format::Table | Format::Json | Format::Csv if is_batch => {
                self.state.borrow_mut().batch.get_or_insert_default().push(value_of(object)?);
                Ok(())
            }
            Format::Json => self.json(object),
            Format::Jsonl => self.json_lines(std::slice::from_ref(object)),
            Format::Table | Format::Csv | Format::Xlsx => {
                self.rows(&Table::of_objects(&[value_of(object)?], &self.columns))
            }
            Format::Yaml => {
                let begin = if is_batch { "---\n" } else { "" };
                self.data(&(begin.to_owned() + &yaml::yaml(&value_of(object)?)?))
            }
        }
    }

    /// Writes a result of a command that will fail: as `text` in the table format, else with the error document.
    pub fn partial_result(
        &self,
        object: serde_json::Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        if self.format == Format::Table {
            return self.write(&text());
        }
        self.state.borrow_mut().partial = Some(object);
        Ok(())
    }

    /// Writes rows: as CSV, in columns on a terminal, or tab-separated in a pipe.
    pub fn rows(&self, table: &Table) -> Result<(), CliError> {
        if matches!(self.format, Format::Csv | Format::Xlsx) {
            self.export_header(table)?;
            return self.export_rows(table, false);
        }
        if !self.stdout.is_terminal {
            return self.write(&table.tabs());
        }
        let (_, width) = console::Term::stdout().size();
        // Chosen columns are kept even if empty.
        let table = if self.columns.is_empty() { &table.without_empty() } else { table };
        let of = table.headers.len();
        let (text, shown) = table.columns(width, self.stdout.colour);
        self.write(&text)?;
        if shown < of {
            let hidden = of - shown;
            self.status(&format!(
                "{hidden} of {of} columns do not fit: select some with --columns, or use -o csv"
            ));
        }
        Ok(())
    }

    /// Writes the header of `table`, in CSV or XLSX.
    pub fn export_header(&self, table: &Table) -> Result<(), CliError> {
        if self.format == Format::Csv {
            return self.data(&table.csv_header());
        }
        let columns = table.headers.len();
        workbook::check_width(columns)?;
        let mut state = self.state.borrow_mut();
        if let Sink::File(file, path) = std::mem::take(&mut state.sink) {
            let workbook = Workbook::new(file.folder(), table.headers.clone());
            state.sink =
                Sink::Workbook(Box::new(workbook.map_err(|error| unwritable(&path, error))?), file, path);
        }
        Ok(())
    }

    /// Writes the rows of `table`, in CSV or XLSX. In CSV, text that a spreadsheet would run as a formula gets a leading
    /// `'`, unless `raw`.
    pub fn export_rows(&self, table: &Table, raw: bool) -> Result<(), CliError> {
        let Sink::Workbook(workbook, _, path) = &mut self.state.borrow_mut().sink else {
            return self.data(&table.csv_rows(raw));
        };
        let written = table.rows.iter().try_for_each(|row| workbook.append(row));
        written.map_err(|error| unwritable(path, error))
    }

    /// Replaces what is on the terminal by the beginning of `text`, as much as fits.
    pub fn redraw(&self, text: &str) -> Result<(), CliError> {
        let (height, _) = console::Term::stdout().size();
        let lines: Vec<_> = text.lines().take(usize::from(height).saturating_sub(1)).collect();
        self.write(&format!("\u{1b}[2J\u{1b}[H{}\n", lines.join("\n")))
    }

    /// Returns `text` on one line: on a terminal, cut to what is left of it after `used` columns.
    pub fn fit(&self, text: &str, used: usize) -> String {
        let text = visible(text);
        if !self.truncates_rows() {
            return text;
        }
        let (_, width) = console::Term::stdout().size();
        console::truncate_str(&text, usize::from(width).saturating_sub(used), "…").into_owned()
    }

    /// Whether rows may be truncated at the end of a line.
    pub fn truncates_rows(&self) -> bool {
        self.format == Format::Table && self.stdout.is_terminal
    }

    /// Prints a status message to stderr, unless `-q`. In machine-readable formats only if stderr is a terminal.
    pub fn status(&self, text: &str) {
        let is_shown = self.format == Format::Table || self.stderr.is_terminal;
        if is_shown && !self.quiet {
            self.write_line("", text);
        }
    }

    /// Prints that a change was made; with a check mark on a terminal.
    pub fn success(&self, text: &str) {
        if !self.stderr.is_terminal {
            return self.status(text);
        }
        if !self.quiet {
            let mark = if self.stderr.colour { "\u{1b}[32m✓\u{1b}[0m " } else { "✓ " };
            self.write_line(mark, text);
        }
    }

    /// Logs a request with `-v`, its body with `-vv`.
    pub fn trace(&self, text: &str, is_body: bool) {
        if self.verbose > u8::from(is_body) {
            self.write_stderr(&visible(text));
        }
    }

    /// Prints a warning, also with `-q`. In machine-readable formats it is kept for the error document.
    pub fn warn(&self, text: &str) {
        if self.reports_json() {
            self.state.borrow_mut().warnings.push(visible(text));
        } else {
            self.write_line("warning: ", text);
        }
    }

    /// Whether errors are JSON: with JSON formats, and without a terminal with the other machine-readable ones.
    pub fn reports_json(&self) -> bool {
        match self.format {
            Format::Table => false,
            Format::Json | Format::Jsonl => true,
            Format::Csv | Format::Yaml | Format::Xlsx => !self.stderr.is_terminal,
        }
    }

    /// Prints the kept warnings of a command that succeeded.
    pub fn flush_warnings(&self) {
        let warnings = std::mem::take(&mut self.state.borrow_mut().warnings);
        warnings.iter().for_each(|warning| self.write_stderr(&format!("warning: {warning}")));
    }

    /// Prints help to the stream that clap chose; `styled` has colours.
    pub fn help(&self, plain: &str, styled: &str, is_error: bool) -> Result<(), CliError> {
        let stream = if is_error { self.stderr } else { self.stdout };
        let text = if stream.colour { styled } else { plain };
        if !is_error {
            return self.write(&self.fit_page(text));
        }
        self.write_stderr(text.trim_end());
        Ok(())
    }

    /// Fits a page that is made for 80 columns to a narrower terminal.
    pub fn fit_page(&self, page: &str) -> String {
        match self.width.filter(|width| self.stdout.is_terminal && *width < 80) {
            Some(width) => text::wrap_page(page, width),
            None => page.to_owned(),
        }
    }

    /// Prints the error; in machine-readable formats as one document.
    pub fn report_error(&self, error: &CliError) {
        let (partial, warnings) = {
            let mut state = self.state.borrow_mut();
            (state.partial.take(), std::mem::take(&mut state.warnings))
        };
        match error {
            CliError::ClosedPipe => {}
            _ if self.reports_json() || partial.is_some() => {
                let mut document = render_error::problem_document(error);
                if let Some(result) = partial {
                    document["found"] = result;
                }
                if !warnings.is_empty() {
                    document["warnings"] = warnings.into();
                }
                let text = document.to_string();
                self.write_stderr(&if self.stderr.is_terminal { visible(&text) } else { text });
            }
            CliError::Rejected(report) => self.write_stderr(&report.render(self.stderr.colour, self.width)),
            CliError::Declined => self.write_stderr("canceled, nothing was done"),
            // The changes are the output; the terminal shows ^C already.
            CliError::FormsDiffer | CliError::Interrupted => {}
            _ => self.print_diagnostic(&render_error::to_diagnostic(error)),
        }
    }

    /// Prints the error of one of several items, with `help`.
    pub fn report_item_error(&self, item: &str, error: &CliError, help: Option<&str>) {
        // Problems of a file are rendered with snippets.
        if matches!(error, CliError::Rejected(_)) {
            return self.report_error(error);
        }
        let diagnostic = Diagnostic { help: help.map(str::to_owned), ..render_error::to_diagnostic(error) };
        let is_named = diagnostic.message.contains(&format!("`{item}`"));
        self.print_diagnostic(&if is_named { diagnostic } else { diagnostic.about(item) });
    }

    fn print_diagnostic(&self, diagnostic: &Diagnostic) {
        self.write_stderr(&diagnostic.render(self.stderr.colour, self.width));
    }

    /// Writes `start` and `text` to stderr, wrapped on a terminal.
    fn write_line(&self, start: &str, text: &str) {
        let text = format!("{start}{}", visible(text));
        self.write_stderr(&self.width.map_or(text.clone(), |width| wrap_lines(&text, width)));
    }

    /// A failure to write to stderr cannot be reported.
    fn write_stderr(&self, text: &str) {
        let _unheard = writeln!(io::stderr().lock(), "{text}");
    }
}

fn unwritable(path: &Path, error: io::Error) -> CliError {
    CliError::io(format!("cannot write {}", path.display()), error)
}
