//! Keys that are stored on this machine: they have to follow when a key is rotated.

use std::path::Path;

use crate::cli::commands::{CliError, Session};
use crate::cli::connection::credentials::{Context, Credentials};
use crate::cli::connection::running_servers::RunningServer;
use crate::cli::connection::target::{Target, context_origin, is_same};
use crate::client::Url;
use crate::secret::{KeyId, KeyText, Secret};
use crate::server::write_operator_key;

/// Returns the id of the key that this command uses.
pub(super) fn id_in_use(session: &Session) -> Option<KeyId> {
    id_of(session.key()?.reveal())
}

fn id_of(text: &str) -> Option<KeyId> {
    text.parse::<KeyText>().ok().map(|key| key.id())
}

/// Replaces the key `id` of the target by `text` wherever it is stored on this machine: in contexts, and in the files of the
/// operator key. Returns whether it was stored anywhere.
pub(super) fn replace(session: &Session, id: KeyId, text: &str) -> Result<bool, CliError> {
    match session.target()? {
        Target::Data(data) if id_in_use(session) == Some(id) => {
            write_file(session, &data.value, text)?;
            Ok(true)
        }
        Target::Data(_) => Ok(false),
        Target::Server { url, .. } => {
            let is_in_context = replace_in_contexts(session, &url.value, id, text)?;
            Ok(replace_of_server(session, &url.value, id, text)? || is_in_context)
        }
    }
}

fn replace_in_contexts(session: &Session, url: &Url, id: KeyId, text: &str) -> Result<bool, CliError> {
    let is_it = |context: &&Context| {
        let is_here = Url::parse(&context.url).is_ok_and(|own| is_same(&own, url));
        is_here && id_of(context.key.reveal()) == Some(id)
    };
    // A broken file has no key that commands use.
    let Ok(stored) = session.credentials() else { return Ok(false) };
    let Some(old) = stored.contexts.values().find(is_it).map(|context| context.key.clone()) else {
        return Ok(false);
    };
    // A server may have several addresses; the same key, secret included, is a key of the same server.
    let has_it = |context: &Context| context.key == old;
    let replace = |credentials: &mut Credentials| {
        let mut replaced = Vec::new();
        for (name, context) in credentials.contexts.iter_mut().filter(|(_, context)| has_it(context)) {
            context.key = Secret::new(text.to_owned());
            replaced.push(context_origin(name));
        }
        Ok(replaced)
    };
    let (credentials, replaced) = Credentials::update(&session.environment, &session.output, replace)?;
    let path = credentials.path()?.display();
    session.output.status(&format!("stored in {path}, for {}", replaced.join(" and ")));
    Ok(true)
}

/// Replaces the operator key of a server of this user: commands find it in the data directory.
fn replace_of_server(session: &Session, url: &Url, id: KeyId, text: &str) -> Result<bool, CliError> {
    let servers = session.running_servers();
    let has_it = |server: &&RunningServer| server.is_at(url) && id_of(server.key.reveal()) == Some(id);
    let Some(server) = servers.iter().find(has_it) else { return Ok(false) };
    let Some(data) = &server.data else { return Ok(false) };
    write_file(session, data, text)?;
    Ok(true)
}

/// Writes an operator key into the data directory, and says so.
pub(super) fn write_file(session: &Session, data: &Path, text: &str) -> Result<(), CliError> {
    write_key(data, text)?;
    session.output.status(&format!("stored in {}, mode 600", data.join("operator-key").display()));
    Ok(())
}

/// Writes an operator key into the data directory.
pub(super) fn write_key(data: &Path, text: &str) -> Result<(), CliError> {
    let Ok(key) = text.parse::<KeyText>() else {
        return Err(CliError::usage("the server returned a key that is not valid"));
    };
    let failed = |error| CliError::io(format!("cannot write the key into {}", data.display()), error);
    write_operator_key(data, &key).map_err(failed)
}
