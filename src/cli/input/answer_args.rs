//! Parsing of answers given as arguments: `q1=hello`, `q1:=JSON` and `q1=@file`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::cli::output::exit::CliError;
use crate::cli::output::io_error;
use crate::cli::output::shell_quote::shell_quote;
use crate::domain::json::{self, Value};

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

/// Parses the arguments; `read` returns the content of a file for a key. Only one of `files` and arguments may be `-`.
///
/// # Errors
/// With all problems of the arguments.
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
    let (mut fine, mut wrong) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => fine.push(value),
            Err(error) => wrong.push(error),
        }
    }
    CliError::combine(wrong).map(|()| fine)
}

/// Maximum size of a file with an answer, in bytes; servers accept no more by default.
const MAX_FILE: u64 = 1 << 20;

/// Reads the answer to `key` from the file at `path`, `-` for standard input, without its final line feed.
pub fn read_file(key: &str, path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let got = if path == Path::new("-") {
        io::stdin().lock().take(MAX_FILE + 1).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text))
    };
    let shown = path.display();
    got.map_err(|error| {
        let text = shell_quote(&format!("{key}=\\@{shown}"));
        let help = format!("to send a text that begins with @: {text}");
        CliError::usage_with_help(format!("cannot read {shown}: {}", io_error::reason(&error)), help)
    })?;
    if text.len() as u64 > MAX_FILE {
        return Err(CliError::usage(format!("{shown} is larger than 1 MiB")));
    }
    Ok(text
        .strip_suffix('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .unwrap_or(&text)
        .to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::json;
    use super::{AnswerArg, ArgValue, CliError, parse};

    fn one(argument: &str) -> Result<AnswerArg, CliError> {
        let read = |_: &str, path: &Path| Ok(format!("in {}", path.display()));
        parse(&[argument.to_owned()], &[], read).map(|mut args| args.remove(0))
    }

    #[test]
    fn the_value_is_all_after_the_first_equals_sign() {
        for (argument, key, text) in [
            ("q1=hello", "q1", "hello"),
            ("q1=", "q1", ""),
            ("q1==x", "q1", "=x"),
            ("q1=a=b", "q1", "a=b"),
            ("q1=a:=b", "q1", "a:=b"),
            ("q1=\\@x", "q1", "@x"),
            ("q1=\\x", "q1", "\\x"),
            ("q1=01234", "q1", "01234"),
            ("q1=@bio.txt", "q1", "in bio.txt"),
            ("q1=@-", "q1", "in -"),
        ] {
            assert_eq!(
                one(argument).unwrap(),
                AnswerArg { key: key.to_owned(), value: ArgValue::Text(text.to_owned()) }
            );
        }
    }

    #[test]
    fn behind_a_colon_and_an_equals_sign_stands_json() {
        for (argument, json) in
            [("q1:=4.50", "4.50"), ("q1:={\"a\":[1]}", "{\"a\":[1]}"), ("q1:=\"@x\"", "\"@x\"")]
        {
            let value = ArgValue::Json(json::parse(json).unwrap());
            assert_eq!(one(argument).unwrap(), AnswerArg { key: "q1".to_owned(), value });
        }
        for argument in ["q1", "q1:=", "q1:=red", "q1:={\"a\":1,\"a\":2}", "q1:=@file"] {
            assert!(matches!(one(argument), Err(CliError::Usage { .. })), "{argument}");
        }
    }
}
