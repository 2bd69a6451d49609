//! When API keys were last used: kept in memory, and written for all keys together once a minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::clock::Timestamp;
use crate::secret::KeyId;

const MINUTE_MILLIS: i64 = 60 * 1_000;

/// The keys used since their uses were last written, each with the minute of its last use.
#[derive(Default)]
pub(super) struct KeyUses(RwLock<HashMap<KeyId, AtomicI64>>);

impl KeyUses {
    /// Records a use at `now`. Every request does this: once a key is known, it takes a shared lock and an atomic store.
    pub(super) fn record(&self, key: KeyId, now: Timestamp) {
        let minute = now.millis() - now.millis().rem_euclid(MINUTE_MILLIS);
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.store(minute, Ordering::Relaxed);
        }
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, AtomicI64::new(minute));
    }

    /// Returns the uses that have not been written yet.
    pub(super) fn snapshot(&self) -> HashMap<KeyId, Timestamp> {
        let uses = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let time = |minute: &AtomicI64| Timestamp::from_millis(minute.load(Ordering::Relaxed));
        uses.iter().map(|(key, minute)| (*key, time(minute))).collect()
    }

    /// Removes the uses in `written`, except of keys that have been used in another minute since.
    pub(super) fn remove(&self, written: &HashMap<KeyId, Timestamp>) {
        let mut uses = self.0.write().unwrap_or_else(PoisonError::into_inner);
        uses.retain(|key, minute| written.get(key).is_none_or(|at| at.millis() != *minute.get_mut()));
    }
}
