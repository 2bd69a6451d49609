//! Rows that are read all the time, kept decoded past the index.
//!
//! The writer alone changes rows, and forgets here what it has changed before it answers: whoever asks after a change
//! was answered never meets what was before it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of bodies kept. Decoded they take several times as much.
const CAPACITY: usize = 4 << 20;

/// A bounded memory of decoded rows.
#[derive(Default)]
pub(crate) struct Hot {
    known: RwLock<Known>,
    /// Counts groups: what was read before a change must not be kept after it.
    groups: AtomicU64,
}

#[derive(Default)]
struct Known {
    rows: HashMap<Vec<u8>, Arc<dyn Any + Send + Sync>>,
    bytes: usize,
}

/// A moment before a row was read from the index.
#[derive(Clone, Copy)]
pub(crate) struct Moment(u64);

impl Hot {
    /// The row under `key`, if it is known.
    pub(crate) fn find<T: Send + Sync + 'static>(&self, key: &[u8]) -> Option<Arc<T>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::downcast(Arc::clone(known.rows.get(key)?)).ok()
    }

    /// To be asked before the index is.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.groups.load(Ordering::SeqCst))
    }

    /// Keeps a row whose body has `size` bytes and was read after `read`, unless rows have changed since. A full memory
    /// is emptied first, which is rare, simple and bounded.
    pub(crate) fn keep<T: Send + Sync + 'static>(&self, key: &[u8], row: &Arc<T>, size: usize, read: Moment) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if self.groups.load(Ordering::SeqCst) != read.0 {
            return;
        }
        if known.bytes + size > CAPACITY {
            *known = Known::default();
        }
        known.bytes += size;
        known.rows.insert(key.to_vec(), Arc::clone(row) as _);
    }

    /// Forgets rows that have just changed.
    pub(crate) fn forget<'a>(&self, mut changed: impl Iterator<Item = &'a [u8]> + Clone) {
        self.groups.fetch_add(1, Ordering::SeqCst);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if changed.clone().any(|key| known.rows.contains_key(key)) {
            drop(known);
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            changed.by_ref().for_each(|key| drop(known.rows.remove(key)));
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.groups.fetch_add(1, Ordering::SeqCst);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_known_until_it_changes() {
        let hot = Hot::default();
        hot.keep(b"F", &Arc::new(7_u32), 4, hot.now());
        hot.forget([&b"S"[..]].into_iter());
        assert_eq!(hot.find::<u32>(b"F").as_deref(), Some(&7));
        hot.forget([&b"F"[..]].into_iter());
        assert_eq!(hot.find::<u32>(b"F"), None);
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let hot = Hot::default();
        let read = hot.now();
        hot.forget([&b"F"[..]].into_iter());
        hot.keep(b"F", &Arc::new(7_u32), 4, read);
        assert_eq!(hot.find::<u32>(b"F"), None);
    }

    #[test]
    fn a_full_memory_is_emptied() {
        let hot = Hot::default();
        hot.keep(b"a", &Arc::new(1_u32), CAPACITY, hot.now());
        hot.keep(b"b", &Arc::new(2_u32), 1, hot.now());
        assert_eq!((hot.find::<u32>(b"a"), hot.find::<u32>(b"b")), (None, Some(Arc::new(2))));
    }
}
