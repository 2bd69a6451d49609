//! Transactions: an operation's view of its own changes, those of the group before it, and the index.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use super::cell;
use super::group::Group;
use super::index::Index;
use super::reader;
use crate::store::Result;

/// Order of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Ascending,
    /// Greatest key first.
    Descending,
}

/// A key with its body.
pub type Row = (Vec<u8>, Vec<u8>);

/// A range of keys.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys with their bodies, in the order asked for.
pub type Rows = Vec<Row>;

/// Staged change of a row: its new body, or `None` to delete it.
pub(crate) struct StagedRow {
    pub(crate) body: Option<Vec<u8>>,
    /// Visible only after the other rows of the group.
    pub(crate) last: bool,
    /// The key does not exist in the index.
    pub(crate) new: bool,
}

/// Transaction of one operation on the writer thread. It has no effect unless the operation returns `Ok`.
pub struct Tx<'a> {
    index: &'a dyn Index,
    group: &'a Group,
    own: BTreeMap<Vec<u8>, StagedRow>,
}

/// Longest key in bytes.
pub const MAX_KEY: usize = 512;

impl<'a> Tx<'a> {
    pub(crate) fn new(index: &'a dyn Index, group: &'a Group) -> Tx<'a> {
        Tx { index, group, own: BTreeMap::new() }
    }

    pub(crate) fn into_changes(self) -> BTreeMap<Vec<u8>, StagedRow> {
        self.own
    }

    /// Returns the body of a key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::store::StoreError) if the row is corrupt; callers must not treat that as absence.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(staged) = self.own.get(key) {
            return Ok(staged.body.clone());
        }
        match self.group.get(key) {
            Some(body) => Ok(body.map(<[u8]>::to_vec)),
            None => cell::read(self.index, key),
        }
    }

    /// Returns bytes that change whenever the row under a key is written.
    pub(crate) fn revision(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.own.contains_key(key) || self.group.get(key).is_some() {
            return self.get(key);
        }
        cell::get(self.index, key)
    }

    /// Whether this operation or an earlier one of the group has changed a key.
    pub fn is_staged(&self, key: &[u8]) -> bool {
        self.own.contains_key(key) || self.group.get(key).is_some()
    }

    /// Returns the body that an earlier operation of the group has given a key, ignoring the index.
    pub fn staged(&self, key: &[u8]) -> Option<&[u8]> {
        self.group.get(key).flatten()
    }

    /// Returns at most `limit` rows of a range.
    pub fn scan(&self, range: impl RangeBounds<Vec<u8>>, direction: Direction, limit: usize) -> Result<Rows> {
        let bounds = to_range(range);
        if is_empty(&bounds) {
            return Ok(Vec::new());
        }
        let staged = self.staged_within(&bounds);
        // Each staged change hides at most one row of the index.
        let limit_below = limit.saturating_add(staged.len());
        let (below, _) = reader::scan(self.index, &bounds, direction, limit_below, usize::MAX)?;
        let mut merged: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
            below.into_iter().map(|(key, body)| (key, Some(body))).collect();
        merged.extend(staged);
        let rows = merged.into_iter().filter_map(|(key, body)| Some((key, body?)));
        Ok(match direction {
            Direction::Ascending => rows.take(limit).collect(),
            Direction::Descending => rows.rev().take(limit).collect(),
        })
    }

    /// Returns the row of a range with the greatest key.
    pub fn last(&self, range: impl RangeBounds<Vec<u8>>) -> Result<Option<Row>> {
        let bounds = to_range(range);
        if is_empty(&bounds) {
            return Ok(None);
        }
        let own = self.own.range::<Vec<u8>, _>((bounds.0.as_ref(), bounds.1.as_ref())).next_back();
        let own = own.map(|(key, staged)| (key, staged.body.as_ref()));
        let staged = match (own, self.group.last(&bounds)) {
            // The operation's own changes hide those of the group.
            (Some(own), Some(group)) if group.0 > own.0 => Some(group),
            (own, group) => own.or(group),
        };
        let below = reader::scan(self.index, &bounds, Direction::Descending, 1, usize::MAX)?.0.pop();
        match (staged, below) {
            (Some((key, _)), Some(below)) if below.0 > *key => Ok(Some(below)),
            (Some((key, Some(body))), _) => Ok(Some((key.clone(), body.clone()))),
            // The deletion hides the last row of the index.
            (Some((_, None)), _) => Ok(self.scan(bounds, Direction::Descending, 1)?.pop()),
            (None, below) => Ok(below),
        }
    }

    /// Returns keys of a range from the index alone, smallest first, until these have `limit` cells or more, pieces
    /// included. Ignores changes of the group.
    pub fn stored_keys(&self, range: impl RangeBounds<Vec<u8>>, limit: usize) -> Result<Vec<Vec<u8>>> {
        reader::keys(self.index, &to_range(range), limit)
    }

    fn staged_within(&self, bounds: &KeyRange) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        let mut staged: BTreeMap<_, _> = self.group.range(bounds).collect();
        let own = self.own.range::<Vec<u8>, _>((bounds.0.as_ref(), bounds.1.as_ref()));
        staged.extend(own.map(|(key, change)| (key.clone(), change.body.clone())));
        staged
    }

    /// Writes a row.
    ///
    /// # Panics
    /// If the key is longer than [`MAX_KEY`] or reserved; only this operation fails.
    pub fn put(&mut self, key: Vec<u8>, body: Vec<u8>) {
        self.stage(key, StagedRow { body: Some(body), last: false, new: false });
    }

    /// Writes a row under a new key, without checking whether the index has one.
    pub fn put_new(&mut self, key: Vec<u8>, body: Vec<u8>) {
        self.stage(key, StagedRow { body: Some(body), last: false, new: true });
    }

    /// Writes a row that becomes visible after all others of the group, such as a counter.
    pub fn put_last(&mut self, key: Vec<u8>, body: Vec<u8>) {
        self.stage(key, StagedRow { body: Some(body), last: true, new: false });
    }

    /// Removes a row, if it is there.
    pub fn delete(&mut self, key: Vec<u8>) {
        self.stage(key, StagedRow { body: None, last: false, new: false });
    }

    fn stage(&mut self, key: Vec<u8>, staged: StagedRow) {
        assert!(is_application_key(&key), "the key `{}` is not for callers", key.escape_ascii());
        self.own.insert(key, staged);
    }
}

/// Whether a key may be used by the code above the engine.
fn is_application_key(key: &[u8]) -> bool {
    let own = match key {
        [b'M', b'b', ..] => false,
        [b'M' | b'm' | b'P', ..] => true,
        [first, ..] => !first.is_ascii_alphabetic(),
        [] => true,
    };
    !own && key.len() <= MAX_KEY
}

pub(crate) fn to_range(range: impl RangeBounds<Vec<u8>>) -> KeyRange {
    (range.start_bound().cloned(), range.end_bound().cloned())
}

/// Whether the bounds are empty; an ordered map would panic on such a range.
pub(crate) fn is_empty(bounds: &KeyRange) -> bool {
    match (&bounds.0, &bounds.1) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
            start >= end
        }
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}
