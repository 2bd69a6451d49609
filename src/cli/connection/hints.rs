//! Notes and help for errors, which depend on the target and its source.

use crate::api::Code;
use crate::cli::connection::session::Session;
use crate::cli::connection::target::{self, Key, Source, Sourced, Target};
use crate::cli::output::exit::CliError;
use crate::client::{ClientError, Url, redacted};

/// Adds to an error where the server's address and the key came from, and the one thing to do.
pub fn annotate(session: &Session, error: CliError) -> CliError {
    let CliError::Client { mut error, mut notes, help } = error else { return error };
    let advice = match (&mut error, session.target().ok()) {
        (ClientError::MaybeApplied { path, .. }, _) => Some(inspection(&session.command_prefix(), path)),
        (ClientError::Untrusted { why, .. }, _) => trust(session, why),
        (
            failed @ (ClientError::Unreachable { .. } | ClientError::Unexpected { .. }),
            Some(Target::Server { url, context, .. }),
        ) => {
            notes.push(format!("address from: {}", address_origin(url.source, context.as_deref())));
            if matches!(failed, ClientError::Unreachable { was_sent: false, .. }) { start(url) } else { None }
        }
        (ClientError::Problem(problem), Some(Target::Server { url, key, .. })) => {
            let (url, refused) = (&url.value, problem.code == Code::Unauthorized);
            match key {
                Some(key) if refused => {
                    let (shown, end) = (target::display_url(url), redacted(key.text.reveal()));
                    problem.detail = Some(format!("{shown} refused the API key {end}"));
                    refused_key(session, url, key, &mut notes)
                }
                Some(key) if problem.code == Code::InsufficientScope => {
                    refused_key(session, url, key, &mut notes);
                    Some("use a key that has the scope; forms whoami shows the scopes of this one".to_owned())
                }
                None if refused => {
                    problem.detail = Some(format!("{} asks for an API key", target::display_url(url)));
                    notes.extend(missing_key_note(session, url));
                    Some(login(url))
                }
                _ => None,
            }
        }
        _ => None,
    };
    CliError::Client { error, notes, help: help.or(advice) }
}

/// Returns the command that shows what a request to `path` may have changed.
fn inspection(prefix: &str, path: &str) -> String {
    let path = path.trim_start_matches("/api/v1/").split(['?', ':']).next().unwrap_or_default();
    match path.split('/').collect::<Vec<_>>()[..] {
        ["keys"] | ["keys", _, "rotate"] => {
            format!("{prefix} keys list shows whether the key was created; its text is lost, so revoke it")
        }
        ["workspaces"] => {
            format!("{prefix} workspaces list shows whether it was created; its key is lost, so delete it")
        }
        ["deliveries", id, ..] => format!("{prefix} deliveries show {id}"),
        ["forms", form, "submissions"] => format!("{prefix} responses {form}"),
        ["forms", form, "submissions", id, ..] => format!("{prefix} responses show {form} {id}"),
        ["forms", form, "integrations"] => format!("{prefix} integrations list {form}"),
        ["forms", form, "integrations", name, ..] => format!("{prefix} integrations show {form} {name}"),
        ["forms", form, ..] => format!("{prefix} show {form}"),
        ["forms"] => format!("{prefix} list"),
        [list, ..] => format!("{prefix} {list} list"),
        [] => prefix.to_owned(),
    }
}

fn trust(session: &Session, why: &str) -> Option<String> {
    let is_unknown = why.contains("unknown authority") && session.environment.get("SSL_CERT_FILE").is_none();
    let help = "set SSL_CERT_FILE to the certificate of its authority, or to its own if it is self-signed";
    is_unknown.then(|| help.to_owned())
}

/// Returns how to start a server at the address, if `serve` can listen there without a certificate.
fn start(Sourced { value: url, source }: &Sourced<Url>) -> Option<String> {
    let start = "start one: forms serve --data ./store";
    if matches!(source, Source::Default | Source::Runtime) {
        return Some(start.to_owned());
    }
    let can_listen = target::is_loopback(url) && url.scheme() == "http" && url.path() == "/";
    let host = url.host_str()?.replace("localhost", "127.0.0.1");
    can_listen.then(|| format!("{start} --listen {host}:{}", url.port_or_known_default().unwrap_or_default()))
}

/// Adds where the key came from, and returns how to use another.
fn refused_key(session: &Session, url: &Url, key: &Key, notes: &mut Vec<String>) -> Option<String> {
    let overridden = session.credentials().ok().filter(|_| key.source == Source::Env);
    let overridden = overridden.and_then(|credentials| credentials.find_by_url(url, None));
    let end = overridden.map(|(name, _)| format!(", which overrides {}", target::context_origin(name)));
    notes.push(format!("key from: {}{}", key.origin, end.unwrap_or_default()));
    match (key.source, overridden) {
        (Source::Env, Some(_)) => {
            let (variable, _) = target::environment_key(session)?;
            Some(format!("unset {variable}, or log in again: forms login {}", target::display_url(url)))
        }
        (Source::Context, _) => Some(login(url)),
        _ => None,
    }
}

fn login(url: &Url) -> String {
    format!("log in: forms login {}", target::display_url(url))
}

/// Returns why no key was sent, if one is known. A server's key is only sent to the exact address it announced: under
/// another name, another server may respond.
fn missing_key_note(session: &Session, url: &Url) -> Option<String> {
    if let (Some((variable, _)), Some(own)) =
        (target::environment_key(session), target::environment_url(session))
    {
        return Some(format!("{variable} was not sent: it is for {}", target::display_url(&own)));
    }
    let server = session.running_servers().into_iter().find(|server| server.may_be_at(url))?;
    Some(format!("your own server is at --url {}", server.url))
}

/// Returns where the address of a server came from.
pub fn address_origin(source: Source, context: Option<&str>) -> String {
    match (source, context) {
        (_, Some(name)) => target::context_origin(name),
        (Source::Flag, _) => "the command line".to_owned(),
        (Source::Env, _) => "FORMS_URL".to_owned(),
        (Source::Runtime, _) => "a running server's file".to_owned(),
        (Source::Context | Source::Default, _) => "default (no --url, FORMS_URL or context)".to_owned(),
    }
}
