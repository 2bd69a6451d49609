//! Files with many submissions: CSV, XLSX, JSON lines, or a list in JSON. A file is read row by row, except XLSX and lists.

mod cell;
mod columns;
mod table;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::domain::json::{self, Object, Value};
use crate::domain::question::Question;

pub use cell::choices;
pub use columns::Columns;
pub use table::{Sheet, sheets};

/// Maximum bytes of a list in JSON, which is read as a whole.
const MAX_LIST: u64 = 64 << 20;

/// A file with many submissions.
#[derive(Debug, Clone)]
pub struct RowFile {
    path: PathBuf,
    format: RowFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowFormat {
    Csv,
    Xlsx,
    JsonLines,
    JsonList,
}

/// Device, inode, size and time of the last change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp(u64, u64, u64, Option<SystemTime>);

/// The submission in a row.
#[derive(Debug, Default)]
pub struct Row {
    pub answers: Object,
    pub metadata: Object,
}

/// A row by its number, as editors and spreadsheets count; or what is wrong with it.
pub type NumberedRow = (usize, Result<Row, Vec<RowProblem>>);

/// What is wrong with a row: a code, and a message that names the column.
pub type RowProblem = (&'static str, String);

/// The rows of a file. An error ends them.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<NumberedRow, CliError>> + 'a>;

impl RowFile {
    /// Returns the file at `path` if it has many submissions by its name; a list in JSON is recognized by its first character.
    pub fn detect(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let format = match extension.as_str() {
            "csv" => RowFormat::Csv,
            "xlsx" => RowFormat::Xlsx,
            "jsonl" | "ndjson" => RowFormat::JsonLines,
            "json" if begins_list(path) => RowFormat::JsonList,
            _ => return None,
        };
        Some(Self { path: path.to_owned(), format })
    }

    /// Reads the header of a table, and finds the question of each column; those named by `metadata` are kept as such.
    ///
    /// # Errors
    /// If the file cannot be read, or with all columns that belong to nothing.
    pub fn columns<'a>(
        &self,
        questions: &'a [Question],
        metadata: &'a [String],
    ) -> Result<Columns<'a>, CliError> {
        let header = match self.format {
            RowFormat::Csv => Some(table::header(&self.path, table::csv(&self.path)?)?),
            RowFormat::Xlsx => Some(table::header(&self.path, table::xlsx(&self.path)?)?),
            RowFormat::JsonLines | RowFormat::JsonList => None,
        };
        Columns::new(&self.name(), header, questions, metadata)
    }

    /// Reads the rows.
    pub fn rows<'a>(&self, columns: &'a Columns<'a>) -> Result<Rows<'a>, CliError> {
        match self.format {
            RowFormat::Csv => Ok(table::rows(table::csv(&self.path)?, columns)),
            RowFormat::Xlsx => Ok(table::rows(table::xlsx(&self.path)?, columns)),
            RowFormat::JsonLines => self.lines(columns),
            RowFormat::JsonList => self.list(columns),
        }
    }

    /// Returns what identifies the present content of the file.
    pub fn stamp(&self) -> Result<FileStamp, CliError> {
        let metadata = fs::metadata(&self.path).map_err(|error| unreadable(&self.path, error))?;
        match metadata.is_file() {
            true => Ok(FileStamp(metadata.dev(), metadata.ino(), metadata.len(), metadata.modified().ok())),
            false => Err(CliError::usage(format!("{} is not a file", self.name()))),
        }
    }

    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// What a row is called where its number is given.
    pub fn unit(&self) -> &'static str {
        match self.format {
            RowFormat::Csv | RowFormat::JsonLines => "line",
            RowFormat::Xlsx => "row",
            RowFormat::JsonList => "item",
        }
    }

    fn lines<'a>(&self, columns: &'a Columns<'a>) -> Result<Rows<'a>, CliError> {
        let path = self.path.clone();
        let rows =
            (1..).zip(BufReader::new(open(&path)?).split(b'\n')).filter_map(
                move |(number, line)| match line {
                    Ok(line) if line.trim_ascii().is_empty() => None,
                    Ok(line) => Some(Ok((number, parse_row(&line, columns)))),
                    Err(error) => Some(Err(unreadable(&path, error))),
                },
            );
        Ok(Box::new(rows))
    }

    fn list<'a>(&self, columns: &'a Columns<'a>) -> Result<Rows<'a>, CliError> {
        let (name, mut text) = (self.name(), String::new());
        let read = open(&self.path)?.take(MAX_LIST + 1).read_to_string(&mut text);
        read.map_err(|error| unreadable(&self.path, error))?;
        if text.len() as u64 > MAX_LIST {
            let message = format!("{name} is larger than 64 MiB");
            return Err(CliError::usage_with_help(message, "write it as JSON lines, in a file named .jsonl"));
        }
        let list = match json::parse(text.trim_start_matches('\u{feff}')) {
            Ok(Value::Array(list)) => list,
            Ok(other) => {
                return Err(CliError::usage(format!("{name} must be a list, not {}", other.kind())));
            }
            Err(error) => return Err(CliError::usage(format!("{name}: {error}"))),
        };
        Ok(Box::new((1..).zip(list).map(|(number, value)| Ok((number, columns.row_of_json(value))))))
    }
}

fn parse_row(line: &[u8], columns: &Columns<'_>) -> Result<Row, Vec<RowProblem>> {
    let malformed = |message: String| vec![("malformed_json", message)];
    let text = std::str::from_utf8(line).map_err(|_invalid| malformed("not valid UTF-8".to_owned()))?;
    let value = json::parse(text.trim_start_matches('\u{feff}')).map_err(|error| malformed(error.message))?;
    columns.row_of_json(value)
}

fn begins_list(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut first = BufReader::new(file).bytes().map_while(Result::ok);
    first.find(|byte| !byte.is_ascii_whitespace()) == Some(b'[')
}

fn open(path: &Path) -> Result<File, CliError> {
    File::open(path).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: std::io::Error) -> CliError {
    CliError::usage(format!("cannot read {}: {}", path.display(), reason(&error)))
}
