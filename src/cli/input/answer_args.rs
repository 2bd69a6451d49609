//! `q1=hello` on the command line, taken apart; with the text of the file that `q1=@file` names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::cli::output::exit::CliError;
use crate::cli::output::io_error;
use crate::cli::output::shell_quote::quoted;
use crate::domain::json::{self, Value};

/// An argument, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    pub key: String,
    pub value: Input,
}

/// How a value was given.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// `KEY=VALUE` or `KEY=@FILE`: text, which the type of the question turns into more.
    Text(String),
    /// `KEY:=JSON`: sent as it is.
    Json(Value),
}

/// Takes the arguments apart; `read` gives the answer to a key that is in a file. `-` can be one of `files` or one
/// argument's.
///
/// # Errors
/// With all that is wrong with them.
pub fn parse(
    arguments: &[String],
    files: &[&Path],
    read: impl Fn(&str, &Path) -> Result<String, CliError>,
) -> Result<Vec<Given>, CliError> {
    let inputs = arguments.iter().filter(|argument| argument.ends_with("=@-")).count();
    if inputs + files.iter().filter(|file| **file == Path::new("-")).count() > 1 {
        return Err(CliError::usage("standard input can be read once only"));
    }
    let given = |argument: &String| {
        let Some((key, text)) = argument.split_once('=') else {
            let help = "answers are KEY=VALUE, such as q1=hello";
            return Err(CliError::usage_with_help(format!("`{argument}` has no `=`"), help));
        };
        if let Some(key) = key.strip_suffix(':') {
            let value = json::parse(text).map_err(|error| {
                let help = format!("as text: {}", quoted(&format!("{key}={text}")));
                let message = format!("`{argument}` has no JSON behind `:=`: {error}");
                CliError::usage_with_help(message, help)
            })?;
            return Ok(Given { key: key.to_owned(), value: Input::Json(value) });
        }
        let text = match text.strip_prefix('@') {
            Some(file) => read(key, Path::new(file))?,
            None if text.starts_with("\\@") => text[1..].to_owned(),
            None => text.to_owned(),
        };
        Ok(Given { key: key.to_owned(), value: Input::Text(text) })
    };
    all(arguments.iter().map(given))
}

/// The results, or all failures together.
pub fn all<T>(results: impl Iterator<Item = Result<T, CliError>>) -> Result<Vec<T>, CliError> {
    let (mut fine, mut wrong) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => fine.push(value),
            Err(error) => wrong.push(error),
        }
    }
    CliError::together(wrong).map(|()| fine)
}

/// Bytes that a file with an answer may have: no server takes more by default.
const MAX_FILE: u64 = 1 << 20;

/// The answer to `key` in the file at `path`, `-` being standard input, without the line feed at its end.
pub fn read_file(key: &str, path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let got = if path == Path::new("-") {
        io::stdin().lock().take(MAX_FILE + 1).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text))
    };
    let shown = path.display();
    got.map_err(|error| {
        let text = quoted(&format!("{key}=\\@{shown}"));
        let help = format!("to send a text that begins with @: {text}");
        CliError::usage_with_help(format!("cannot read {shown}: {}", io_error::reason(&error)), help)
    })?;
    if text.len() as u64 > MAX_FILE {
        return Err(CliError::usage(format!("{shown} has more than 1 MiB")));
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
    use super::{CliError, Given, Input, parse};

    fn one(argument: &str) -> Result<Given, CliError> {
        let read = |_: &str, path: &Path| Ok(format!("in {}", path.display()));
        parse(&[argument.to_owned()], &[], read).map(|mut given| given.remove(0))
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
                Given { key: key.to_owned(), value: Input::Text(text.to_owned()) }
            );
        }
    }

    #[test]
    fn behind_a_colon_and_an_equals_sign_stands_json() {
        for (argument, json) in
            [("q1:=4.50", "4.50"), ("q1:={\"a\":[1]}", "{\"a\":[1]}"), ("q1:=\"@x\"", "\"@x\"")]
        {
            let value = Input::Json(json::parse(json).unwrap());
            assert_eq!(one(argument).unwrap(), Given { key: "q1".to_owned(), value });
        }
        for argument in ["q1", "q1:=", "q1:=red", "q1:={\"a\":1,\"a\":2}", "q1:=@file"] {
            assert!(matches!(one(argument), Err(CliError::Usage { .. })), "{argument}");
        }
    }
}
