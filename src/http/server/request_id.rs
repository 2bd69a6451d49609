//! Ids of requests: what a log line, an answer and a person who asks about it have in common.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;

/// Hands out ids that do not repeat within a process and hardly between processes. They are no secret.
pub(crate) struct RequestIds {
    seed: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self { seed: RandomState::new().hash_one("request"), next: AtomicU64::new(0) }
    }

    /// The next id: 16 hexadecimal digits.
    pub(crate) fn draw(&self) -> HeaderValue {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        // An odd factor permutes the 64-bit numbers: neighbours look different, and none comes twice.
        let id = self.seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut digits = [0; 16];
        for (place, digit) in digits.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(id >> (60 - 4 * place)) as usize & 15];
        }
        HeaderValue::from_bytes(&digits).expect("hexadecimal digits may stand in a header")
    }
}
