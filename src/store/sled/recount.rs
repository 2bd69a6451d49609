//! Recomputation of counters. Needed only when the digest of a rebuilt index differs from the journal's, which means
//! that some operation was decided on an incomplete index.

use std::ops::Bound;

use super::counters::Counters;
use super::engine::tx::{Direction, Tx};
use super::queue_state::StoredQueue;
use super::{BATCH_ROWS, block, delivery_layout, layout, outbox};
use crate::id::{FormId, IntegrationId};
use crate::store::Result;

/// Counts the submissions of every form, and corrects the counters that are wrong. Events that were numbered anew are looked
/// at again: a queue passes over those that it has delivered.
pub(super) fn recount(tx: &mut Tx<'_>) -> Result<()> {
    for (key, _) in tx.scan(layout::all(layout::FORM_WORKSPACES), Direction::Ascending, usize::MAX)? {
        let form = layout::listed_form(&key)?;
        let kept = Counters::of(tx, form)?;
        let queues = read_queues(tx, form)?;
        let last_row = outbox::last_row(tx, form)?.map_or(0, |row| row.last());
        let last_event = queues.iter().map(|(_, queue)| queue.position).fold(last_row, u64::max);
        let counted =
            Counters { responses: count(tx, form)?, sequence: kept.sequence.max(last_event), ..kept };
        if counted != kept {
            counted.put(tx, form);
        }
        if counted.sequence != kept.sequence {
            for (integration, queue) in queues {
                StoredQueue { position: 0, ahead: 0, ..queue }.put(tx, form, integration)?;
            }
        }
    }
    Ok(())
}

fn read_queues(tx: &Tx<'_>, form: FormId) -> Result<Vec<(IntegrationId, StoredQueue)>> {
    let rows = tx.scan(delivery_layout::queues_of(form), Direction::Ascending, usize::MAX)?;
    let queue = |(key, body): (Vec<u8>, Vec<u8>)| {
        Ok((delivery_layout::listed_queue(&key)?.1, StoredQueue::decode(&body)?))
    };
    rows.into_iter().map(queue).collect()
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
