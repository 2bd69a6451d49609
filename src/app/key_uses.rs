//! When API keys were last used: kept in memory, and written for all keys together once a minute.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Timestamp;
use crate::secret::KeyId;

const MINUTE_MILLIS: i64 = 60 * 1_000;

/// The keys used since their uses were last written, each with the minute of its last use.
#[derive(Default)]
pub(super) struct KeyUses(Mutex<HashMap<KeyId, Timestamp>>);

impl KeyUses {
    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a use at `now`.
    pub(super) fn record(&self, key: KeyId, now: Timestamp) {
        let minute = now.millis() - now.millis().rem_euclid(MINUTE_MILLIS);
        self.lock().insert(key, Timestamp::from_millis(minute));
    }

    /// Returns the uses that have not been written yet.
    pub(super) fn snapshot(&self) -> HashMap<KeyId, Timestamp> {
        self.lock().clone()
    }

    /// Removes the uses in `written`, except of keys that have been used in another minute since.
    pub(super) fn remove(&self, written: &HashMap<KeyId, Timestamp>) {
        self.lock().retain(|key, minute| written.get(key) != Some(minute));
    }
}
