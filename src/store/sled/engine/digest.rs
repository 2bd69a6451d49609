//! Digest of an index: count and hash sum of its rows, compared to detect an incomplete index.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

/// Number of all live rows and wrapping sum of their hashes. Independent of order; rows can be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IndexDigest {
    pub(crate) count: u64,
    pub(crate) sum: u128,
}

impl IndexDigest {
    /// Replaces a row by another, given their hashes.
    pub(crate) fn replace(&mut self, old: Option<u128>, new: Option<u128>) {
        if let Some(hash) = old {
            self.count = self.count.wrapping_sub(1);
            self.sum = self.sum.wrapping_sub(hash);
        }
        if let Some(hash) = new {
            self.count = self.count.wrapping_add(1);
            self.sum = self.sum.wrapping_add(hash);
        }
    }
}

/// Hashes a row with its cell as stored in the index.
pub(crate) fn row_hash(key: &[u8], cell: &[u8]) -> u128 {
    xxh3_128_with_seed(cell, xxh3_64(key))
}
