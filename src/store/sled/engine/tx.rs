//! Transactions: an operation's view of its own changes, those of the group before it, and the index.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use super::cell;
use super::erasures;
use super::group::Group;
use super::index::Index;
use super::reader;
use crate::store::Result;

/// Order of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// A key with its body.
pub type Row = (Vec<u8>, Vec<u8>);

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

    /// Counts an erasure, so that a compaction follows within a day.
    pub fn count_erasure(&mut self) -> Result<()> {
        let body = Some(erasures::next(self.get(erasures::KEY)?));
        self.own.insert(erasures::KEY.to_vec(), StagedRow { body, last: false, new: false });
        Ok(())
    }

    /// Whether this operation or an earlier one of the group has changed a key.
    pub fn is_staged(&self, key: &[u8]) -> bool {
        self.own.contains_key(key) || self.group.get(key).is_some()
    }

    /// Returns the body that the group has given a key so far, ignoring the index.
    pub fn staged(&self, key: &[u8]) -> Option<&[u8]> {
        match self.own.get(key) {
            Some(staged) => staged.body.as_deref(),
            None => self.group.get(key).flatten(),
        }
    }

    /// Returns at most `limit` rows of a range.
    pub fn scan(&self, range: impl RangeBounds<Vec<u8>>, direction: Direction, limit: usize) -> Result<Rows> {
        let bounds = to_range(range);
        if is_empty(&bounds) {
            return Ok(Vec::new());
        }
        let within = (bounds.0.as_ref(), bounds.1.as_ref());
        let mut staged: BTreeMap<&Vec<u8>, Option<&Vec<u8>>> = self.group.range(within).collect();
        staged.extend(self.own.range::<Vec<u8>, _>(within).map(|(key, change)| (key, change.body.as_ref())));
        // Only deletions hide rows of the index without giving others in their place.
        let hidden = staged.values().filter(|body| body.is_none()).count();
        let limit_below = limit.saturating_add(hidden);
        let (below, _) = reader::scan(self.index, &bounds, direction, limit_below, usize::MAX)?;
        let mut merged: BTreeMap<_, _> = below.iter().map(|(key, body)| (key, Some(body))).collect();
        merged.extend(staged);
        let rows = merged.into_iter().filter_map(|(key, body)| Some((key.clone(), body?.clone())));
        Ok(match direction {
            Direction::Ascending => rows.take(limit).collect(),
            Direction::Descending => rows.rev().take(limit).collect(),
        })
    }

    /// Returns keys of a range from the index alone, smallest first, until these have `limit` cells or more, pieces
    /// included. Ignores changes of the group.
    pub fn stored_keys(&self, range: impl RangeBounds<Vec<u8>>, limit: usize) -> Result<Vec<Vec<u8>>> {
        reader::keys(self.index, &to_range(range), limit)
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

    pub fn delete(&mut self, key: Vec<u8>) {
        self.stage(key, StagedRow { body: None, last: false, new: false });
    }

    fn stage(&mut self, key: Vec<u8>, staged: StagedRow) {
        assert!(is_application_key(&key), "the key `{}` is not for callers", key.escape_ascii());
        let is_new = staged.new || self.own.get(&key).is_some_and(|earlier| earlier.new);
        self.own.insert(key, StagedRow { new: is_new, ..staged });
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
