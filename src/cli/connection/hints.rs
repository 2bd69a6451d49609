//! Help texts for errors, which depend on the target and its source.

use crate::cli::connection::target::{self, Chosen, Key, KeyOrigin, Source, Sourced};
use crate::cli::output::diagnostics::Diagnostic;
use crate::client::Url;

/// Help if a request was sent and no response came.
pub(super) const UNANSWERED: &str = "try again later, or check the address; -v shows each request";

/// Help for a certificate that is not trusted.
pub(super) const UNTRUSTED: &str =
    "use the host that the certificate is for; SSL_CERT_FILE=ca.pem trusts another authority";

/// Help for a key that lacks a scope.
pub(super) const LACKING_SCOPE: &str =
    "use a key that has the scope; forms whoami shows the scopes of this one";

/// Returns the command that shows what a request to `path` may have changed.
pub(super) fn inspection_command(prefix: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let mut names = path.trim_start_matches("/api/v1/forms").split('/').skip(1);
    match (names.next(), names.next(), names.next()) {
        (None, ..) => format!("{prefix} list"),
        (Some(form), Some("submissions"), None) => format!("{prefix} responses {form}"),
        (Some(form), Some("submissions"), Some(id)) => format!("{prefix} responses show {form} {id}"),
        (Some(form), ..) => format!("{prefix} show {form}"),
    }
}

/// Help if nothing responds at `url`; suggests starting a server only if that is this machine.
pub(super) fn unreachable(Sourced { value: url, source, .. }: &Sourced<Url>) -> String {
    if !target::is_loopback(url) {
        return "check the address, and whether that host can be reached from here; -v shows each request"
            .to_owned();
    }
    let host = url.host_str().unwrap_or_default();
    let listen = match (source, url.port_or_known_default()) {
        (Source::Flag | Source::Env | Source::Context, Some(port)) => format!(" --listen {host}:{port}"),
        _ => String::new(),
    };
    let other = match source {
        Source::Default => "store the address of another: forms login URL",
        _ => "work without one: forms --data ./store …",
    };
    format!("start one: forms serve --data ./store{listen}, or {other}")
}

/// Help if another process holds the data directory.
pub(super) fn in_use(named_by: Source) -> &'static str {
    match named_by {
        Source::Env => "unset FORMS_DATA, or stop it",
        Source::Flag | Source::Context | Source::Runtime | Source::Default => "drop --data, or stop it",
    }
}

/// Help for a key that the server at `url` refused; `overrides` is whether there is a context for this server that the
/// key's variable overrides.
pub(super) fn refused_key(key: &Key, url: &Url, overrides: bool) -> String {
    let login = format!("forms login {}", target::display_url(url));
    match &key.origin {
        KeyOrigin::Env { variable, .. } if overrides => format!("unset {variable}, or log in again: {login}"),
        KeyOrigin::Env { variable, .. } => format!("put a key of this server into {variable}, or unset it"),
        KeyOrigin::Flag(_) => "name a file with a key of this server".to_owned(),
        KeyOrigin::Context(_) | KeyOrigin::Typed => format!("log in again: {login}"),
        KeyOrigin::Runtime(_) => "forms explain unauthorized".to_owned(),
    }
}

/// Help if the server at `url` asks for a key and none was sent.
pub(super) fn missing_key(url: &Url) -> String {
    let login = format!("forms login {}", target::display_url(url));
    format!("log in: {login}, or set FORMS_API_KEY, or add --key-file PATH")
}

/// Returns where the address came from, as text.
pub(super) fn url_origin(source: Source, context: Option<&Chosen>) -> String {
    match (source, context) {
        (_, Some(Chosen { name, by })) => format!("{}, {by}", target::context_origin(name)),
        (Source::Flag, _) => "the command line".to_owned(),
        (Source::Env, _) => "FORMS_URL".to_owned(),
        (Source::Runtime, _) => "a running server's file".to_owned(),
        (Source::Context | Source::Default, _) => {
            "default (no --url, FORMS_URL or context; no running server of this user was found)".to_owned()
        }
    }
}

/// Names the variable that allows an address to a command without a server, whose help names a flag of `serve`.
pub(super) fn name_allow_net(diagnostic: &mut Diagnostic) {
    if diagnostic.help.as_ref().is_some_and(|help| help.contains("--allow-net")) {
        let help = "FORMS_ALLOW_NET allows networks without a server: FORMS_ALLOW_NET=127.0.0.0/8";
        diagnostic.help = Some(help.to_owned());
    }
}
