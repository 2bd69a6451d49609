//! Verification of the index: it must contain exactly the rows covered by the digest in the journal.

use std::ops::Bound;

use super::cell;
use super::digest::{IndexDigest, row_hash};
use super::erasures;
use super::group::CellChange;
use super::index::{Index, IndexError};
use super::tx::Direction;

/// Rows read by one search of the index. sled evicts pages only after 64 accesses to one of the 256 parts of its cache: a scan
/// that accesses each page once holds 16,000 pages, 200 MiB beyond the cache. With several searches in each page it holds fewer.
const SEARCHED_ROWS: usize = 2;

/// Incremental digest of an index that changes meanwhile.
#[derive(Default)]
pub(crate) struct IndexVerifier {
    /// Rows up to this key are included.
    cursor: Option<Vec<u8>>,
    digest: IndexDigest,
}

impl IndexVerifier {
    /// Adds at least the next `rows` rows. Returns the digest once there are no more.
    pub(crate) fn slice(
        &mut self,
        index: &dyn Index,
        rows: usize,
    ) -> Result<Option<IndexDigest>, IndexError> {
        self.slice_with(index, rows, |_, _| ())
    }

    /// Like [`IndexVerifier::slice`]; `visit` receives each row.
    pub(crate) fn slice_with(
        &mut self,
        index: &dyn Index,
        rows: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<Option<IndexDigest>, IndexError> {
        for _ in 0..rows.div_ceil(SEARCHED_ROWS) {
            let digest = self.search(index, SEARCHED_ROWS, &mut visit)?;
            if digest.is_some() {
                return Ok(digest);
            }
        }
        Ok(None)
    }

    fn search(
        &mut self,
        index: &dyn Index,
        rows: usize,
        visit: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<Option<IndexDigest>, IndexError> {
        let start = self.cursor.clone();
        let start = start.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut seen, mut damaged) = (0, false);
        index.range(start, Bound::Unbounded, Direction::Ascending, &mut |key, row| {
            seen += 1;
            damaged |= self.take(key, row);
            visit(key, row);
            seen < rows && !damaged
        })?;
        match damaged {
            true => Err(IndexError::Failed("a row is damaged".to_owned())),
            false => Ok((seen < rows).then_some(self.digest)),
        }
    }

    /// Adds a row; returns whether it is damaged.
    fn take(&mut self, key: &[u8], row: &[u8]) -> bool {
        let cursor = self.cursor.get_or_insert_default();
        cursor.clear();
        cursor.extend_from_slice(key);
        if !erasures::is_about_index(key) {
            self.digest.replace(None, Some(row_hash(key, row)));
        }
        !cell::is_intact(key, row)
    }

    /// Accounts for a change of the index.
    pub(crate) fn follow(&mut self, change: &CellChange) {
        if self.cursor.as_ref().is_some_and(|cursor| change.key <= *cursor) {
            self.digest.replace(change.old, change.new);
        }
    }
}

/// Computes the digest of a whole index.
pub(crate) fn sum(index: &dyn Index) -> Result<IndexDigest, IndexError> {
    let digest = IndexVerifier::default().slice(index, usize::MAX)?;
    Ok(digest.expect("an index has fewer rows than usize::MAX"))
}
