//! Blocks: submissions of one form that became durable together share a row. A row for each would cost the index more
//! than all other work of storing it.
//!
//! ```text
//! S form(8) submission(16)    1, and for each: submission(16), then its content, see `submission_codec`
//! ```
//! The items are in ascending order of their ids; the first id is the one in the key. Blocks do not overlap. A
//! submission never moves to another block: a reader that pages during writes must see it once. An edited or restored
//! one, which may no longer fit, keeps a placeholder here.

use super::layout::undecodable;
use super::submission_codec::{self, SubmissionView};
use crate::id::SubmissionId;
use crate::store::Result;

/// Maximum bytes of a block that is appended to, so that it stays one cell of the index.
const MAX_BYTES: usize = 4_000;

const FORMAT: u8 = 1;

pub(super) fn has_space(block: &[u8], encoded: &[u8]) -> bool {
    block.len() + 16 + encoded.len() <= MAX_BYTES
}

pub(super) fn single(id: SubmissionId, encoded: &[u8]) -> Vec<u8> {
    append(&[FORMAT], id, encoded)
}

pub(super) fn append(block: &[u8], id: SubmissionId, encoded: &[u8]) -> Vec<u8> {
    // The spare capacity is for the trailer the engine adds, which would otherwise copy the block.
    let mut longer = Vec::with_capacity(block.len() + 16 + encoded.len() + 8);
    longer.extend_from_slice(block);
    longer.extend_from_slice(&id.to_bytes());
    longer.extend_from_slice(encoded);
    longer
}

/// Returns `block` with the item `id` inserted or replaced, or removed if `encoded` is `None`; `None` if no item
/// remains.
pub(super) fn set(block: &[u8], id: SubmissionId, encoded: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
    let (mut new, mut encoded) = (vec![FORMAT], encoded);
    for item in read(block)? {
        if let Some(encoded) = encoded.take_if(|_| item.id >= id) {
            new = append(&new, id, encoded);
        }
        if item.id != id {
            new.extend_from_slice(item.bytes);
        }
    }
    if let Some(encoded) = encoded {
        new = append(&new, id, encoded);
    }
    Ok(Some(new).filter(|new| new.len() > 1))
}

/// One submission of a block; its texts are borrowed.
pub(super) struct BlockItem<'a> {
    pub(super) id: SubmissionId,
    pub(super) view: SubmissionView<'a>,
    /// The encoded item, id included.
    bytes: &'a [u8],
}

/// Decodes the items of a block, oldest first.
pub(super) fn read(block: &[u8]) -> Result<Vec<BlockItem<'_>>> {
    let mut rest = block.strip_prefix(&[FORMAT]).ok_or_else(|| undecodable("a submission"))?;
    let mut submissions = Vec::new();
    while !rest.is_empty() {
        let (item, after) = split(rest).ok_or_else(|| undecodable("a submission"))?;
        submissions.push(item);
        rest = after;
    }
    Ok(submissions)
}

pub(super) fn last_id(block: &[u8]) -> Result<SubmissionId> {
    read(block)?.last().map(|item| item.id).ok_or_else(|| undecodable("a submission"))
}

fn split(block: &[u8]) -> Option<(BlockItem<'_>, &[u8])> {
    let (id, rest) = block.split_first_chunk()?;
    let (view, after) = submission_codec::split(rest)?;
    let bytes = &block[..block.len() - after.len()];
    Some((BlockItem { id: SubmissionId::from_bytes(*id), view, bytes }, after))
}
