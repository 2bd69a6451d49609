//! Cache of rows that every request reads, in decoded form.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::row_source::RowSource;
use crate::store::Result;

/// Bytes of encoded rows in the cache. Decoded they take several times as much.
const CAPACITY: u64 = 16 << 20;

/// Expected number of entries; the cache grows beyond it.
const EXPECTED: usize = 1_000;

/// Decoded rows by key, each with the bytes of its body, until they are [removed](Self::remove).
pub(super) struct DecodedCache<T> {
    rows: Cache<Vec<u8>, (Arc<T>, usize), BodySize>,
    decode: fn(&[u8]) -> Result<T>,
}

#[derive(Clone)]
struct BodySize;

impl<T> Weighter<Vec<u8>, (Arc<T>, usize)> for BodySize {
    fn weight(&self, key: &Vec<u8>, (_, body_bytes): &(Arc<T>, usize)) -> u64 {
        (key.len() + body_bytes) as u64
    }
}

impl<T> DecodedCache<T> {
    pub(super) fn new(decode: fn(&[u8]) -> Result<T>) -> Self {
        Self { rows: Cache::with_weighter(EXPECTED, CAPACITY, BodySize), decode }
    }

    /// Returns the row under `key`, which `rows` must have as the index has it.
    pub(super) fn get(&self, rows: &impl RowSource, key: &[u8]) -> Result<Option<Arc<T>>> {
        // The error `None` stands for a missing row.
        let found = self.rows.get_or_insert_with(key, || {
            let body = rows.get(key).map_err(Some)?.ok_or(None)?;
            let row = (self.decode)(&body).map_err(Some)?;
            Ok((Arc::new(row), body.len()))
        });
        match found {
            Ok((row, _)) => Ok(Some(row)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// Removes a row that has changed in the index, also one that is being read: it is not kept.
    pub(super) fn remove(&self, key: &[u8]) {
        self.rows.remove(key);
    }

    /// Removes all rows, as [`remove`](Self::remove) does.
    pub(super) fn clear(&self) {
        self.rows.clear();
    }
}
