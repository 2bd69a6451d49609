//! Recomputation of counters. Needed only when the digest of a rebuilt index differs from the journal's, which means
//! that some operation was decided on an incomplete index.

use std::ops::Bound;

use super::counters::Counters;
use super::engine::tx::{Direction, Tx};
use super::{BATCH_ROWS, block, delivery_layout, delivery_upkeep, layout};
use crate::id::FormId;
use crate::store::Result;

/// Counts the submissions of every form and the deliveries of every queue, and corrects the counters that are wrong.
pub(super) fn recount(tx: &mut Tx<'_>) -> Result<()> {
    for (key, _) in tx.scan(layout::all(layout::FORM_WORKSPACES), Direction::Ascending, usize::MAX)? {
        let form = layout::listed_form(&key)?;
        let kept = Counters::of(tx, form)?;
        let counted = Counters { responses: count(tx, form)?, ..kept };
        if counted != kept {
            counted.put(tx, form);
        }
    }
    for (key, _) in tx.scan(delivery_layout::queues(), Direction::Ascending, usize::MAX)? {
        delivery_upkeep::recount(tx, delivery_layout::indexed_queue(&key)?)?;
    }
    Ok(())
}

fn count(tx: &Tx<'_>, form: FormId) -> Result<u64> {
    let (mut start, end) = layout::blocks(form);
    let mut count = 0;
    loop {
        let blocks = tx.scan((start, end.clone()), Direction::Ascending, BATCH_ROWS)?;
        for (_, block) in &blocks {
            count += block::read(block)?.len() as u64;
        }
        let Some((last, _)) = blocks.into_iter().next_back() else { return Ok(count) };
        start = Bound::Excluded(last);
    }
}
