//! Rate limiting by any key, in bounded memory.

use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use quick_cache::unsync::Cache;

use crate::clock::Timestamp;
use crate::config::Rate;

/// Keys that are counted at a time. A client with that many networks or keys may use up the rate of each anyway.
const CAPACITY: usize = 8_192;

/// A fixed-window rate limiter: a window begins with the first event of a key and has the length of the rate's period.
pub(crate) struct RateLimiter<K> {
    pub(crate) rate: Rate,
    /// When the window of a key began, and its events.
    windows: Mutex<Cache<K, (Timestamp, u32)>>,
}

impl<K: Eq + Hash> RateLimiter<K> {
    /// Allows events up to `rate` for each key.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, windows: Mutex::new(Cache::new(CAPACITY)) }
    }

    /// Counts an event of `key`. Beyond the rate, fails with the seconds until the window ends.
    pub(crate) fn try_acquire(&self, key: K, now: Timestamp) -> Result<(), u64> {
        let length = self.rate.per.millis();
        let age = |began: Timestamp| now.millis() - began.millis();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        // A window that begins in the future has ended too: the clock was set back.
        let current = windows.get(&key).copied().filter(|(began, _)| (0..length).contains(&age(*began)));
        let (began, events) = current.map_or((now, 1), |(began, events)| (began, events.saturating_add(1)));
        windows.insert(key, (began, events));
        if events <= self.rate.count {
            return Ok(());
        }
        let rest = u64::try_from(length - age(began)).unwrap_or(0);
        Err(rest.div_ceil(1_000))
    }
}
