//! What one operation sees and changes: its own changes, those of the group before it, and the index.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::store::StoreError;

/// In which order a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Ascending,
    /// Greatest key first.
    Descending,
}

/// Keys with their bodies, in the order asked for.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// One operation on the writer thread. Nothing of it happens unless it returns `Ok`.
pub struct Tx<'a> {
    group: PhantomData<&'a ()>,
}

impl Tx<'_> {
    /// Returns the body of a key.
    pub fn get(&self, _key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    /// Returns at most `limit` rows of a range.
    pub fn scan(
        &self,
        _range: impl RangeBounds<Vec<u8>>,
        _direction: Direction,
        _limit: usize,
    ) -> Result<Rows, StoreError> {
        Ok(Vec::new())
    }

    /// Writes a row, whole. Keys are at most 512 bytes and begin with a letter other than `M`, `m`, `P`, or with `Mb`.
    pub fn put(&mut self, _key: Vec<u8>, _body: Vec<u8>) {}

    /// Writes a row that readers must not see before all others of the group: a counter.
    pub fn put_last(&mut self, _key: Vec<u8>, _body: Vec<u8>) {}

    /// Removes a row, if it is there.
    pub fn delete(&mut self, _key: Vec<u8>) {}
}
