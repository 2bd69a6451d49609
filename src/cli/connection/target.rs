//! Resolution of the server and key: flag, then environment, then a running server of this user, then default.

use std::fs;
use std::io::{IsTerminal, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cli::connection::global_flags::Global;
use crate::cli::connection::running_servers::RunningServer;
use crate::cli::environment::Environment;
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::client::{self, Url};
use crate::secret::Secret;

/// Default address of a server.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8787";

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Flag,
    Env,
    Runtime,
    Default,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Sourced<T> {
    pub value: T,
    pub source: Source,
}

#[derive(Debug, Clone)]
pub struct Key {
    pub text: Secret<String>,
    pub source: Source,
    /// Where it came from, as text: `FORMS_API_KEY`, `--key-file ./key`.
    pub origin: String,
}

/// The server or data directory a command works on.
#[derive(Debug, Clone)]
pub enum Target {
    Server { url: Sourced<Url>, key: Option<Key> },
    Data(Sourced<PathBuf>),
}

/// Resolves the target; `running` are the running servers of this user.
///
/// # Errors
/// If the settings contradict each other, or several servers are running.
pub fn resolve(
    global: &Global,
    environment: &Environment,
    running: &[RunningServer],
    output: &Output,
) -> Result<Target, CliError> {
    if let Some(data) = data(global, environment)? {
        return Ok(Target::Data(data));
    }
    let url = address(global, environment, running)?;
    let key = match explicit_key(global, environment, output)? {
        Some(key) => Some(key),
        None => running.iter().find(|server| server.is_at(&url.value)).map(|server| Key {
            text: server.key.clone(),
            source: Source::Runtime,
            origin: format!("the running server's {}", server.file.display()),
        }),
    };
    Ok(Target::Server { url, key })
}

/// Returns the data directory, if one is set; `--url` overrides `FORMS_DATA`.
pub fn data(global: &Global, environment: &Environment) -> Result<Option<Sourced<PathBuf>>, CliError> {
    match (&global.data, &global.url) {
        (Some(_), Some(_)) => Err(CliError::usage("--data and --url cannot be used together")),
        (Some(data), None) => Ok(Some(Sourced { value: data.clone(), source: Source::Flag })),
        (None, Some(_)) => Ok(None),
        (None, None) => match (environment.get("FORMS_DATA"), environment.get("FORMS_URL")) {
            (Some(_), Some(_)) => Err(CliError::usage_with_help(
                "FORMS_DATA and FORMS_URL are both set",
                "unset one of them, or use --data or --url",
            )),
            (Some(data), None) => Ok(Some(Sourced { value: data.into(), source: Source::Env })),
            (None, _) => Ok(None),
        },
    }
}

fn address(
    global: &Global,
    environment: &Environment,
    running: &[RunningServer],
) -> Result<Sourced<Url>, CliError> {
    if let Some(url) = &global.url {
        return Ok(Sourced { value: parse(url, "--url")?, source: Source::Flag });
    }
    if let Some(url) = environment.get("FORMS_URL") {
        return Ok(Sourced { value: parse(url, "FORMS_URL")?, source: Source::Env });
    }
    match running {
        [] => Ok(Sourced { value: parse(DEFAULT_URL, "the default")?, source: Source::Default }),
        [server] => Ok(Sourced { value: parse(&server.url, "the runtime file")?, source: Source::Runtime }),
        several => {
            let flag =
                |server: &RunningServer| format!("\n--url {}  ({})", server.url, server.data.display());
            let flags: String = several.iter().map(flag).collect();
            let message = format!("{} servers of yours are running", several.len());
            Err(CliError::usage_with_help(message, format!("add one of{flags}")))
        }
    }
}

fn parse(text: &str, origin: &str) -> Result<Url, CliError> {
    match Url::parse(text) {
        Ok(url) if is_address(&url) => Ok(url),
        _ => {
            // The part before an `@` may be a password.
            let shown = if text.contains('@') { String::new() } else { format!(" `{text}`") };
            let message = format!("{origin}{shown} is not a valid server address");
            let help = suggest_address(text).map_or_else(
                || "use only scheme, host and port: https://forms.example.com".to_owned(),
                |address| format!("did you mean {address}?"),
            );
            Err(CliError::usage_with_help(message, help))
        }
    }
}

/// Whether `url` has only scheme, host, port and path.
fn is_address(url: &Url) -> bool {
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    matches!(url.scheme(), "http" | "https") && is_bare && url.fragment().is_none()
}

/// Suggests the address probably meant: with a scheme, without query and fragment.
fn suggest_address(text: &str) -> Option<String> {
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
    // Never repeat a password.
    if !address.username().is_empty() || address.password().is_some() {
        return None;
    }
    address.set_query(None);
    address.set_fragment(None);
    Some(address.as_str().trim_end_matches('/').to_owned())
}

/// Whether `url` is a loopback address.
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

fn explicit_key(
    global: &Global,
    environment: &Environment,
    output: &Output,
) -> Result<Option<Key>, CliError> {
    if let Some(path) = &global.key_file {
        let origin = format!("--key-file {}", path.display());
        return read_key(path, Source::Flag, origin, output).map(Some);
    }
    if let Some(text) = environment.get("FORMS_API_KEY") {
        return parse_key(text, Source::Env, "FORMS_API_KEY".to_owned()).map(Some);
    }
    let Some(path) = environment.get("FORMS_API_KEY_FILE") else { return Ok(None) };
    read_key(Path::new(path), Source::Env, format!("FORMS_API_KEY_FILE, {path}"), output).map(Some)
}

fn read_key(path: &Path, source: Source, origin: String, output: &Output) -> Result<Key, CliError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        if std::io::stdin().is_terminal() {
            let message = format!("the API key ({origin}) cannot be typed: it would be shown");
            return Err(CliError::usage_with_help(message, "name a file that contains it, or pipe it in"));
        }
        std::io::stdin().lock().take(4096).read_to_string(&mut text)
    } else {
        if fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o077 != 0) {
            output.warn(&format!("{} is readable by others; chmod 600 {0}", path.display()));
        }
        fs::File::open(path).and_then(|file| file.take(4096).read_to_string(&mut text))
    };
    read.map_err(|error| CliError::usage(format!("cannot read the API key ({origin}): {}", reason(&error))))?;
    parse_key(&text, source, origin)
}

fn parse_key(text: &str, source: Source, origin: String) -> Result<Key, CliError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!("{origin} is not a valid API key")));
    }
    Ok(Key { text: Secret::new(text.to_owned()), source, origin })
}

impl Key {
    /// Returns the key with its secret part hidden.
    pub fn redacted(&self) -> String {
        client::redacted(self.text.reveal())
    }
}
