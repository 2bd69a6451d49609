//! The engine: durable rows under byte keys. It knows no business.

use std::ops::RangeBounds;
use std::path::Path;

use super::options::{Health, OpenError, Options, Report};
use super::tx::{Direction, Rows, Tx};
use crate::store::StoreError;

/// How far a background job has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Call again.
    More,
    /// Nothing is left to do.
    Done,
}

/// An open store of rows. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Opens the store in a folder, creating it if it is missing.
    pub fn open_path(_path: &Path, _options: Options, _report: Report) -> Result<Engine, OpenError> {
        Ok(Engine {})
    }

    /// Runs `work` on the writer thread and returns once its changes are durable and can be read.
    pub async fn write<T: Send + 'static>(
        &self,
        _work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        Err(StoreError::Busy)
    }

    /// Like [`Engine::write`], in a group of its own: for more than 200 rows or 1 MiB.
    pub async fn write_large<T: Send + 'static>(
        &self,
        _work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        Err(StoreError::Busy)
    }

    /// Like [`Engine::write`], for work that frees room: it may use half of what `min_free` keeps.
    pub async fn write_freeing<T: Send + 'static>(
        &self,
        _work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        Err(StoreError::Busy)
    }

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

    /// Runs a long job in slices of at most 100 rows, now and then, until it says [`Progress::Done`].
    pub fn background(&self, _job: impl FnMut(&mut Tx<'_>) -> Result<Progress, StoreError> + Send + 'static) {
    }

    /// Returns whether the store can work, without waiting.
    pub fn health(&self) -> Health {
        Health::Ready
    }

    /// Writes into the lock file where this process can be reached.
    pub fn set_address(&self, _address: &str) {}

    /// Stops cleanly: later calls fail, what was accepted is finished, the next start trusts the index.
    pub fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
