//! Resolution of the server and key: flag, then environment, then the current context, then a running server of this user,
//! then default.

use std::fmt::{self, Display};
use std::fs;
use std::io::{IsTerminal, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cli::connection::credentials::{Context, Credentials};
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
    Context,
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
    pub origin: KeyOrigin,
}

/// Where a key came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOrigin {
    /// The file that `--key-file` names.
    Flag(PathBuf),
    /// A variable, and the file if it names one.
    Env { variable: &'static str, file: Option<PathBuf> },
    /// The context of this name.
    Context(String),
    /// The file with which a running server announces itself.
    Runtime(PathBuf),
    /// The user, who was asked for it.
    Typed,
}

impl KeyOrigin {
    /// Returns the kind of the origin.
    pub fn source(&self) -> Source {
        match self {
            Self::Flag(_) | Self::Typed => Source::Flag,
            Self::Env { .. } => Source::Env,
            Self::Context(_) => Source::Context,
            Self::Runtime(_) => Source::Runtime,
        }
    }

    /// Returns the name of the context that the key belongs to.
    pub fn context(&self) -> Option<&str> {
        match self {
            Self::Context(name) => Some(name),
            Self::Flag(_) | Self::Env { .. } | Self::Runtime(_) | Self::Typed => None,
        }
    }
}

impl Display for KeyOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(file) => write!(formatter, "--key-file {}", file.display()),
            Self::Env { variable, file: None } => formatter.write_str(variable),
            Self::Env { variable, file: Some(file) } => write!(formatter, "{variable}, {}", file.display()),
            Self::Context(name) => formatter.write_str(&context_origin(name)),
            Self::Runtime(file) => write!(formatter, "the running server's {}", file.display()),
            Self::Typed => formatter.write_str("the text typed"),
        }
    }
}

/// The context whose server is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub name: String,
    /// `--context`, `FORMS_CONTEXT`, or that it is the current one.
    pub by: &'static str,
}

/// The server or data directory a command works on.
#[derive(Debug, Clone)]
pub enum Target {
    Server { url: Sourced<Url>, context: Option<Chosen>, key: Option<Key> },
    Data(Sourced<PathBuf>),
}

/// Flags, variables, contexts and running servers, from which the target is resolved.
pub struct TargetSources<'a> {
    pub global: &'a Global,
    pub environment: &'a Environment,
    /// Returns the contexts. Called only if they are needed: their file may be broken.
    pub credentials: &'a dyn Fn() -> Result<&'a Credentials, CliError>,
    /// The running servers of this user.
    pub running: &'a [RunningServer],
    pub output: &'a Output,
}

/// Resolves the target.
///
/// # Errors
/// If the settings contradict each other, a context does not exist, or several servers are running.
pub fn resolve(sources: &TargetSources<'_>) -> Result<Target, CliError> {
    if let Some(data) = data(sources.global, sources.environment)? {
        return Ok(Target::Data(data));
    }
    let (url, context) = address(sources)?;
    let key = match explicit_key(sources)? {
        Some(key) => Some(key),
        None => stored_key(sources, &url.value, context.as_ref())?,
    };
    Ok(Target::Server { url, context, key })
}

/// Returns the key that belongs to exactly this address: that of a context, the chosen one first, or of a running server.
fn stored_key(
    sources: &TargetSources<'_>,
    url: &Url,
    chosen: Option<&Chosen>,
) -> Result<Option<Key>, CliError> {
    if let Some((name, context)) =
        (sources.credentials)()?.find_by_url(url, chosen.map(|chosen| &*chosen.name))
    {
        return parse_key(context.key.reveal(), KeyOrigin::Context(name.to_owned())).map(Some);
    }
    Ok(sources
        .running
        .iter()
        .find(|server| server.is_at(url))
        .map(|server| Key { text: server.key.clone(), origin: KeyOrigin::Runtime(server.file.clone()) }))
}

/// Returns a context as the origin of a value.
pub fn context_origin(name: &str) -> String {
    format!("context `{name}`")
}

/// Returns the data directory, if one is set; `--url` and `--context` override `FORMS_DATA`.
pub fn data(global: &Global, environment: &Environment) -> Result<Option<Sourced<PathBuf>>, CliError> {
    let flags = [("--url", global.url.is_some()), ("--context", global.context.is_some())];
    let flag = flags.into_iter().find(|(_, is_given)| *is_given);
    match (&global.data, flag) {
        (Some(_), Some((flag, _))) => {
            Err(CliError::usage(format!("--data and {flag} cannot be used together")))
        }
        (Some(data), None) => Ok(Some(Sourced { value: data.clone(), source: Source::Flag })),
        (None, Some(_)) => Ok(None),
        (None, None) => data_of_environment(environment),
    }
}

