//! The number of erasures: what was erased must leave the journal, by a compaction, and then the index, by a rebuild.
//!
//! The number counts up with every erasure. A base records the number at its making, and an index that of the base it was built
//! from: a larger one elsewhere shows what is still to be done, also after a restart.

use super::applied_frame;
use super::cell;
use super::index::{Change, Index, IndexError};
use crate::store::StoreError;

/// Key of the number.
pub(crate) const KEY: &[u8] = b"Me";

/// Key of the number of the base from which an index was built. The digest does not cover it: it is about the index.
const BUILT: &[u8] = b"Mr";

/// Whether a key is about the index itself: neither the digest nor a base has its row.
pub(crate) fn is_about_index(key: &[u8]) -> bool {
    key == applied_frame::KEY || key == BUILT
}

/// Returns the row after one more erasure.
pub(crate) fn next(row: Option<Vec<u8>>) -> Vec<u8> {
    (decode(row) + 1).to_be_bytes().to_vec()
}

/// Returns the number of erasures so far.
pub(crate) fn number(index: &dyn Index) -> Result<u64, IndexError> {
    read(index, KEY)
}

/// Returns the number of erasures that the index has been rebuilt after.
pub(crate) fn built(index: &dyn Index) -> Result<u64, IndexError> {
    read(index, BUILT)
}

/// Records that the index was built from a base with this number.
pub(crate) fn put_built(index: &dyn Index, number: u64) -> Result<(), IndexError> {
    let cell = cell::whole(BUILT, number.to_be_bytes().to_vec());
    index.apply(&mut std::iter::once(Change { key: BUILT, cell: Some(&cell) }))
}

fn read(index: &dyn Index, key: &[u8]) -> Result<u64, IndexError> {
    match cell::read(index, key) {
        Ok(body) => Ok(decode(body)),
        Err(StoreError::Full) => Err(IndexError::NoSpace),
        Err(error) => Err(IndexError::Failed(error.to_string())),
    }
}

fn decode(body: Option<Vec<u8>>) -> u64 {
    body.and_then(|body| body.try_into().ok()).map_or(0, u64::from_be_bytes)
}
