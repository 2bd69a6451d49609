//! First reads of an opened store: the rows that every start needs.
//!
//! If the index fails them, it is rebuilt from the journal at once. Otherwise a store whose rows are hidden by damage
//! would look like an empty one to the code that creates the first workspace and key.

use super::engine::tx::{Direction, Tx};
use super::layout;
use super::row_source::RowSource;
use crate::store::{Result, StoreError};

/// Reads workspaces, keys, the signing key and unfinished purges. A store may have no key: its last one may have been
/// revoked.
///
/// # Errors
/// If one of them cannot be read, or is missing in a store that is not empty.
pub(super) fn check(tx: &mut Tx<'_>) -> Result<()> {
    let all = |kind| tx.scan_all(layout::all(kind));
    for kind in [layout::FORM_PURGES, layout::HISTORY_PURGES, layout::DELETED_WORKSPACES, layout::API_KEYS] {
        all(kind)?;
    }
    let has_workspace = !all(layout::WORKSPACES)?.is_empty();
    let mut has_keys = true;
    for (entry, _) in all(layout::KEY_ENTRIES)? {
        has_keys &= tx.get(&layout::api_key(layout::listed_key(&entry)?))?.is_some();
    }
    let has_signing_key = tx.get(layout::SIGNING_KEY)?.is_some();
    let is_empty = tx.scan(.., Direction::Ascending, 1)?.is_empty();
    if is_empty || has_workspace && has_keys && has_signing_key {
        return Ok(());
    }
    Err(StoreError::Missing("a workspace or its keys".to_owned()))
}
