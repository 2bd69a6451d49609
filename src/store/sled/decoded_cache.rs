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

/// Decoded rows by key and revision.
pub(super) struct DecodedCache<T> {
    rows: Cache<Vec<u8>, Arc<Decoded<T>>, BodySize>,
    decode: fn(&[u8]) -> Result<T>,
}

struct Decoded<T> {
    /// Read before the row: if that changes in between, the next reader finds another revision.
    revision: Vec<u8>,
    body_bytes: usize,
    row: Arc<T>,
}

#[derive(Clone)]
struct BodySize;

impl<T> Weighter<Vec<u8>, Arc<Decoded<T>>> for BodySize {
    fn weight(&self, key: &Vec<u8>, decoded: &Arc<Decoded<T>>) -> u64 {
        (key.len() + decoded.revision.len() + decoded.body_bytes) as u64
    }
}

impl<T> DecodedCache<T> {
    pub(super) fn new(decode: fn(&[u8]) -> Result<T>) -> Self {
        Self { rows: Cache::with_weighter(EXPECTED, CAPACITY, BodySize), decode }
    }

    /// Returns the row under `key`, decoded only if it has changed since it was read last.
    pub(super) fn get(&self, rows: &impl RowSource, key: &[u8]) -> Result<Option<Arc<T>>> {
        let Some(revision) = rows.revision(key)? else { return Ok(None) };
        if let Some(known) = self.rows.get(key).filter(|known| known.revision == revision) {
            return Ok(Some(Arc::clone(&known.row)));
        }
        let Some(body) = rows.get(key)? else { return Ok(None) };
        let row = Arc::new((self.decode)(&body)?);
        let decoded = Decoded { revision, body_bytes: body.len(), row: Arc::clone(&row) };
        self.rows.insert(key.to_vec(), Arc::new(decoded));
        Ok(Some(row))
    }
}
