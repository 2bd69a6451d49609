//! Cache of rows that every request reads, in decoded form.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::row_source::RowSource;
use crate::store::Result;

/// Bytes of encoded rows in the cache. Decoded they take several times as much.
const CAPACITY: u64 = 16 << 20;

/// Expected number of entries; the cache grows beyond it.
const EXPECTED: usize = 1_000;

/// Number of changes of rows of the cached kinds: a row that was looked up since the last one need not be read again.
#[derive(Clone, Default)]
pub(super) struct ChangeCounter(Arc<AtomicU64>);

impl ChangeCounter {
    /// Counts a change that is visible in the index from now on.
    pub(super) fn record_change(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Decoded rows by key and revision.
pub(super) struct DecodedCache<T> {
    changes: ChangeCounter,
    rows: Cache<Vec<u8>, Arc<Decoded<T>>, BodySize>,
    decode: fn(&[u8]) -> Result<T>,
}

struct Decoded<T> {
    /// Read before the row: if that changes in between, the next reader finds another revision.
    revision: Vec<u8>,
    /// Number of changes when it was the current one.
    current_at: AtomicU64,
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
    pub(super) fn new(changes: &ChangeCounter, decode: fn(&[u8]) -> Result<T>) -> Self {
        Self { changes: changes.clone(), rows: Cache::with_weighter(EXPECTED, CAPACITY, BodySize), decode }
    }

    /// Returns the row under `key`, read only if a row of its kind has changed since, and decoded only if it has itself.
    pub(super) fn get(&self, rows: &impl RowSource, key: &[u8]) -> Result<Option<Arc<T>>> {
        // Loaded before the row is read: a change in between makes it be read again.
        let changes = self.changes.0.load(Ordering::Acquire);
        let is_staged = rows.is_staged(key);
        let known = self.rows.get(key);
        let is_current = |known: &Arc<Decoded<T>>| known.current_at.load(Ordering::Relaxed) == changes;
        if let Some(known) = known.as_ref().filter(|known| !is_staged && is_current(known)) {
            return Ok(Some(Arc::clone(&known.row)));
        }
        let Some(revision) = rows.revision(key)? else { return Ok(None) };
        // What is staged becomes current when it is durable, which is a change.
        let current_at = if is_staged { u64::MAX } else { changes };
        if let Some(known) = known.filter(|known| known.revision == revision) {
            known.current_at.store(current_at, Ordering::Relaxed);
            return Ok(Some(Arc::clone(&known.row)));
        }
        let Some(body) = rows.get(key)? else { return Ok(None) };
        let row = Arc::new((self.decode)(&body)?);
        let current_at = AtomicU64::new(current_at);
        let decoded = Decoded { revision, current_at, body_bytes: body.len(), row: Arc::clone(&row) };
        self.rows.insert(key.to_vec(), Arc::new(decoded));
        Ok(Some(row))
    }
}
