//! Values decoded lately: every submission reads the same form and the same key again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::StoreError;

/// How to read a value of the store.
type Decode<T> = fn(&[u8]) -> Result<T, StoreError>;

/// A bounded memory of decoded values. Each is kept with its bytes and serves for the same bytes only, so nothing in it
/// is ever stale.
pub(super) struct Decoded<K, T> {
    decode: Decode<T>,
    known: Mutex<HashMap<K, Known<T>>>,
}

/// A value and the bytes it was decoded from.
struct Known<T> {
    body: Vec<u8>,
    value: Arc<T>,
}

/// Values kept; a full memory is emptied, which is rare, simple and bounded.
const CAPACITY: usize = 1_024;

impl<K: Eq + Hash, T> Decoded<K, T> {
    pub(super) fn new(decode: Decode<T>) -> Self {
        Self { decode, known: Mutex::default() }
    }

    /// The value that `body`, read under `key`, holds.
    pub(super) fn get(&self, key: K, body: Vec<u8>) -> Result<Arc<T>, StoreError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.get(&key).filter(|known| known.body == body) {
            return Ok(Arc::clone(&same.value));
        }
        let value = Arc::new((self.decode)(&body)?);
        if known.len() >= CAPACITY {
            known.clear();
        }
        known.insert(key, Known { body, value: Arc::clone(&value) });
        Ok(value)
    }
}
