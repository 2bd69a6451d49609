//! Resolution of the server and key: flag, then environment, then the current context, then a running server of this user,
//! then default.

use std::fs;
use std::io::IsTerminal;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cli::connection::credentials::Credentials;
use crate::cli::connection::global_flags::Global;
use crate::cli::connection::running_servers::RunningServer;
use crate::cli::connection::session::Session;
use crate::cli::environment::Environment;
use crate::cli::input::secret_file;
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::client::Url;
use crate::config::StoreLocation;
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
    pub source: Source,
    /// The flag, variable, context or file that it came from, as text.
    pub origin: String,
    /// The context that has it.
    pub context: Option<String>,
}

/// The server or data directory a command works on.
#[derive(Debug, Clone)]
pub enum Target {
    /// A server, the name of the context by which it was selected, and its key.
    Server {
        url: Sourced<Url>,
        context: Option<String>,
        key: Option<Key>,
    },
    Data(Sourced<PathBuf>),
}

/// Resolves the target.
///
/// # Errors
/// If the settings contradict each other, a context does not exist, or several servers are running.
pub fn resolve(session: &Session) -> Result<Target, CliError> {
    if let Some(data) = data(&session.global, &session.environment)? {
        return Ok(Target::Data(data));
    }
    let (url, context) = address(session, &session.global)?;
    let key = match key_of_flag(session)? {
        None => key_of_environment(session, &url.value)?,
        key => key,
    };
    let key = match key {
        None => stored_key(session, &url.value, context.as_deref())?,
        key => key,
    };
    Ok(Target::Server { url, context, key })
}

/// Returns the key that belongs to exactly this address: that of a context, the chosen one first, or of a running server.
fn stored_key(session: &Session, url: &Url, chosen: Option<&str>) -> Result<Option<Key>, CliError> {
    if let Some((name, context)) = session.credentials()?.find_by_url(url, chosen) {
        let key = parse_key(context.key.reveal(), Source::Context, context_origin(name))?;
        return Ok(Some(Key { context: Some(name.to_owned()), ..key }));
    }
    Ok(session.running_servers().into_iter().find(|server| server.is_at(url)).map(running_key))
}

fn running_key(server: RunningServer) -> Key {
    let origin = format!("the running server's {}", server.file.display());
    Key { text: server.key, source: Source::Runtime, origin, context: None }
}

