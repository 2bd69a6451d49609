//! Request ids, which link a log line to its response.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;

/// Generates ids that are unique within a process and nearly always across processes. They are predictable.
pub(crate) struct RequestIds {
    seed: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self { seed: RandomState::new().hash_one("request"), next: AtomicU64::new(0) }
    }

    /// Returns the next id: 16 hexadecimal digits.
    pub(crate) fn next_id(&self) -> HeaderValue {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        // Multiplying by an odd number permutes the 64-bit integers: consecutive ids look different, and none repeats.
        let id = self.seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        HeaderValue::try_from(format!("{id:016x}")).expect("hexadecimal digits are valid in a header")
    }
}
