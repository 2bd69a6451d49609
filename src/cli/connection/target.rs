//! Which server, with which key, and who said so: flag, then environment, then a server of this user, then default.

use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cli::connection::global_flags::Global;
use crate::cli::connection::running_servers::Live;
use crate::cli::environment::Environment;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::client::{self, Url};
use crate::secret::Secret;

/// Where a server listens if nobody says otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8787";

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Flag,
    Env,
    Runtime,
    Default,
}

/// A value and who said it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Sourced<T> {
    pub value: T,
    pub source: Source,
}

/// The key to a server.
#[derive(Debug, Clone)]
pub struct Key {
    pub text: Secret<String>,
    pub source: Source,
    /// For a person: `FORMS_API_KEY`, `--key-file ./key`.
    pub origin: String,
}

/// Where a command works.
#[derive(Debug, Clone)]
pub enum Target {
    Server { url: Sourced<Url>, key: Option<Key> },
    Data(Sourced<PathBuf>),
}

/// What is known besides the command line.
pub struct Surroundings<'a> {
    pub environment: &'a Environment,
    /// The servers of this user that are running.
    pub live: &'a dyn Fn() -> Vec<Live>,
    pub warn: &'a dyn Fn(&str),
}

/// Finds out where to work.
///
/// Refuses contradictions, and several servers to choose from.
pub fn resolve(global: &Global, around: &Surroundings<'_>) -> Result<Target, CliError> {
    if let Some(data) = data(global, around.environment)? {
        return Ok(Target::Data(data));
    }
    let live = (around.live)();
    let url = address(global, around.environment, &live)?;
    let key = match given_key(global, around)? {
        Some(key) => Some(key),
        None => live.iter().find(|server| server.is_at(&url.value)).map(|server| Key {
            text: server.key.clone(),
            source: Source::Runtime,
            origin: format!("the running server's {}", server.file.display()),
        }),
    };
    Ok(Target::Server { url, key })
}

/// The data directory to work in, if one was named; an address named by a flag overrides the environment's.
pub fn data(global: &Global, environment: &Environment) -> Result<Option<Sourced<PathBuf>>, CliError> {
    match (&global.data, &global.url) {
        (Some(_), Some(_)) => Err(CliError::usage("--data and --url exclude each other")),
        (Some(data), None) => Ok(Some(Sourced { value: data.clone(), source: Source::Flag })),
        (None, Some(_)) => Ok(None),
        (None, None) => match (environment.get("FORMS_DATA"), environment.get("FORMS_URL")) {
            (Some(_), Some(_)) => Err(CliError::usage_with_help(
                "FORMS_DATA and FORMS_URL are both set",
                "unset one of them, or say --data or --url",
            )),
            (Some(data), None) => Ok(Some(Sourced { value: data.into(), source: Source::Env })),
            (None, _) => Ok(None),
        },
    }
}

fn address(global: &Global, environment: &Environment, live: &[Live]) -> Result<Sourced<Url>, CliError> {
    if let Some(url) = &global.url {
        return Ok(Sourced { value: parse(url, "--url")?, source: Source::Flag });
    }
    if let Some(url) = environment.get("FORMS_URL") {
        return Ok(Sourced { value: parse(url, "FORMS_URL")?, source: Source::Env });
    }
    match live {
        [] => Ok(Sourced { value: parse(DEFAULT_URL, "the default")?, source: Source::Default }),
        [server] => Ok(Sourced { value: parse(&server.url, "the runtime file")?, source: Source::Runtime }),
        several => {
            let list: Vec<_> = several
                .iter()
                .map(|server| format!("--url {}  ({})", server.url, server.data.display()))
                .collect();
            Err(CliError::usage_with_help(
                format!("{} servers of yours are running", several.len()),
                format!("add one of\n{}", list.join("\n")),
            ))
        }
    }
}

fn parse(text: &str, origin: &str) -> Result<Url, CliError> {
    match Url::parse(text) {
        Ok(url) if is_address(&url) => Ok(url),
        _ => {
            // What comes before an `@` may be a password.
            let shown = if text.contains('@') { String::new() } else { format!(" `{text}`") };
            let message = format!("{origin}{shown} is not a valid server address");
            let help = suggested(text).map_or_else(
                || "give scheme, host and port alone: https://forms.example.com".to_owned(),
                |address| format!("did you mean {address}?"),
            );
            Err(CliError::usage_with_help(message, help))
        }
    }
}

/// Whether `url` has scheme, host, port and path, and nothing else.
fn is_address(url: &Url) -> bool {
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    matches!(url.scheme(), "http" | "https") && is_bare && url.fragment().is_none()
}

/// The address that was probably meant: with a scheme, without a query or the path of a page (`#/`).
fn suggested(text: &str) -> Option<String> {
    let is_local = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let mut address = match text.split_once("://") {
        Some(("http" | "https", _)) => Url::parse(text).ok()?,
        Some(_) => return None,
        None => {
            let secure = Url::parse(&format!("https://{text}")).ok()?;
            let scheme = if is_local(secure.host_str()?) { "http" } else { "https" };
            Url::parse(&format!("{scheme}://{text}")).ok()?
        }
    };
    // A password is not repeated.
    if !address.username().is_empty() || address.password().is_some() {
        return None;
    }
    address.set_query(None);
    address.set_fragment(None);
    Some(address.as_str().trim_end_matches('/').to_owned())
}

/// Whether `url` is an address of this machine itself.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Refuses to send a key unencrypted beyond this machine.
pub fn refuse_in_the_clear(url: &Url, insecure_http: bool) -> Result<(), CliError> {
    if url.scheme() == "https" || is_loopback(url) || insecure_http {
        return Ok(());
    }
    Err(CliError::usage_with_help(
        format!("{url} would send the API key unencrypted over the network"),
        "use https, or add --insecure-http if the network is your own",
    ))
}

fn given_key(global: &Global, around: &Surroundings<'_>) -> Result<Option<Key>, CliError> {
    if let Some(path) = &global.key_file {
        let origin = format!("--key-file {}", path.display());
        return read_key(path, Source::Flag, origin, around.warn).map(Some);
    }
    if let Some(text) = around.environment.get("FORMS_API_KEY") {
        let origin = "FORMS_API_KEY".to_owned();
        return checked(text.trim(), Source::Env, origin).map(Some);
    }
    let Some(path) = around.environment.get("FORMS_API_KEY_FILE") else { return Ok(None) };
    let origin = format!("FORMS_API_KEY_FILE, {path}");
    read_key(Path::new(path), Source::Env, origin, around.warn).map(Some)
}

fn read_key(path: &Path, source: Source, origin: String, warn: &dyn Fn(&str)) -> Result<Key, CliError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(4096).read_to_string(&mut text)
    } else {
        if is_readable_by_others(path) {
            warn(&format!("{} is readable by others; chmod 600 {0}", path.display()));
        }
        fs::File::open(path).and_then(|file| file.take(4096).read_to_string(&mut text))
    };
    read.map_err(|error| CliError::usage(format!("cannot read the API key ({origin}): {}", reason(&error))))?;
    checked(text.trim(), source, origin)
}

fn checked(text: &str, source: Source, origin: String) -> Result<Key, CliError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!("{origin} is not a valid API key")));
    }
    Ok(Key { text: Secret::new(text.to_owned()), source, origin })
}

fn is_readable_by_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o077 != 0)
}

impl Key {
    /// What may be shown of the key.
    pub fn redacted(&self) -> String {
        client::redacted(self.text.reveal())
    }
}