/// Returns a running server as the target.
pub fn running(server: RunningServer) -> Result<Target, CliError> {
    let url = Sourced { value: parse(&server.url, "the runtime file")?, source: Source::Runtime };
    Ok(Target::Server { url, context: None, key: Some(running_key(server)) })
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

/// Returns the store that a command opens itself, if one is set; `flag` is the value of `--store`. Flags override `FORMS_STORE`.
pub fn store(
    global: &Global,
    environment: &Environment,
    flag: Option<StoreLocation>,
) -> Result<Option<StoreLocation>, CliError> {
    let has_flag = global.data.is_some() || global.url.is_some() || global.context.is_some();
    let variable = environment.get("FORMS_STORE").filter(|_| !has_flag);
    match (flag, variable) {
        (Some(_), _) if global.data.is_some() => {
            Err(CliError::usage("--data and --store cannot be used together"))
        }
        (None, Some(_)) if environment.get("FORMS_DATA").is_some() => Err(CliError::usage_with_help(
            "FORMS_DATA and FORMS_STORE are both set",
            "unset one of them, or use --data or --store",
        )),
        (Some(store), _) => Ok(Some(store)),
        (None, Some(store)) => {
            let store = store.parse::<StoreLocation>();
            store.map(Some).map_err(|why| CliError::usage(format!("FORMS_STORE is not valid: {why}")))
        }
        (None, None) => Ok(data(global, environment)?.map(|data| StoreLocation::Folder(data.value))),
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

/// Returns the name of the context that is selected, by flag, by environment or as the current one.
pub fn chosen_context<'a>(
    global: &'a Global,
    environment: &'a Environment,
    credentials: &'a Credentials,
) -> Option<&'a str> {
    let flag = global.context.as_deref();
    flag.or_else(|| environment.get("FORMS_CONTEXT")).or(credentials.current.as_deref())
}

/// Resolves the address of a server, and the context by which it was selected, with the flags `global`.
pub fn address(session: &Session, global: &Global) -> Result<(Sourced<Url>, Option<String>), CliError> {
    if global.url.is_some() && global.context.is_some() {
        return Err(CliError::usage("--url and --context cannot be used together"));
    }
    if let Some(url) = &global.url {
        return Ok((Sourced { value: parse(url, "--url")?, source: Source::Flag }, None));
    }
    if let Some(url) = session.environment.get("FORMS_URL").filter(|_| global.context.is_none()) {
        return Ok((Sourced { value: parse(url, "FORMS_URL")?, source: Source::Env }, None));
    }
    let credentials = session.credentials()?;
    if let Some(name) = chosen_context(global, &session.environment, credentials) {
        let value = parse(&credentials.get(name)?.url, &context_origin(name))?;
        return Ok((Sourced { value, source: Source::Context }, Some(name.to_owned())));
    }
    Ok((local_address(&session.running_servers())?, None))
}

/// Returns the address of the only running server, or the default.
fn local_address(running: &[RunningServer]) -> Result<Sourced<Url>, CliError> {
    match running {
        [] => Ok(Sourced { value: parse(DEFAULT_URL, "the default")?, source: Source::Default }),
        [server] => Ok(Sourced { value: parse(&server.url, "the runtime file")?, source: Source::Runtime }),
        several => {
            let flag = |server: &RunningServer| format!("\n--url {}  ({})", server.url, server.store());
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
            let help = match text.contains("://") {
                true => "use only scheme, host, port and path: https://forms.example.com",
                false => "add the scheme: https:// or http://",
            };
            Err(CliError::usage_with_help(format!("{origin}{shown} is not a valid server address"), help))
        }
    }
}

/// Whether `url` has only scheme, host, port and path.
fn is_address(url: &Url) -> bool {
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    matches!(url.scheme(), "http" | "https") && is_bare && url.fragment().is_none()
}

/// Returns an address as it is shown and stored: without a slash at the end.
pub fn display_url(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// Whether both are the same address; a slash at the end makes no difference.
pub fn is_same(one: &Url, other: &Url) -> bool {
    display_url(one) == display_url(other)
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

/// Returns the key of the environment, unless the address is another than that of the environment: a key goes only to the
/// address it was given with.
fn key_of_environment(session: &Session, url: &Url) -> Result<Option<Key>, CliError> {
    let Some((variable, value)) = environment_key(session).filter(|_| is_of_environment(session, url)) else {
        return Ok(None);
    };
    match variable {
        "FORMS_API_KEY" => parse_key(value, Source::Env, variable.to_owned()).map(Some),
        _ => read_key(Path::new(value), Source::Env, format!("{variable}, {value}"), session).map(Some),
    }
}

/// Returns the variable with a key, or with the name of a key's file, and its value.
pub fn environment_key(session: &Session) -> Option<(&'static str, &str)> {
    let variables = ["FORMS_API_KEY", "FORMS_API_KEY_FILE"];
    variables.into_iter().find_map(|variable| Some((variable, session.environment.get(variable)?)))
}

fn is_of_environment(session: &Session, url: &Url) -> bool {
    let has_flag = session.global.url.is_some() || session.global.context.is_some();
    !has_flag || environment_url(session).is_some_and(|own| is_same(&own, url))
}

/// Returns the address without `--url` and `--context`.
pub fn environment_url(session: &Session) -> Option<Url> {
    Some(address(session, &Global::default()).ok()?.0.value)
}

/// Returns the key in the file that `--key-file` names.
pub fn key_of_flag(session: &Session) -> Result<Option<Key>, CliError> {
    let Some(path) = &session.global.key_file else { return Ok(None) };
    read_key(path, Source::Flag, format!("--key-file {}", path.display()), session).map(Some)
}

fn read_key(path: &Path, source: Source, origin: String, session: &Session) -> Result<Key, CliError> {
    let is_stdin = path == Path::new("-");
    if is_stdin && std::io::stdin().is_terminal() {
        let message = format!("the API key ({origin}) cannot be typed: it would be shown");
        return Err(CliError::usage_with_help(message, "name a file that contains it, or pipe it in"));
    }
    if !is_stdin {
        warn_if_public(path, &session.output);
    }
    parse_key(&secret_file::read_text(path)?, source, origin)
}

/// Warns if other users can read the file, which has a key.
pub fn warn_if_public(path: &Path, output: &Output) {
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o077 != 0) {
        output.warn(&format!("{} is readable by others; chmod 600 {0}", path.display()));
    }
}

/// Parses the text of a key; errors name its origin.
pub fn parse_key(text: &str, source: Source, origin: String) -> Result<Key, CliError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!("{origin} is not a valid API key")));
    }
    Ok(Key { text: Secret::new(text.to_owned()), source, origin, context: None })
}
