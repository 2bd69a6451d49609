//! Where rows are read from: the index, or a transaction.

use std::ops::Bound;

use super::BATCH_ROWS;
use super::engine::job::Progress;
use super::engine::reader::Reader;
use super::engine::tx::{Direction, KeyRange, Rows, Tx};
use crate::store::Result;

pub(super) trait RowSource {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    fn scan(&self, range: KeyRange, direction: Direction, limit: usize) -> Result<Rows>;

    /// Returns the decoded body of a key.
    fn read<T>(&self, key: &[u8], decode: impl FnOnce(&[u8]) -> Result<T>) -> Result<Option<T>> {
        self.get(key)?.map(|body| decode(&body)).transpose()
    }

    fn scan_all(&self, range: KeyRange) -> Result<Rows> {
        self.scan(range, Direction::Ascending, usize::MAX)
    }

    fn first_keys(&self, range: KeyRange, limit: usize) -> Result<Vec<Vec<u8>>> {
        let rows = self.scan(range, Direction::Ascending, limit)?;
        Ok(rows.into_iter().map(|(key, _)| key).collect())
    }

    /// Sums what `count` counts in all rows of a range, which are read `batch` at a time.
    fn sum(&self, mut range: KeyRange, batch: usize, count: impl Fn(&[u8]) -> Result<u64>) -> Result<u64> {
        let mut sum = 0;
        loop {
            let rows = self.scan(range.clone(), Direction::Ascending, batch)?;
            for (_, body) in &rows {
                sum += count(body)?;
            }
            let Some((last, _)) = rows.into_iter().next_back() else { return Ok(sum) };
            range.0 = Bound::Excluded(last);
        }
    }

    fn has_any(&self, range: KeyRange) -> Result<bool> {
        Ok(!self.scan(range, Direction::Ascending, 1)?.is_empty())
    }
}

impl RowSource for Reader {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Reader::get(self, key)
    }

    fn scan(&self, range: KeyRange, direction: Direction, limit: usize) -> Result<Rows> {
        Reader::scan(self, range, direction, limit)
    }
}

impl RowSource for Tx<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Tx::get(self, key)
    }

    fn scan(&self, range: KeyRange, direction: Direction, limit: usize) -> Result<Rows> {
        Tx::scan(self, range, direction, limit)
    }
}

/// Deletes a batch of the rows of a range that no other operation changes any more, so that the index alone is complete.
pub(super) fn erase(tx: &mut Tx<'_>, range: KeyRange) -> Result<Progress> {
    let keys = tx.stored_keys(range, BATCH_ROWS)?;
    let progress = if keys.is_empty() { Progress::Done } else { Progress::More };
    keys.into_iter().for_each(|key| tx.delete(key));
    Ok(progress)
}
