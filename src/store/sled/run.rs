//! Runs: submissions of one form that became durable together share a row. A row of its own for each would cost the
//! index more than all the rest of storing it.
//!
//! ```text
//! S form(8) submission(16)    1, and for each: submission(16), then as `entry` says
//! ```
//! Those within follow in rising order, none is below the id in the key, which was the first one's, and no run begins
//! within another. A submission never moves from one run to another: whoever reads a page while others write must meet
//! it once. So one that is edited or restored, and may not fit any more, keeps only its place here.

use super::entry::{self, Entry, State};
use super::layout::undecodable;
use crate::id::SubmissionId;
use crate::store::StoreError;

/// Bytes up to which a run takes more in, so that it stays one cell of the index.
const FULL: usize = 4_000;

/// The first byte: the format.
const FORMAT: u8 = 1;

/// Whether there is room for `entry` behind `run`.
pub(super) fn has_room(run: &[u8], entry: &Entry) -> bool {
    run.len() + 16 + entry.bytes().len() <= FULL
}

/// A run of `entry` alone, as `id`.
pub(super) fn of(id: SubmissionId, entry: &Entry) -> Vec<u8> {
    behind(&[FORMAT], id, entry)
}

/// `run` with `entry` at the end, as `id`.
pub(super) fn behind(run: &[u8], id: SubmissionId, entry: &Entry) -> Vec<u8> {
    // With room for what the engine puts behind it, or it would be copied for that.
    let mut longer = Vec::with_capacity(run.len() + 16 + entry.bytes().len() + 8);
    longer.extend_from_slice(run);
    longer.extend_from_slice(&id.to_bytes());
    longer.extend_from_slice(entry.bytes());
    longer
}

/// `run` with `entry` as `id`, in place of what it had there, if anything; without that, if there is none. `None` if
/// nothing is left of it.
pub(super) fn with(
    run: &[u8],
    id: SubmissionId,
    entry: Option<&Entry>,
) -> Result<Option<Vec<u8>>, StoreError> {
    let (mut new, mut entry) = (vec![FORMAT], entry);
    for kept in read(run)? {
        if let Some(entry) = entry.take_if(|_| kept.id >= id) {
            new = behind(&new, id, entry);
        }
        if kept.id != id {
            new.extend_from_slice(kept.bytes);
        }
    }
    if let Some(entry) = entry {
        new = behind(&new, id, entry);
    }
    Ok(Some(new).filter(|new| new.len() > 1))
}

/// One submission of a run, its texts still where they stand.
pub(super) struct Kept<'a> {
    pub(super) id: SubmissionId,
    pub(super) state: State<'a>,
    /// All of it.
    bytes: &'a [u8],
}

/// The submissions of a run, oldest first.
pub(super) fn read(run: &[u8]) -> Result<Vec<Kept<'_>>, StoreError> {
    let mut rest = run.strip_prefix(&[FORMAT]).ok_or_else(|| undecodable("a submission"))?;
    let mut submissions = Vec::new();
    while !rest.is_empty() {
        let (kept, after) = split(rest).ok_or_else(|| undecodable("a submission"))?;
        submissions.push(kept);
        rest = after;
    }
    Ok(submissions)
}

/// The last submission of a run.
pub(super) fn last(run: &[u8]) -> Result<SubmissionId, StoreError> {
    read(run)?.last().map(|kept| kept.id).ok_or_else(|| undecodable("a submission"))
}

fn split(run: &[u8]) -> Option<(Kept<'_>, &[u8])> {
    let (id, rest) = run.split_first_chunk()?;
    let (state, after) = entry::split(rest)?;
    let bytes = &run[..run.len() - after.len()];
    Some((Kept { id: SubmissionId::from_bytes(*id), state, bytes }, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_changes_in_one_place_only() {
        let id = |number: u8| SubmissionId::from_bytes([number; 16]);
        let entry = |text: &str| Entry::new(1, text, None).unwrap();
        let ids = |run: &[u8]| read(run).unwrap().iter().map(|kept| kept.id).collect::<Vec<_>>();
        let run = of(id(2), &entry("{}"));
        let run = behind(&run, id(4), &entry("{\"a\":1}"));
        for (place, expected) in [(1, [1, 2, 4]), (3, [2, 3, 4]), (5, [2, 4, 5])] {
            let longer = with(&run, id(place), Some(&entry("{\"b\":2}"))).unwrap().unwrap();
            assert_eq!(ids(&longer), expected.map(id));
            assert_eq!(with(&longer, id(place), None).unwrap(), Some(run.clone()), "and back");
        }
        let replaced = with(&run, id(2), Some(&Entry::apart(1))).unwrap().unwrap();
        assert_eq!(ids(&replaced), [2, 4].map(id));
        assert_eq!(
            read(&replaced).unwrap().iter().map(|kept| kept.state.is_apart()).collect::<Vec<_>>(),
            [true, false]
        );
        assert_eq!(with(&run, id(9), None).unwrap(), Some(run.clone()));
        let one = with(&run, id(4), None).unwrap().unwrap();
        assert_eq!(with(&one, id(2), None).unwrap(), None);
    }
}
