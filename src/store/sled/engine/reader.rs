//! Reading past the writer: straight from the index, on the caller's own thread.

use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::cell;
use super::index::Index;
use super::tx::{Direction, Rows, is_empty};
use crate::store::StoreError;

/// The index everybody reads, while there is one.
#[derive(Clone, Default)]
pub struct Reader {
    shared: Arc<ReaderState>,
}

#[derive(Default)]
struct ReaderState {
    index: RwLock<Option<Arc<dyn Index>>>,
    is_suspect: AtomicBool,
    /// The index was found to be what the journal says.
    is_verified: AtomicBool,
    /// The index answers reads with want of room, too.
    is_out_of_space: AtomicBool,
}

impl Reader {
    /// Returns the body of a key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it cannot be read back as it was written, [`StoreError::Unavailable`] while
    /// there is no index.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let index = self.index()?;
        self.track_damage(cell::read(&*index, key))
    }

    /// Returns at most `limit` rows of a range.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn scan(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
    ) -> Result<Rows, StoreError> {
        self.scan_page(range, direction, limit, usize::MAX).map(|(rows, _)| rows)
    }

    /// As [`Reader::scan`], but ends after the row with which `bytes` of bodies are reached. True if rows may follow for
    /// that reason.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn scan_page(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
        bytes: usize,
    ) -> Result<(Rows, bool), StoreError> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        let index = self.index()?;
        self.track_damage(scan(&*index, &bounds, direction, limit, bytes))
    }

    pub(crate) fn index(&self) -> Result<Arc<dyn Index>, StoreError> {
        let index = self.shared.index.read().unwrap_or_else(PoisonError::into_inner);
        index
            .clone()
            .ok_or_else(|| StoreError::Unavailable("it is being opened, rebuilt or closed".to_owned()))
    }

    pub(crate) fn set(&self, index: Arc<dyn Index>) {
        self.shared.is_out_of_space.store(false, Ordering::Relaxed);
        *self.shared.index.write().unwrap_or_else(PoisonError::into_inner) = Some(index);
    }

    /// Takes the index away from everybody.
    pub(crate) fn take(&self) -> Option<Arc<dyn Index>> {
        self.shared.index.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns once whether something unreadable was met since it was asked last.
    pub(crate) fn take_suspicion(&self) -> bool {
        self.shared.is_suspect.load(Ordering::Relaxed)
            && self.shared.is_suspect.swap(false, Ordering::Relaxed)
    }

    /// Whether a read has failed for want of room: the index must be opened again.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.shared.is_out_of_space.load(Ordering::Relaxed)
    }

    /// Notes whether the index was found to be what the journal says.
    pub(crate) fn set_verified(&self, is_verified: bool) {
        self.shared.is_verified.store(is_verified, Ordering::Relaxed);
    }

    /// Remembers that something could not be read. What is missing in an index that was verified is missing in the journal,
    /// too: to verify it again would find nothing.
    pub(crate) fn track_damage<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if matches!(result, Err(StoreError::Full)) {
            self.shared.is_out_of_space.store(true, Ordering::Relaxed);
        }
        let is_damage = match &result {
            Err(StoreError::Damaged(_)) => true,
            Err(StoreError::Missing(_)) => !self.shared.is_verified.load(Ordering::Relaxed),
            Ok(_) | Err(_) => false,
        };
        if is_damage {
            self.shared.is_suspect.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// Reads rows of an index, leaving out the engine's own: `limit` at most, and none after the one with which `bytes` of
/// bodies are reached. True if it was that which ended it.
pub(crate) fn scan(
    index: &dyn Index,
    bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
    direction: Direction,
    limit: usize,
    bytes: usize,
) -> Result<(Rows, bool), StoreError> {
    let mut rows = Vec::new();
    let mut size = 0;
    let cells = cells(index, bounds, direction, limit)?;
    let count = cells.len();
    for (number, (key, cell)) in cells.into_iter().enumerate() {
        let Some(body) = cell::resolve(index, &key, cell)? else { continue };
        size += body.len();
        rows.push((key, body));
        if size >= bytes {
            return Ok((rows, number + 1 < count));
        }
    }
    Ok((rows, false))
}

/// Reads the keys of rows, until those and the pieces of their bodies are `limit` cells or more.
pub(crate) fn keys(
    index: &dyn Index,
    bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
    limit: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let (mut keys, mut weight) = (Vec::new(), 0);
    for (key, cell) in cells(index, bounds, Direction::Ascending, limit)? {
        weight += cell::cell_count(&key, cell);
        keys.push(key);
        if weight >= limit {
            break;
        }
    }
    Ok(keys)
}

fn cells(
    index: &dyn Index,
    bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
    direction: Direction,
    limit: usize,
) -> Result<Rows, StoreError> {
    let mut cells = Vec::new();
    if limit == 0 || is_empty(bounds) {
        return Ok(cells);
    }
    let (start, end) = (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
    let visited = index.range(start, end, direction, &mut |key, cell| {
        if !is_engine_key(key) {
            cells.push((key.to_vec(), cell.to_vec()));
        }
        cells.len() < limit
    });
    visited.map_err(cell::unreadable)?;
    Ok(cells)
}

/// Whether a key is the engine's: pieces, and what was applied.
fn is_engine_key(key: &[u8]) -> bool {
    key.first() == Some(&b'P') || key == super::applied::KEY
}
