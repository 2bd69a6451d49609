//! Cache of rows that every request reads, kept in decoded form until a row of their kinds changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::store::Result;

/// Bytes of encoded rows in the cache. Decoded they take several times as much.
const CAPACITY: u64 = 16 << 20;

/// Expected number of entries; the cache grows beyond it.
const EXPECTED: usize = 1_000;

/// Counts changes of cached kinds of rows: entries read before the latest change may be stale.
#[derive(Clone, Default)]
pub(super) struct ChangeCounter(Arc<AtomicU64>);

impl ChangeCounter {
    /// Counts a change that is visible in the index from now on.
    pub(super) fn record_change(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

pub(super) struct DecodedCache<T> {
    changes: ChangeCounter,
    rows: Cache<Vec<u8>, Arc<Decoded<T>>, BodySize>,
}

struct Decoded<T> {
    /// Number of changes before the row was read.
    changes: u64,
    body_bytes: usize,
    row: Arc<T>,
}

#[derive(Clone)]
struct BodySize;

impl<T> Weighter<Vec<u8>, Arc<Decoded<T>>> for BodySize {
    fn weight(&self, key: &Vec<u8>, decoded: &Arc<Decoded<T>>) -> u64 {
        (key.len() + decoded.body_bytes) as u64
    }
}

impl<T> DecodedCache<T> {
    pub(super) fn new(changes: &ChangeCounter) -> Self {
        Self { changes: changes.clone(), rows: Cache::with_weighter(EXPECTED, CAPACITY, BodySize) }
    }

    /// Returns the row under `key`, from the cache if nothing has changed since it was decoded.
    pub(super) fn get(
        &self,
        key: &[u8],
        read: impl FnOnce() -> Result<Option<Vec<u8>>>,
        decode: fn(&[u8]) -> Result<T>,
    ) -> Result<Option<Arc<T>>> {
        // Loaded before the row is read: a concurrent change then makes this entry stale, never a stale entry
        // current.
        let changes = self.changes.0.load(Ordering::Acquire);
        if let Some(known) = self.rows.get(key).filter(|known| known.changes == changes) {
            return Ok(Some(Arc::clone(&known.row)));
        }
        let Some(body) = read()? else { return Ok(None) };
        let row = Arc::new(decode(&body)?);
        let decoded = Decoded { changes, body_bytes: body.len(), row: Arc::clone(&row) };
        self.rows.insert(key.to_vec(), Arc::new(decoded));
        Ok(Some(row))
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangeCounter, DecodedCache, Result};

    fn length(body: &[u8]) -> Result<usize> {
        Ok(body.len())
    }

    /// Returns the row under `key` from the cache, or from a body of `body_bytes`.
    fn get(rows: &DecodedCache<usize>, key: &[u8], body_bytes: Option<usize>) -> Option<usize> {
        let row = rows.get(key, || Ok(body_bytes.map(|bytes| vec![1; bytes])), length).unwrap();
        row.as_deref().copied()
    }

    #[test]
    fn a_row_is_read_once_until_something_changes() {
        let changes = ChangeCounter::default();
        let rows = DecodedCache::new(&changes);
        assert_eq!(get(&rows, b"a", None), None, "absence is not kept");
        assert_eq!(get(&rows, b"a", Some(3)), Some(3));
        assert_eq!(get(&rows, b"a", Some(4)), Some(3));
        assert_eq!(get(&rows, b"b", Some(5)), Some(5));
        changes.record_change();
        assert_eq!(get(&rows, b"a", Some(4)), Some(4));
        assert_eq!(get(&rows, b"b", None), None);
    }

    #[test]
    fn a_change_during_the_read_is_seen_by_the_next() {
        let changes = ChangeCounter::default();
        let rows = DecodedCache::new(&changes);
        let outrun = || {
            changes.record_change();
            Ok(Some(vec![1; 3]))
        };
        rows.get(b"a", outrun, length).unwrap();
        assert_eq!(get(&rows, b"a", Some(4)), Some(4));
    }
}
