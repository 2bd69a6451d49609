//! Environment variables used by the command line, read once.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;

/// All variables and their meanings, as `forms help environment` prints them.
pub const VARIABLES: [(&str, &str); 38] = [
    ("FORMS_URL", "server address, same as --url"),
    ("FORMS_CONTEXT", "context, made by `forms login`, same as --context"),
    ("FORMS_API_KEY", "API key"),
    ("FORMS_API_KEY_FILE", "file with the API key, same as --key-file"),
    ("FORMS_DATA", "data directory, same as --data: needs no server"),
    ("FORMS_STORE", "database of `serve`, which may have a password, same as `serve --store`"),
    (
        "FORMS_ALLOW_NET",
        "networks that integrations may call, separated by commas, same as `serve --allow-net`",
    ),
    ("FORMS_MASTER_KEY", "key that seals secrets: 32 bytes in base64 or hexadecimal"),
    ("FORMS_MASTER_KEY_FILE", "file with the key that seals secrets, same as `serve --master-key-file`"),
    ("FORMS_SMTP_URL", "mail server, same as `serve --smtp-url`"),
    ("FORMS_SMTP_USERNAME", "user name on it, same as `serve --smtp-username`"),
    ("FORMS_SMTP_PASSWORD_FILE", "file with the password, same as `serve --smtp-password-file`"),
    ("FORMS_MAIL_FROM", "sender of all mail, same as `serve --mail-from`"),
    ("FORMS_MAIL_DIR", "folder for mail instead of sending it, same as `serve --mail-dir`"),
    ("FORMS_GOOGLE_URL", "URL in place of Google's hosts, same as `serve --google-url`"),
    ("SSL_CERT_FILE", "certificates of the authorities to trust, instead of the system's"),
    ("FORMS_COMPLETE_TIMEOUT", "time limit of completions that a server knows [250ms]"),
    ("FORMS_NO_INPUT", "if set, never prompt, same as --no-input"),
    ("CI", "if set, never prompt"),
    ("NO_COLOR", "if set, no colours; overrides the next two"),
    ("FORCE_COLOR", "if set and not 0, colours even without a terminal"),
    ("CLICOLOR_FORCE", "same as FORCE_COLOR"),
    ("TERM", "if `dumb`, no colours and no prompts"),
    ("XDG_RUNTIME_DIR", "folder where commands find a running server"),
    ("XDG_STATE_HOME", "used instead if XDG_RUNTIME_DIR is not set"),
    ("FORMS_CONFIG_DIR", "folder of credentials.yaml, which `forms login` writes"),
    ("XDG_CONFIG_HOME", "if FORMS_CONFIG_DIR is not set: forms/ in this folder"),
    ("FORMS_LOG", "log level of `serve`: error, warn, info (default), debug"),
    ("VISUAL", "editor of forms and long answers; default: EDITOR, then vi"),
    ("EDITOR", "used instead if VISUAL is not set"),
    ("DISPLAY", "if set, `forms open` starts a browser"),
    ("WAYLAND_DISPLAY", "same as DISPLAY"),
    ("SSH_CONNECTION", "if set, `forms open` starts no browser"),
    ("LC_ALL", "with UTF-8 in its value, `forms share` draws a QR code"),
    ("LC_CTYPE", "used instead if LC_ALL is not set"),
    ("LANG", "used instead if LC_CTYPE is not set"),
    ("TMPDIR", "folder for the text being edited; default: /tmp"),
    ("HOME", "your home folder"),
];

/// Values of all variables that are valid UTF-8. An empty one counts as not set.
#[derive(Debug, Clone, Default)]
pub struct Environment(HashMap<String, String>);

impl Environment {
    /// Reads the environment of the process.
    pub fn of_process() -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self(env::vars_os().filter_map(text).collect())
    }

    /// Returns the first variable that selects the target and is not valid UTF-8. Treating it as not set would use another
    /// target than intended.
    pub fn unreadable_variable() -> Option<&'static str> {
        let decides = |name: &&str| {
            ["FORMS_", "XDG_"].iter().any(|prefix| name.starts_with(prefix))
                || ["VISUAL", "EDITOR", "TMPDIR"].contains(name)
        };
        let is_unreadable = |name: &&str| env::var_os(name).is_some_and(|value| value.to_str().is_none());
        VARIABLES.iter().map(|(name, _)| *name).filter(decides).find(is_unreadable)
    }

    /// Creates an environment with only these variables.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self(variables.iter().map(owned).collect())
    }

    /// Returns the value of `name`, unless it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
