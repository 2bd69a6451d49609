//! The environment variables the command line knows, read once: the one table of them.

use std::collections::HashMap;
use std::env;

/// Every variable and what it does, as `forms help environment` prints it.
pub const VARIABLES: [(&str, &str); 17] = [
    ("FORMS_URL", "address of the server, as --url"),
    ("FORMS_API_KEY", "API key"),
    ("FORMS_API_KEY_FILE", "file that holds the API key, as --key-file"),
    ("FORMS_DATA", "data directory, as --data: work on the store without a server"),
    ("FORMS_NO_INPUT", "set: never ask anything, as --no-input"),
    ("CI", "set: never ask anything"),
    ("NO_COLOR", "set: no colours; wins over the next two"),
    ("FORCE_COLOR", "set and not 0: colours also where there is no terminal"),
    ("CLICOLOR_FORCE", "as FORCE_COLOR"),
    ("TERM", "`dumb`: no colours, and nothing is asked"),
    ("XDG_RUNTIME_DIR", "folder where a running server announces itself to your commands"),
    ("XDG_STATE_HOME", "the same, where XDG_RUNTIME_DIR is not set"),
    ("FORMS_LOG", "what `serve` logs: error, warn, info (default), debug"),
    ("VISUAL", "the editor of `forms edit`, with its arguments; without it EDITOR, then vi"),
    ("EDITOR", "the same, where VISUAL is not set"),
    ("TMPDIR", "where the text lies that is being edited; /tmp by default"),
    ("HOME", "the user's folder"),
];

/// What the variables of [`VARIABLES`] are set to. An empty one counts as not set.
#[derive(Debug, Clone, Default)]
pub struct Environment(HashMap<String, String>);

impl Environment {
    /// The process's environment.
    pub fn of_process() -> Self {
        let read = |(name, _): &(&str, _)| Some(((*name).to_owned(), env::var(name).ok()?));
        Self(VARIABLES.iter().filter_map(read).collect())
    }

    /// The first variable that decides where a command works and is not valid UTF-8: if it counted as not set, the
    /// command would work elsewhere than it was told to.
    pub fn unreadable_variable() -> Option<&'static str> {
        let decides = |name: &&str| {
            ["FORMS_", "XDG_"].iter().any(|prefix| name.starts_with(prefix))
                || ["VISUAL", "EDITOR", "TMPDIR"].contains(name)
        };
        let is_unreadable = |name: &&str| env::var_os(name).is_some_and(|value| value.to_str().is_none());
        VARIABLES.iter().map(|(name, _)| *name).filter(decides).find(is_unreadable)
    }

    /// An environment with these variables only.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self(variables.iter().map(owned).collect())
    }

    /// The value of `name`, unless it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