fn data_of_environment(environment: &Environment) -> Result<Option<Sourced<PathBuf>>, CliError> {
    let Some(data) = environment.get("FORMS_DATA") else { return Ok(None) };
    let others = [("FORMS_URL", "--url"), ("FORMS_CONTEXT", "--context")];
    match others.into_iter().find(|(name, _)| environment.get(name).is_some()) {
        Some((name, flag)) => Err(CliError::usage_with_help(
            format!("FORMS_DATA and {name} are both set"),
            format!("unset one of them, or use --data or {flag}"),
        )),
        None => Ok(Some(Sourced { value: data.into(), source: Source::Env })),
    }
}

/// Returns the context that is selected, by `--context`, `FORMS_CONTEXT` or as the current one.
pub fn chosen_context(
    global: &Global,
    environment: &Environment,
    credentials: &Credentials,
) -> Option<Chosen> {
    let named = [
        (global.context.as_deref(), "--context"),
        (environment.get("FORMS_CONTEXT"), "FORMS_CONTEXT"),
        (credentials.current.as_deref(), "the current one"),
    ];
    let named = named.into_iter().find_map(|(name, by)| Some((name?, by)));
    named.map(|(name, by)| Chosen { name: name.to_owned(), by })
}

/// Resolves the address of a server, and the context it belongs to if it was chosen by its name.
pub fn address(sources: &TargetSources<'_>) -> Result<(Sourced<Url>, Option<Chosen>), CliError> {
    let TargetSources { global, environment, .. } = sources;
    if global.url.is_some() && global.context.is_some() {
        return Err(CliError::usage("--url and --context cannot be used together"));
    }
    if let Some(url) = &global.url {
        return Ok((Sourced { value: parse(url, "--url")?, source: Source::Flag }, None));
    }
    if let Some(url) = environment.get("FORMS_URL").filter(|_| global.context.is_none()) {
        return Ok((Sourced { value: parse(url, "FORMS_URL")?, source: Source::Env }, None));
    }
    let credentials = (sources.credentials)()?;
    if let Some(chosen) = chosen_context(global, environment, credentials) {
        let Context { url, .. } = credentials.get(&chosen.name)?;
        let value = parse(url, &context_origin(&chosen.name))?;
        return Ok((Sourced { value, source: Source::Context }, Some(chosen)));
    }
    Ok((local_address(sources.running)?, None))
}

/// Returns the address of the only running server, or the default.
fn local_address(running: &[RunningServer]) -> Result<Sourced<Url>, CliError> {
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

/// Parses a server address; errors name its origin.
pub fn parse(text: &str, origin: &str) -> Result<Url, CliError> {
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
    Some(display_url(&address))
}

/// Returns an address as it is shown and stored: without a slash at the end.
pub fn display_url(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// Whether `url` is a loopback address.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Refuses to send a key unencrypted beyond this machine.
pub fn require_encryption(url: &Url, insecure_http: bool) -> Result<(), CliError> {
    if url.scheme() == "https" || is_loopback(url) || insecure_http {
        return Ok(());
    }
    Err(CliError::usage_with_help(
        format!("{url} would send the API key unencrypted over the network"),
        "use https, or add --insecure-http if the network is your own",
    ))
}

fn explicit_key(
    TargetSources { global, environment, output, .. }: &TargetSources<'_>,
) -> Result<Option<Key>, CliError> {
    if let Some(key) = key_of_flag(global, output)? {
        return Ok(Some(key));
    }
    if let Some(text) = environment.get("FORMS_API_KEY") {
        return parse_key(text, KeyOrigin::Env { variable: "FORMS_API_KEY", file: None }).map(Some);
    }
    let variable = "FORMS_API_KEY_FILE";
    let Some(path) = environment.get(variable).map(Path::new) else { return Ok(None) };
    read_key(path, KeyOrigin::Env { variable, file: Some(path.to_owned()) }, output).map(Some)
}

/// Returns the key in the file that `--key-file` names.
pub fn key_of_flag(global: &Global, output: &Output) -> Result<Option<Key>, CliError> {
    let Some(path) = &global.key_file else { return Ok(None) };
    read_key(path, KeyOrigin::Flag(path.clone()), output).map(Some)
}

fn read_key(path: &Path, origin: KeyOrigin, output: &Output) -> Result<Key, CliError> {
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
    parse_key(&text, origin)
}

/// Parses the text of a key; errors name its origin.
pub fn parse_key(text: &str, origin: KeyOrigin) -> Result<Key, CliError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!("{origin} is not a valid API key")));
    }
    Ok(Key { text: Secret::new(text.to_owned()), origin })
}

impl Key {
    /// Returns the key with its secret part hidden.
    pub fn redacted(&self) -> String {
        client::redacted(self.text.reveal())
    }
}
