//! Quoting for the shell.

use std::borrow::Cow;

use crate::cli::output::text::is_terminal_control;

/// Quotes `argument` as one shell word; of `key=value` only the value is quoted.
pub fn shell_quote(argument: &str) -> String {
    if argument.contains(is_terminal_control) {
        let escaped = |character: char| match character {
            '\\' | '\'' => format!("\\{character}"),
            '\n' => "\\n".to_owned(),
            _ if is_terminal_control(character) => format!("\\U{:08x}", u32::from(character)),
            _ => character.to_string(),
        };
        return format!("$'{}'", argument.chars().map(escaped).collect::<String>());
    }
    let quote = |text| shlex::try_quote(text).unwrap_or(Cow::Borrowed(text));
    match argument.split_once('=') {
        Some((key, "")) if quote(key) == key => argument.to_owned(),
        Some((key, value)) if quote(key) == key => format!("{key}={}", quote(value)),
        _ => quote(argument).into_owned(),
    }
}
