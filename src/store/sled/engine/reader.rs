//! Reads that bypass the writer: straight from the index, on the caller's thread.

use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::cell;
use super::index::Index;
use super::tx::{Direction, Rows, is_empty};
use crate::store::StoreError;

/// Shared access to the index, while there is one.
#[derive(Clone, Default)]
pub struct Reader {
    shared: Arc<ReaderState>,
}

#[derive(Default)]
struct ReaderState {
    index: RwLock<Option<Arc<dyn Index>>>,
    is_suspect: AtomicBool,
    /// The index was verified.
    is_verified: AtomicBool,
    /// The index fails reads, too, because the disk is full.
    is_out_of_space: AtomicBool,
}

impl Reader {
    /// Returns the body of a key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the row is corrupt, [`StoreError::Unavailable`] while there is no index.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let index = self.index()?;
        self.track_damage(cell::read(&*index, key))
    }

    /// Returns at most `limit` rows of a range.
    ///
    /// # Errors
    /// Those of [`Reader::get`].
    pub fn scan(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
    ) -> Result<Rows, StoreError> {
        self.scan_page(range, direction, limit, usize::MAX).map(|(rows, _)| rows)
    }

    /// Returns rows of a range until `limit` rows or `bytes` of bodies are reached; `true` if more may follow because
    /// of `bytes`.
    ///
    /// # Errors
    /// Those of [`Reader::get`].
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

    /// Removes the index; later reads fail.
    pub(crate) fn take(&self) -> Option<Arc<dyn Index>> {
        self.shared.index.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether a read was damaged since the last call.
    pub(crate) fn take_suspicion(&self) -> bool {
        self.shared.is_suspect.load(Ordering::Relaxed)
            && self.shared.is_suspect.swap(false, Ordering::Relaxed)
    }

    /// Whether a read has failed because the disk is full: the index must be reopened.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.shared.is_out_of_space.load(Ordering::Relaxed)
    }

    /// Sets whether the index was verified.
    pub(crate) fn set_verified(&self, is_verified: bool) {
        self.shared.is_verified.store(is_verified, Ordering::Relaxed);
    }

    /// Records a damaged read. A row that is missing in a verified index is missing in the journal, too: verifying
    /// again would find nothing.
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

/// Reads rows of an index, except the engine's own, until `limit` rows or `bytes` of bodies are reached; `true` if
/// `bytes` ended it early.
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

/// Reads the keys of rows, until these have `limit` cells or more, pieces included.
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

/// Whether a key belongs to the engine: pieces, and the record of the last applied frame.
fn is_engine_key(key: &[u8]) -> bool {
    key.first() == Some(&b'P') || key == super::applied::KEY
}
