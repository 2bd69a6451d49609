//! The file with the operator key in the data directory.

use std::io;
use std::path::{Path, PathBuf};

use super::{ServerError, private_file};
use crate::app::bootstrap;
use crate::clock::Clock;
use crate::secret::{KeyText, SystemRandomness};
use crate::store::Keys;
use crate::store::sled::SledStore;

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

/// Returns the operator key in `data`, if it is valid in the store. Creates one if the store is empty.
pub(super) async fn find_or_create(
    store: &SledStore,
    data: &Path,
    clock: &dyn Clock,
) -> Result<Option<KeyText>, ServerError> {
    let path = file_path(data);
    let failed = |source| ServerError::KeyFile { path: path.clone(), source };
    let (now, found) = (clock.now(), read_key(&path).map_err(failed)?);
    if store.list_workspaces().await?.is_empty() {
        let key = match found {
            Some(key) => key,
            // Written before the store has it: after a crash in between, nobody could use the store otherwise.
            None => {
                let key = KeyText::draw(&SystemRandomness);
                write_operator_key(data, &key).map_err(failed)?;
                key
            }
        };
        bootstrap(store, &key, &SystemRandomness, now).await?;
        return Ok(Some(key));
    }
    let known = match &found {
        Some(key) => store.find_key(key.id()).await?.filter(|known| key.matches(&known.hash)),
        None => None,
    };
    if known.is_some_and(|known| known.is_valid(now)) {
        return Ok(found);
    }
    let problem =
        if found.is_some() { "not valid, it may have been revoked or rotated" } else { "missing or damaged" };
    tracing::warn!(
        file = %path.display(),
        "the operator key here is {problem}: commands of this user need another key, which forms keys create --data makes"
    );
    Ok(None)
}

/// Reads the key; `None` if it is missing or damaged: a key has a checksum.
fn read_key(path: &Path) -> io::Result<Option<KeyText>> {
    let bytes = private_file::read(path)?.unwrap_or_default();
    Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()))
}
