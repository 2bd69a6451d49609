//! Rows that every request reads, decoded once for each body they have.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::store::StoreError;

/// Bytes of bodies kept. Decoded they take several times as much.
const CAPACITY: u64 = 16 << 20;

/// Entries expected; the cache grows past it.
const EXPECTED: usize = 1_000;

/// Decoded rows by their keys, each with the body it was decoded from. Nothing is ever invalidated: a row whose body
/// differs is decoded again.
pub(super) struct DecodedRows<T>(Cache<Vec<u8>, Arc<Decoded<T>>, BodySize>);

struct Decoded<T> {
    body: Vec<u8>,
    row: Arc<T>,
}

#[derive(Clone)]
struct BodySize;

impl<T> Weighter<Vec<u8>, Arc<Decoded<T>>> for BodySize {
    fn weight(&self, key: &Vec<u8>, decoded: &Arc<Decoded<T>>) -> u64 {
        (key.len() + decoded.body.len()) as u64
    }
}

impl<T> Default for DecodedRows<T> {
    fn default() -> Self {
        Self(Cache::with_weighter(EXPECTED, CAPACITY, BodySize))
    }
}

impl<T> DecodedRows<T> {
    /// Returns what `body`, read under `key`, decodes to.
    ///
    /// # Errors
    /// Those of `decode`.
    pub(super) fn get(
        &self,
        key: &[u8],
        body: Vec<u8>,
        decode: fn(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Arc<T>, StoreError> {
        if let Some(known) = self.0.get(key).filter(|known| known.body == body) {
            return Ok(Arc::clone(&known.row));
        }
        let row = Arc::new(decode(&body)?);
        self.0.insert(key.to_vec(), Arc::new(Decoded { body, row: Arc::clone(&row) }));
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, DecodedRows, StoreError};

    fn length(body: &[u8]) -> Result<usize, StoreError> {
        Ok(body.len())
    }

    fn unreachable(_: &[u8]) -> Result<usize, StoreError> {
        Err(StoreError::Busy)
    }

    #[test]
    fn a_row_is_decoded_once_for_each_body() {
        let rows = DecodedRows::default();
        assert_eq!(*rows.get(b"a", vec![1; 3], length).unwrap(), 3);
        assert_eq!(*rows.get(b"a", vec![1; 3], unreachable).unwrap(), 3);
        assert_eq!(*rows.get(b"a", vec![1; 4], length).unwrap(), 4);
        rows.get(b"b", vec![1; 4], unreachable).unwrap_err();
    }

    #[test]
    fn bodies_larger_than_the_capacity_are_not_kept() {
        let rows = DecodedRows::default();
        let large = vec![0; CAPACITY as usize + 1];
        rows.get(b"a", large.clone(), length).unwrap();
        rows.get(b"a", large, unreachable).unwrap_err();
    }
}
