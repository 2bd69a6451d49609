//! Cache of rows that every request reads, in decoded form.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::row_source::RowSource;
use crate::store::Result;

/// Bytes of encoded rows in the cache. Decoded they take several times as much.
const CAPACITY: u64 = 16 << 20;

/// Expected number of entries; the cache grows beyond it.
const EXPECTED: usize = 1_000;

/// Decoded rows by key, each with the bytes of its body. One that is removed while it is being read is not kept.
pub(super) type DecodedCache<T> = Cache<Vec<u8>, (Arc<T>, usize), BodySize>;

#[derive(Clone)]
pub(super) struct BodySize;

impl<T> Weighter<Vec<u8>, (Arc<T>, usize)> for BodySize {
    fn weight(&self, key: &Vec<u8>, (_, body_bytes): &(Arc<T>, usize)) -> u64 {
        (key.len() + body_bytes) as u64
    }
}

pub(super) fn new<T>() -> DecodedCache<T> {
    Cache::with_weighter(EXPECTED, CAPACITY, BodySize)
}

/// Returns the row under `key`, which `rows` must have as the index has it.
pub(super) fn read<T>(
    cache: &DecodedCache<T>,
    rows: &impl RowSource,
    key: &[u8],
    decode: fn(&[u8]) -> Result<T>,
) -> Result<Option<Arc<T>>> {
    // A missing row is the error `None`, which is not cached.
    let found = cache.get_or_insert_with(key, || {
        let body = rows.get(key).map_err(Some)?.ok_or(None)?;
        Ok((Arc::new(decode(&body).map_err(Some)?), body.len()))
    });
    match found {
        Ok((row, _)) => Ok(Some(row)),
        Err(None) => Ok(None),
        Err(Some(error)) => Err(error),
    }
}
