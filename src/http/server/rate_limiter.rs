//! Rate limiting by any key, in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::config::Rate;

/// Keys that are counted at a time.
const CAPACITY: usize = 8_192;

/// A fixed-window rate limiter: a window begins with the first event of a key and has the length of the rate's period.
pub(crate) struct RateLimiter<K> {
    rate: Rate,
    windows: Mutex<HashMap<K, Window>>,
}

#[derive(Clone, Copy)]
struct Window {
    began: Timestamp,
    events: u32,
}

/// A key has reached the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateExceeded {
    /// Seconds until the window ends.
    pub(crate) retry_after: u64,
}

impl<K: Eq + Hash> RateLimiter<K> {
    /// Allows events up to `rate` for each key.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, windows: Mutex::default() }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts an event of `key`; fails beyond the rate.
    pub(crate) fn try_acquire(&self, key: K, now: Timestamp) -> Result<(), RateExceeded> {
        let length = self.rate.per.millis();
        // A window that begins in the future has ended too: the clock was set back.
        let age = |window: &Window| now.millis() - window.began.millis();
        let is_current = |window: &Window| (0..length).contains(&age(window));
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let current = windows.get(&key).filter(|window| is_current(window)).copied();
        if windows.len() >= CAPACITY && current.is_none() {
            windows.retain(|_, window| is_current(window));
            if windows.len() >= CAPACITY {
                // Starting again gives little to a client with that many networks or keys: it may use up each of them.
                windows.clear();
            }
        }
        let mut window = current.unwrap_or(Window { began: now, events: 0 });
        window.events = window.events.saturating_add(1);
        windows.insert(key, window);
        if window.events <= self.rate.count {
            return Ok(());
        }
        let rest = u64::try_from(length - age(&window)).unwrap_or(0);
        Err(RateExceeded { retry_after: rest.div_ceil(1_000) })
    }
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, RateExceeded, RateLimiter};
    use crate::clock::Timestamp;

    #[test]
    fn the_number_of_keys_is_bounded_and_ended_windows_go_first() {
        let limiter = RateLimiter::new("1/min".parse().unwrap());
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let size = || limiter.windows.lock().unwrap().len();
        for key in 1..CAPACITY {
            limiter.try_acquire(key, at(0)).unwrap();
        }
        assert_eq!(limiter.try_acquire(0, at(30)), Ok(()));
        assert_eq!(size(), CAPACITY);
        assert_eq!(limiter.try_acquire(CAPACITY, at(60)), Ok(()));
        assert_eq!(size(), 2, "ended windows were kept");
        let exceeded = Err(RateExceeded { retry_after: 30 });
        assert_eq!(limiter.try_acquire(0, at(60)), exceeded, "a current window was dropped");
        for key in 0..3 * CAPACITY {
            limiter.try_acquire(key, at(61)).ok();
            assert!(size() <= CAPACITY);
        }
    }
}
