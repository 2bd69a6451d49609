//! Work on an index that was just opened, before it is used.

use super::counters::Counters;
use super::engine::tx::{Direction, Tx};
use super::row_source::RowSource;
use super::{BATCH_ROWS, block, delivery_layout, delivery_upkeep, layout};
use crate::id::FormId;
use crate::store::{Result, StoreError};

/// Reads workspaces, keys, the signing key and unfinished purges, which every start needs: otherwise a store whose rows are
/// hidden by damage would look like an empty one to the code that creates the first workspace and key. A store may have no
/// key: its last one may have been revoked.
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

/// Counts the submissions of every form and the deliveries of every queue, and corrects the counters that are wrong: needed
/// only when the digest of a rebuilt index differs from the journal's, which means that some operation was decided on an
/// incomplete index.
pub(super) fn recount(tx: &mut Tx<'_>) -> Result<()> {
    for (key, _) in tx.scan_all(layout::all(layout::FORM_WORKSPACES))? {
        let form = layout::last(&key, FormId::from_bytes)?;
        let kept = Counters::of(tx, form)?;
        let count = |block: &[u8]| Ok(block::read(block)?.len() as u64);
        let counted = Counters { responses: tx.sum(layout::blocks(form), BATCH_ROWS, count)?, ..kept };
        if counted != kept {
            counted.put(tx, form);
        }
    }
    for (key, _) in tx.scan_all(layout::all(delivery_layout::QUEUES))? {
        delivery_upkeep::recount(tx, delivery_layout::indexed_queue(&key)?)?;
    }
    Ok(())
}
