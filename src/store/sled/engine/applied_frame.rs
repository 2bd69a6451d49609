//! Record of the last frame applied to an index, and the digest after it.

use super::cell::{self, Cell};
use super::digest::IndexDigest;
use super::frame::{u64_at, u128_at};
use super::index::{Index, IndexError};

/// Key of the record, the only row that the digest does not cover.
pub(crate) const KEY: &[u8] = b"Ma";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AppliedFrame {
    pub(crate) sequence: u64,
    pub(crate) digest: IndexDigest,
}

impl AppliedFrame {
    /// Reads the record; an index without one has applied nothing.
    pub(crate) fn read(index: &dyn Index) -> Result<AppliedFrame, IndexError> {
        let Some(cell) = index.get(KEY)? else { return Ok(AppliedFrame::default()) };
        match cell::decode(KEY, cell) {
            Some(Cell::Whole(body)) if body.len() == 32 => Ok(AppliedFrame {
                sequence: u64_at(&body, 0),
                digest: IndexDigest { count: u64_at(&body, 8), sum: u128_at(&body, 16) },
            }),
            Some(_) | None => Err(IndexError::Failed("the record of what was applied is damaged".to_owned())),
        }
    }

    pub(crate) fn cell(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(40);
        body.extend_from_slice(&self.sequence.to_be_bytes());
        body.extend_from_slice(&self.digest.count.to_be_bytes());
        body.extend_from_slice(&self.digest.sum.to_be_bytes());
        cell::whole(KEY, body)
    }
}
