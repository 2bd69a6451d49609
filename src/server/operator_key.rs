//! The file with the operator key: in the data directory, or wherever the operator of a database wants it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{ServerError, private_file};
use crate::app::bootstrap;
use crate::clock::{Clock, Timestamp};
use crate::config::{Config, StoreLocation};
use crate::secret::{KeyText, SystemRandomness};
use crate::store::Store;

/// Writes `key` to the file of the operator key in the data directory `data`, which only the owner can read. Atomic, and
/// durable once it returns.
pub fn write_operator_key(data: &Path, key: &KeyText) -> io::Result<()> {
    private_file::write(&file_path(data), key.reveal())
}

/// Returns the operator key in its file in the data directory `data`; `None` if that is missing or damaged. The key may have
/// been revoked.
pub fn read_operator_key(data: &Path) -> Option<KeyText> {
    read_key(&file_path(data)).ok().flatten()
}

fn file_path(data: &Path) -> PathBuf {
    data.join("operator-key")
}

/// Returns the operator key of the settings' file, if it is valid in the store. Creates one if the store is empty.
pub(super) async fn find_or_create(
    store: &dyn Store,
    config: &Config,
    clock: &dyn Clock,
) -> Result<Option<KeyText>, ServerError> {
    let path = match &config.store {
        StoreLocation::Folder(data) => Some(file_path(data)),
        StoreLocation::Database(_) => config.delivery.operator_key_file.clone(),
    };
    let is_empty = store.list_workspaces().await?.is_empty();
    let Some(path) = path else { return if is_empty { Err(no_key_file()) } else { Ok(None) } };
    let failed = |source| ServerError::KeyFile { path: path.clone(), source };
    let (now, found) = (clock.now(), read_key(&path).map_err(failed)?);
    if is_empty {
        // Written before the store has it: after a crash in between, nobody could use the store otherwise.
        let is_new = found.is_none();
        let key = found.map_or_else(|| create(&path, config.store.is_database()), Ok).map_err(failed)?;
        let is_first = bootstrap(store, &key, &SystemRandomness, now).await?;
        if is_first || is_valid(store, &key, now).await? {
            return Ok(Some(key));
        }
        if is_new {
            fs::remove_file(&path).map_err(failed)?;
        }
        tracing::warn!(file = %path.display(), "another server has begun the database; its file has the operator key");
        return Ok(None);
    }
    let problem = match found {
        Some(key) if is_valid(store, &key, now).await? => return Ok(Some(key)),
        Some(_) => "not valid, it may have been revoked or rotated",
        None => "missing or damaged",
    };
    let remedy = match config.store {
        StoreLocation::Folder(_) => "which forms keys create --data makes",
        StoreLocation::Database(_) => "which forms keys create makes with a valid one",
    };
    tracing::warn!(
        file = %path.display(),
        "the operator key here is {problem}: commands of this user need another key, {remedy}"
    );
    Ok(None)
}

fn no_key_file() -> ServerError {
    let why = "the database is empty, and the first start makes the operator key: name its file with --operator-key-file FILE";
    ServerError::InvalidConfig(why.to_owned())
}

/// Makes a key in a file that is missing or damaged. Servers that do so at once, in one file, get the same key.
fn create(path: &Path, has_other_servers: bool) -> io::Result<KeyText> {
    let key = KeyText::draw(&SystemRandomness);
    if has_other_servers && private_file::read(path)?.is_none() {
        private_file::write_new(path, &format!("{}.new", key.id()), key.reveal())?;
    } else {
        private_file::write(path, key.reveal())?;
    }
    read_key(path)?.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

async fn is_valid(store: &dyn Store, key: &KeyText, now: Timestamp) -> Result<bool, ServerError> {
    let known = store.find_key(key.id()).await?.filter(|known| key.matches(&known.hash));
    Ok(known.is_some_and(|known| known.is_valid(now)))
}

/// Reads the key; `None` if it is missing or damaged: a key has a checksum.
fn read_key(path: &Path) -> io::Result<Option<KeyText>> {
    let bytes = private_file::read(path)?.unwrap_or_default();
    Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()))
}
