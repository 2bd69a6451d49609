//! Errors from opening a store in this process.
#![deny(clippy::wildcard_enum_match_arm)]

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::cli::environment::Environment;
use crate::cli::input::values::network;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error;
use crate::cli::output::shell_quote::shell_quote;
use crate::config::{Config, MailConfig};
use crate::process::free_space;
use crate::server::ServerError;
use crate::store::{OpenError, StoreError, holds_store};

/// Converts a server error to a command-line error; `if_in_use` is the help if another process holds the store.
pub fn open_error(data: &Path, error: ServerError, if_in_use: &'static str) -> CliError {
    match error {
        ServerError::InvalidConfig(why) => CliError::usage(why),
        ServerError::Tls(error) => CliError::usage(io_error::without_number(&error.to_string())),
        ServerError::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
            CliError::AddressInUse { address: address.to_string(), holder: None }
        }
        ServerError::Open(OpenError::Locked { holder, .. }) => {
            let holder = holder.map(|holder| (holder.pid, holder.address));
            CliError::InUse { data: data.to_owned(), holder, help: if_in_use }
        }
        ServerError::Open(OpenError::Io { source, .. }) if is_mistake(source.kind()) => {
            not_a_directory(data, &source)
        }
        ServerError::Store(StoreError::Full) => no_space(data),
        ServerError::MasterKeyMissing(_) => CliError::usage_with_help(
            error.to_string(),
            "restore it from a backup; or start with forms serve --new-master-key, and set the secrets again",
        ),
        ServerError::MasterKey { .. } | ServerError::SmtpPassword { .. } => {
            failure(error.to_string(), error.source())
        }
        ServerError::Listen { .. } => failure(io_error::without_number(&error.to_string()), error.source()),
        ServerError::Open(_) | ServerError::Store(_) | ServerError::KeyFile { .. } => {
            failure(format!("cannot use the store in {}", data.display()), Some(&error))
        }
    }
}

/// Returns the settings of the data directory `data`, with what the environment says about integrations: a command without
/// a server needs it too.
pub fn config(data: &Path, environment: &Environment) -> Result<Config, CliError> {
    let mut config = Config::new(data);
    config.delivery.master_key_file = environment.get("FORMS_MASTER_KEY_FILE").map(PathBuf::from);
    let networks = environment.get("FORMS_ALLOW_NET").into_iter().flat_map(|text| text.split(','));
    let parse = |text: &str| {
        network(text.trim()).map_err(|error| CliError::usage(format!("FORMS_ALLOW_NET: {error}")))
    };
    config.delivery.policy.allowed = networks.map(parse).collect::<Result<_, _>>()?;
    config.delivery.mail = MailConfig {
        smtp_url: parsed(environment, "FORMS_SMTP_URL")?,
        smtp_username: environment.get("FORMS_SMTP_USERNAME").map(str::to_owned),
        smtp_password_file: environment.get("FORMS_SMTP_PASSWORD_FILE").map(PathBuf::from),
        from: parsed(environment, "FORMS_MAIL_FROM")?,
        folder: environment.get("FORMS_MAIL_DIR").map(PathBuf::from),
    };
    config.delivery.google = parsed(environment, "FORMS_GOOGLE_URL")?.unwrap_or_default();
    Ok(config)
}

/// Returns the value of a variable, if it is set.
fn parsed<T: FromStr<Err: Display>>(environment: &Environment, name: &str) -> Result<Option<T>, CliError> {
    let parse = |text: &str| text.parse().map_err(|error| CliError::usage(format!("{name}: {error}")));
    environment.get(name).map(parse).transpose()
}

/// Fails if the data directory has no store. Commands that create one do not call this.
pub fn expect_store(data: &Path) -> Result<(), CliError> {
    let shown = data.display();
    match holds_store(data) {
        Ok(true) => Ok(()),
        Err(error) if is_mistake(error.kind()) => Err(not_a_directory(data, &error)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CliError::io(format!("cannot open the store in {shown}"), error))
        }
        Ok(false) | Err(_) => {
            let word = shell_quote(&shown.to_string());
            let help = format!("forms serve --data {word}, or forms create --data {word} -f FILE, makes one");
            Err(CliError::usage_with_help(format!("there is no store in {shown}"), help))
        }
    }
}

/// Whether the path cannot be a data directory at all.
fn is_mistake(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotADirectory | io::ErrorKind::DirectoryNotEmpty)
}

fn not_a_directory(data: &Path, error: &io::Error) -> CliError {
    let shown = data.display();
    let is_folder = error.kind() == io::ErrorKind::DirectoryNotEmpty;
    CliError::usage(if is_folder {
        format!("{shown} is not a data directory: {}", io_error::reason(error))
    } else {
        format!("{shown} is not a folder")
    })
}

fn no_space(data: &Path) -> CliError {
    let free = free_space(data).map_or_else(|_| "little".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
    let cause = format!("cause: its disk has {free} free, less than `--min-free` keeps (128 MiB by default)");
    let advice = "free some space, or start the server with a lower `--min-free`".to_owned();
    CliError::Failed {
        message: format!("cannot use the store in {}", data.display()),
        causes: vec![cause, advice],
    }
}

fn failure(message: String, mut cause: Option<&(dyn Error + 'static)>) -> CliError {
    let mut causes = Vec::new();
    while let Some(next) = cause {
        let text = match next.downcast_ref::<io::Error>() {
            Some(error) => io_error::reason(error),
            None => io_error::without_number(&next.to_string()),
        };
        causes.push(format!("cause: {text}"));
        cause = next.source();
    }
    CliError::Failed { message, causes }
}
