//! Rows that are read all the time, kept decoded past the index.
//!
//! The writer alone changes rows. It forgets here what it is about to change, and nothing read before the change or
//! while it is made is kept: whoever has seen a change never meets what was before it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of bodies kept. Decoded they take several times as much.
const CAPACITY: usize = 4 << 20;

/// How many bytes are kept decoded for each byte of a body.
const GROWTH: usize = 4;

/// A row that can be kept decoded. The engine knows nothing of what rows mean: their own kind says how much they hold.
pub trait Keep: Send + Sync + 'static {
    /// Bytes that it takes beyond what is in proportion to its body.
    fn beyond(&self) -> usize {
        0
    }
}

/// A bounded memory of decoded rows.
#[derive(Default)]
pub(crate) struct Hot {
    known: RwLock<Known>,
    /// Counts beginnings and ends of changes: odd while one is made.
    turns: AtomicU64,
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
    pub(crate) fn find<T: Keep>(&self, key: &[u8]) -> Option<Arc<T>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::downcast(Arc::clone(known.rows.get(key)?)).ok()
    }

    /// To be asked before the index is.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.turns.load(Ordering::SeqCst))
    }

    /// Keeps a row whose body has `size` bytes and was read after `read`, unless rows have changed since or are
    /// changing. A full memory is emptied first, which is rare, simple and bounded.
    pub(crate) fn keep<T: Keep>(&self, key: &[u8], row: &Arc<T>, size: usize, read: Moment) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if read.0 % 2 == 1 || self.turns.load(Ordering::SeqCst) != read.0 {
            return;
        }
        let size = size + row.beyond() / GROWTH;
        if known.bytes + size > CAPACITY {
            *known = Known::default();
        }
        known.bytes += size;
        known.rows.insert(key.to_vec(), Arc::clone(row) as _);
    }

    /// Forgets rows that `change` is about to change, and makes the change. If it fails nothing is kept any more, as
    /// nobody knows how far it came.
    pub(crate) fn around<'a, E>(
        &self,
        mut keys: impl Iterator<Item = &'a [u8]> + Clone,
        change: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.turns.fetch_add(1, Ordering::SeqCst);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let concerned = keys.clone().any(|key| known.rows.contains_key(key));
        drop(known);
        if concerned {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            keys.by_ref().for_each(|key| drop(known.rows.remove(key)));
        }
        change()?;
        self.turns.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.turns.fetch_add(2, Ordering::SeqCst);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Keep for u32 {
        fn beyond(&self) -> usize {
            *self as usize
        }
    }

    fn change(hot: &Hot, key: &[u8], change: impl FnOnce()) {
        let made = hot.around([key].into_iter(), || {
            change();
            Ok::<_, ()>(())
        });
        made.unwrap();
    }

    #[test]
    fn a_row_is_known_until_it_changes() {
        let hot = Hot::default();
        hot.keep(b"F", &Arc::new(7_u32), 4, hot.now());
        change(&hot, b"S", || ());
        assert_eq!(hot.find::<u32>(b"F").as_deref(), Some(&7));
        change(&hot, b"F", || assert_eq!(hot.find::<u32>(b"F"), None));
        hot.keep(b"F", &Arc::new(8_u32), 4, hot.now());
        assert_eq!(hot.find::<u32>(b"F").as_deref(), Some(&8));
    }

    #[test]
    fn what_was_read_before_a_change_or_during_it_is_not_kept() {
        let hot = Hot::default();
        let keep = |read| {
            hot.keep(b"F", &Arc::new(7_u32), 4, read);
            assert_eq!(hot.find::<u32>(b"F"), None);
        };
        let before = hot.now();
        let mut during = None;
        change(&hot, b"F", || {
            during = Some(hot.now());
            keep(before);
            keep(hot.now());
        });
        keep(before);
        keep(during.unwrap());
    }

    #[test]
    fn a_full_memory_is_emptied() {
        let hot = Hot::default();
        hot.keep(b"a", &Arc::new(1_u32), CAPACITY, hot.now());
        hot.keep(b"b", &Arc::new(2_u32), 1, hot.now());
        assert_eq!((hot.find::<u32>(b"a"), hot.find::<u32>(b"b")), (None, Some(Arc::new(2))));
        let large = u32::try_from(CAPACITY * GROWTH).unwrap();
        hot.keep(b"c", &Arc::new(large), 1, hot.now());
        hot.keep(b"d", &Arc::new(3_u32), 1, hot.now());
        assert_eq!((hot.find::<u32>(b"c"), hot.find::<u32>(b"d")), (None, Some(Arc::new(3))));
    }
}
