//! Recomputation of counters. Needed only when the digest of a rebuilt index differs from the journal's, which means
//! that some operation was decided on an incomplete index.

use super::counters::Counters;
use super::engine::tx::Tx;
use super::row_source::RowSource;
use super::{BATCH_ROWS, block, delivery_layout, delivery_upkeep, layout};
use crate::id::FormId;
use crate::store::Result;

/// Counts the submissions of every form and the deliveries of every queue, and corrects the counters that are wrong.
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
