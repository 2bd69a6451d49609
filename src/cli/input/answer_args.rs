//! Parsing of answers given as arguments: `q1=hello`, `q1:=JSON` and `q1=@file`.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use crate::cli::input::document;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::cli::output::shell_quote::shell_quote;
use crate::domain::json::{self, Value};
use crate::domain::question::is_empty;

/// One parsed argument.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerArg {
    pub key: String,
    pub value: ArgValue,
}

/// Value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgValue {
    /// `KEY=VALUE` or `KEY=@FILE`: text, converted by the type of the question.
    Text(String),
    /// `KEY:=JSON`: sent unchanged.
    Json(Value),
}

impl AnswerArg {
    /// Whether it counts as no answer: `null`, `[]`, `{}` or blank text given as JSON.
    pub fn is_empty(&self) -> bool {
        matches!(&self.value, ArgValue::Json(value) if is_empty(value))
    }
}

/// Formats it as it is typed, without quotes of the shell.
impl fmt::Display for AnswerArg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.value {
            ArgValue::Text(text) | ArgValue::Json(Value::String(text)) if text.starts_with('@') => {
                write!(formatter, "{key}=\\{text}")
            }
            ArgValue::Text(text) | ArgValue::Json(Value::String(text)) => write!(formatter, "{key}={text}"),
            ArgValue::Json(value) => write!(formatter, "{key}:={value}"),
        }
    }
}

/// Parses the arguments; `read` returns the content of a file for a key. Only one of `files` and arguments may be `-`.
/// An error has all problems of the arguments.
pub fn parse(
    arguments: &[String],
    files: &[&Path],
    read: impl Fn(&str, &Path) -> Result<String, CliError>,
) -> Result<Vec<AnswerArg>, CliError> {
    let inputs = arguments.iter().filter(|argument| argument.ends_with("=@-")).count();
    if inputs + files.iter().filter(|file| **file == Path::new("-")).count() > 1 {
        return Err(CliError::usage("standard input can be read only once"));
    }
    let parse_one = |argument: &String| {
        let Some((key, text)) = argument.split_once('=') else {
            let help = "answers are KEY=VALUE, such as q1=hello";
            return Err(CliError::usage_with_help(format!("`{argument}` has no `=`"), help));
        };
        if let Some(key) = key.strip_suffix(':') {
            let value = json::parse(text).map_err(|error| {
                let help = format!("as text: {}", shell_quote(&format!("{key}={text}")));
                let message = format!("invalid JSON after `:=` in `{argument}`: {error}");
                CliError::usage_with_help(message, help)
            })?;
            return Ok(AnswerArg { key: key.to_owned(), value: ArgValue::Json(value) });
        }
        let text = match text.strip_prefix('@') {
            Some(file) => read(key, Path::new(file))?,
            None if text.starts_with("\\@") => text[1..].to_owned(),
            None => text.to_owned(),
        };
        Ok(AnswerArg { key: key.to_owned(), value: ArgValue::Text(text) })
    };
    collect_all(arguments.iter().map(parse_one))
}

/// Collects the values, or combines all errors.
pub fn collect_all<T>(results: impl Iterator<Item = Result<T, CliError>>) -> Result<Vec<T>, CliError> {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    CliError::combine(errors).map(|()| values)
}

/// Maximum size of a file with an answer, in bytes; servers accept no more by default.
const MAX_FILE: u64 = 1 << 20;

/// Reads the answer to `key` from the file at `path`, `-` for standard input, without its final line feed.
pub fn read_file(key: &str, path: &Path) -> Result<String, CliError> {
    let shown = path.display();
    let read = document::open(path).and_then(|file| io::read_to_string(file.take(MAX_FILE + 1)));
    let text = read.map_err(|error| {
        let text = shell_quote(&format!("{key}=\\@{shown}"));
        let help = format!("to send a text that begins with @: {text}");
        CliError::usage_with_help(format!("cannot read {shown}: {}", reason(&error)), help)
    })?;
    if text.len() as u64 > MAX_FILE {
        return Err(CliError::usage(format!("{shown} is larger than 1 MiB")));
    }
    let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    Ok(line.unwrap_or(&text).to_owned())
}
