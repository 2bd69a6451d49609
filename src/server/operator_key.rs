//! The file with the operator key in the data directory.

use std::io;
use std::path::{Path, PathBuf};

use super::{ServerError, private_file};
use crate::app::{add_operator_key, bootstrap};
use crate::clock::{Clock, Timestamp};
use crate::secret::{KeyText, SystemRandomness};
use crate::store::Keys;
use crate::store::sled::SledStore;

/// Writes `key` to the file of the operator key in the data directory `data`, which only the owner can read. Atomic, and
/// durable once it returns.
pub fn write_operator_key(data: &Path, key: &KeyText) -> io::Result<()> {
    write_key(&file_path(data), key)
}

/// Returns the operator key in its file in the data directory `data`; `None` if that is missing or damaged. The key may have
/// been revoked.
pub fn read_operator_key(data: &Path) -> Option<KeyText> {
    match read_key(&file_path(data)) {
        Ok(KeyFile::Key(key)) => Some(key),
        Ok(KeyFile::Missing | KeyFile::Damaged) | Err(_) => None,
    }
}

fn file_path(data: &Path) -> PathBuf {
    data.join("operator-key")
}

/// Returns the operator key in `data`, if it is valid in the store. Creates one if the store is empty, and replaces a damaged
/// one.
pub(super) async fn find_or_create(
    store: &SledStore,
    data: &Path,
    clock: &dyn Clock,
) -> Result<Option<KeyText>, ServerError> {
    let path = file_path(data);
    let failed = |source| ServerError::KeyFile { path: path.clone(), source };
    let (now, found) = (clock.now(), read_key(&path).map_err(failed)?);
    if store.list_workspaces().await?.is_empty() {
        let (random, key) = (SystemRandomness::new(), ensure_key(&path, found).map_err(failed)?);
        bootstrap(store, &key, &random, now).await?;
        return Ok(Some(key));
    }
    let file = path.display();
    match found {
        KeyFile::Key(key) => {
            let known = store.find_key(key.id()).await?;
            let is_valid = known.is_some_and(|known| key.matches(&known.hash) && known.is_valid(now));
            if !is_valid {
                tracing::warn!(
                    %file,
                    "the operator key here is not valid, it may have been revoked or rotated: commands of this user need \
                     another key"
                );
            }
            Ok(Some(key).filter(|_| is_valid))
        }
        KeyFile::Missing => {
            tracing::warn!(%file, "the operator key is missing here: commands of this user need another key");
            Ok(None)
        }
        KeyFile::Damaged => match replace_key(store, &path, now).await {
            Ok(Some(key)) => {
                tracing::warn!(%file, "the operator key was damaged: there is a new one, and the old one stays valid");
                Ok(Some(key))
            }
            Ok(None) => {
                tracing::warn!(%file, "the operator key is damaged and cannot be replaced: there are too many keys");
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(%file, %error, "the operator key is damaged and cannot be replaced");
                Ok(None)
            }
        },
    }
}

/// Returns the key of an empty store: the one in the file, or a new one, which is written before the store has it. After a
/// crash in between, nobody could use the store otherwise.
fn ensure_key(path: &Path, found: KeyFile) -> io::Result<KeyText> {
    match found {
        KeyFile::Key(key) => Ok(key),
        KeyFile::Missing | KeyFile::Damaged => {
            let key = KeyText::draw(&SystemRandomness::new());
            write_key(path, &key)?;
            Ok(key)
        }
    }
}

/// Replaces a damaged key by a new one; returns `None` if the store takes no more keys. The store gets it before the file: a
/// crash in between leaves the damaged file for the next start.
async fn replace_key(store: &SledStore, path: &Path, now: Timestamp) -> Result<Option<KeyText>, ServerError> {
    let key = KeyText::draw(&SystemRandomness::new());
    if !add_operator_key(store, &key, now).await? {
        return Ok(None);
    }
    write_key(path, &key).map_err(|source| ServerError::KeyFile { path: path.to_owned(), source })?;
    Ok(Some(key))
}

/// State of the file with the operator key.
enum KeyFile {
    Key(KeyText),
    Missing,
    /// Not a key: those have a checksum.
    Damaged,
}

fn read_key(path: &Path) -> io::Result<KeyFile> {
    let Some(bytes) = private_file::read(path)? else { return Ok(KeyFile::Missing) };
    let key = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
    Ok(key.map_or(KeyFile::Damaged, KeyFile::Key))
}

fn write_key(path: &Path, key: &KeyText) -> io::Result<()> {
    private_file::write(path, key.reveal())
}
