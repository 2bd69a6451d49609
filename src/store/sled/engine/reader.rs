//! Reads that bypass the writer: straight from the index, on the caller's thread.

use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use super::cell;
use super::erasures;
use super::index::Index;
use super::queue::{Message, WriterQueue};
use super::tx::{Direction, KeyRange, Rows, is_empty, to_range};
use crate::store::{Result, StoreError, StoreHealth};

/// Shared access to the index, while there is one, and to the health of the store.
#[derive(Clone, Default)]
pub struct Reader {
    shared: Arc<ReaderState>,
}

#[derive(Default)]
struct ReaderState {
    index: RwLock<Option<Arc<dyn Index>>>,
    health: Mutex<StoreHealth>,
    /// Woken by a damaged read, so that the index is verified even if nothing is written.
    writer: OnceLock<Arc<WriterQueue>>,
    is_suspect: AtomicBool,
    is_verified: AtomicBool,
    /// The index fails reads, too, because the disk is full.
    is_out_of_space: AtomicBool,
}

impl Reader {
    /// Returns the body of a key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the row is corrupt, [`StoreError::Unavailable`] while there is no index.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let index = self.index()?;
        self.track_damage(cell::read(&*index, key))
    }

    /// Returns at most `limit` rows of a range: fewer only if there are no more.
    pub fn scan(&self, range: impl RangeBounds<Vec<u8>>, direction: Direction, limit: usize) -> Result<Rows> {
        self.scan_page(range, direction, limit, usize::MAX).map(|(rows, _)| rows)
    }

    /// Returns rows of a range until `limit` rows or `bytes` of bodies are reached; `false` if the range has no more.
    pub fn scan_page(
        &self,
        range: impl RangeBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
        bytes: usize,
    ) -> Result<(Rows, bool)> {
        let index = self.index()?;
        self.track_damage(scan(&*index, &to_range(range), direction, limit, bytes))
    }

    fn index(&self) -> Result<Arc<dyn Index>> {
        let index = self.shared.index.read().unwrap_or_else(PoisonError::into_inner).clone();
        index.ok_or_else(|| StoreError::Unavailable("it is being opened, rebuilt or closed".to_owned()))
    }

    pub(crate) fn set_index(&self, index: Arc<dyn Index>) {
        self.shared.is_out_of_space.store(false, Ordering::Relaxed);
        *self.shared.index.write().unwrap_or_else(PoisonError::into_inner) = Some(index);
    }

    /// Removes the index; later reads fail.
    pub(crate) fn take_index(&self) -> Option<Arc<dyn Index>> {
        self.shared.index.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn health(&self) -> StoreHealth {
        self.shared.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the health; `Stopped` is final.
    pub(crate) fn set_health(&self, health: StoreHealth) {
        let mut current = self.shared.health.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*current, StoreHealth::Stopped(_)) {
            *current = health;
        }
    }

    pub(crate) fn set_writer(&self, queue: Arc<WriterQueue>) {
        self.shared.writer.get_or_init(|| queue);
    }

    /// Returns whether a read found damage since the last call, and resets the flag.
    pub(crate) fn take_damage_flag(&self) -> bool {
        self.shared.is_suspect.swap(false, Ordering::Relaxed)
    }

    /// Whether a read has failed because the disk is full: the index must be reopened.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.shared.is_out_of_space.load(Ordering::Relaxed)
    }

    pub(crate) fn set_verified(&self, is_verified: bool) {
        self.shared.is_verified.store(is_verified, Ordering::Relaxed);
    }

    /// Returns `read`, and schedules a verification of the index if it is an error of damage. A row that is missing in
    /// a verified index is missing in the journal, too: verifying again would find nothing.
    pub(crate) fn track_damage<T>(&self, read: Result<T>) -> Result<T> {
        let flag = match &read {
            Err(StoreError::Full) => &self.shared.is_out_of_space,
            Err(StoreError::Missing(_)) if self.shared.is_verified.load(Ordering::Relaxed) => return read,
            Err(StoreError::Damaged(_) | StoreError::Missing(_)) => &self.shared.is_suspect,
            Ok(_) | Err(_) => return read,
        };
        if !flag.swap(true, Ordering::Relaxed)
            && let Some(writer) = self.shared.writer.get()
        {
            writer.send(Message::Wake);
        }
        read
    }
}

/// Reads rows of an index, except the engine's own, until `limit` rows or `bytes` of bodies are reached; `false` if the
/// range has no more. Rows that are deleted meanwhile are skipped, so their number does not tell that.
pub(crate) fn scan(
    index: &dyn Index,
    range: &KeyRange,
    direction: Direction,
    limit: usize,
    bytes: usize,
) -> Result<(Rows, bool)> {
    let (mut rows, mut size, mut range) = (Vec::new(), 0, range.clone());
    loop {
        let wanted = limit - rows.len();
        let cells = cells(index, &range, direction, wanted)?;
        let is_end = cells.len() < wanted;
        let last = cells.last().map(|(key, _)| key.clone());
        let mut cells = cells.into_iter();
        while let Some((key, cell)) = cells.next() {
            let Some(body) = cell::resolve(index, &key, cell)? else { continue };
            size += body.len();
            rows.push((key, body));
            if size >= bytes {
                return Ok((rows, !is_end || cells.len() > 0));
            }
        }
        let (Some(last), false) = (last, is_end || rows.len() == limit) else { return Ok((rows, !is_end)) };
        match direction {
            Direction::Ascending => range.0 = Bound::Excluded(last),
            Direction::Descending => range.1 = Bound::Excluded(last),
        }
    }
}

/// Reads the keys of rows, until these have `limit` cells or more, pieces included.
pub(crate) fn keys(index: &dyn Index, range: &KeyRange, limit: usize) -> Result<Vec<Vec<u8>>> {
    let (mut keys, mut weight) = (Vec::new(), 0);
    for (key, cell) in cells(index, range, Direction::Ascending, limit)? {
        weight += cell::cell_count(&key, cell);
        keys.push(key);
        if weight >= limit {
            break;
        }
    }
    Ok(keys)
}

fn cells(index: &dyn Index, range: &KeyRange, direction: Direction, limit: usize) -> Result<Rows> {
    let mut cells = Vec::new();
    if limit == 0 || is_empty(range) {
        return Ok(cells);
    }
    let (start, end) = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
    let visited = index.range(start, end, direction, &mut |key, cell| {
        if !is_engine_key(key) {
            cells.push((key.to_vec(), cell.to_vec()));
        }
        cells.len() < limit
    });
    visited.map_err(cell::unreadable)?;
    Ok(cells)
}

/// Whether a key belongs to the engine: pieces, and its own records.
fn is_engine_key(key: &[u8]) -> bool {
    key.first() == Some(&b'P') || key == erasures::KEY || erasures::is_about_index(key)
}
