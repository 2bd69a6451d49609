//! A store that is opened in this process: its settings, and its errors.
#![deny(clippy::wildcard_enum_match_arm)]

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::Resettable;
use clap::{Args, Command, FromArgMatches, ValueHint};
use ipnet::IpNet;

use crate::cli::input::values::network;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error;
use crate::cli::output::shell_quote::shell_quote;
use crate::cli::usage;
use crate::config::{Config, MailConfig, StoreLocation};
use crate::domain::integration::smtp::MailFrom;
use crate::process::free_space;
use crate::secret::Secret;
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
        ServerError::MasterKey { .. } | ServerError::SmtpPassword { .. } | ServerError::Listen { .. } => {
            failure(io_error::without_number(&error.to_string()), error.source())
        }
        ServerError::Open(_)
        | ServerError::Database(_)
        | ServerError::Store(_)
        | ServerError::KeyFile { .. } => {
            failure(format!("cannot use the store in {}", data.display()), Some(&error))
        }
    }
}

/// Settings of deliveries that a command without a server needs too: flags of `serve`, else variables.
#[derive(Debug, Args)]
#[command(next_help_heading = "Integrations")]
pub struct StoreFlags {
    /// Private network, such as 10.0.0.0/8, that integrations may call, also over HTTP; repeatable
    #[arg(long, value_name = "CIDR", env = "FORMS_ALLOW_NET", hide_env = true)]
    #[arg(value_parser = network, value_delimiter = ',')]
    allow_net: Vec<IpNet>,
    /// URL in place of Google's hosts, for private endpoints and tests: /token and /v4/spreadsheets below it
    #[arg(long, value_name = "URL", env = "FORMS_GOOGLE_URL", hide_env = true, hide_short_help = true)]
    google_url: Option<String>,
    /// File with the key that seals secrets: 32 bytes in base64 [default: master-key in the data directory, made at the first start]
    #[arg(long, value_name = "FILE", env = "FORMS_MASTER_KEY_FILE", hide_env = true, hide_short_help = true)]
    master_key_file: Option<PathBuf>,
    #[command(flatten)]
    mail: MailFlags,
}

/// Flags about sending mail.
#[derive(Debug, Args)]
#[command(next_help_heading = "Mail")]
pub struct MailFlags {
    #[arg(long, value_name = "URL", hide_short_help = true)]
    #[arg(
        help = "Mail server: smtps://HOST:465 (TLS), smtp://HOST:587 (STARTTLS), or smtp+plain://127.0.0.1:25"
    )]
    smtp_url: Option<String>,
    /// User name on the mail server
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    smtp_username: Option<String>,
    /// File with the password on the mail server
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    smtp_password_file: Option<PathBuf>,
    /// Sender of all mail, such as "Example Forms <forms@example.com>"
    #[arg(long, value_name = "ADDRESS", env = "FORMS_MAIL_FROM", hide_env = true, hide_short_help = true)]
    mail_from: Option<MailFrom>,
    /// Write mail to files in this folder instead of sending it, for development
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    mail_dir: Option<PathBuf>,
}

impl StoreFlags {
    /// Returns the settings of the data directory `data` by the environment alone.
    pub fn of_environment(data: &Path) -> Result<Config, CliError> {
        let command = ignore_empty_variables(Self::augment_args(Command::new("forms")));
        let matches = command.try_get_matches_from(["forms"]);
        let flags = matches.and_then(|matches| Self::from_arg_matches(&matches));
        flags
            .map_err(|error| usage(&error.render().to_string()))?
            .config(StoreLocation::Folder(data.to_owned()))
    }

    /// Returns the settings of the store.
    pub fn config(self, store: StoreLocation) -> Result<Config, CliError> {
        let mut config = Config { store, ..Config::new("") };
        config.delivery.policy.allowed = self.allow_net;
        config.delivery.google = parsed("google-url", self.google_url.as_deref())?.unwrap_or_default();
        config.delivery.master_key = variable("FORMS_MASTER_KEY").map(Secret::new);
        config.delivery.master_key_file = self.master_key_file;
        config.delivery.mail = self.mail.config()?;
        Ok(config)
    }
}

impl MailFlags {
    /// Returns the settings of mail.
    pub fn config(self) -> Result<MailConfig, CliError> {
        let mail = self.or_variables();
        Ok(MailConfig {
            smtp_url: parsed("smtp-url", mail.smtp_url.as_deref())?,
            smtp_username: mail.smtp_username,
            smtp_password_file: mail.smtp_password_file,
            from: mail.mail_from,
            folder: mail.mail_dir,
        })
    }

    /// Takes what no flag says from variables. A flag that names one way to send mail wins over the variables of the other.
    fn or_variables(mut self) -> Self {
        let (is_sent, is_written) = (self.smtp_url.is_some(), self.mail_dir.is_some());
        if !is_sent {
            self.mail_dir = self.mail_dir.or_else(|| variable("FORMS_MAIL_DIR").map(PathBuf::from));
        }
        if !is_written {
            self.smtp_url = self.smtp_url.or_else(|| variable("FORMS_SMTP_URL"));
            self.smtp_username = self.smtp_username.or_else(|| variable("FORMS_SMTP_USERNAME"));
            let file = || variable("FORMS_SMTP_PASSWORD_FILE").map(PathBuf::from);
            self.smtp_password_file = self.smtp_password_file.or_else(file);
        }
        self
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Parses the value of a flag here, because clap's errors would quote a password in it.
fn parsed<T: FromStr<Err: Display>>(flag: &str, text: Option<&str>) -> Result<Option<T>, CliError> {
    let parse =
        |text: &str| text.parse().map_err(|error| CliError::usage(format!("invalid --{flag}: {error}")));
    text.map(parse).transpose()
}

/// Has `command` ignore variables that are set but empty.
pub fn ignore_empty_variables(command: Command) -> Command {
    command.mut_args(|argument| match argument.get_env().and_then(env::var_os) {
        Some(value) if value.is_empty() => argument.env(Resettable::Reset),
        _ => argument,
    })
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
