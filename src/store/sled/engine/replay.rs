//! Replay of the journal into the index.

use super::applied_frame::{self, AppliedFrame};
use super::digest::IndexDigest;
use super::discover::{JournalEnd, Segments, complete, read};
use super::disk::Disk;
use super::frame::Frame;
use super::group::CellChange;
use super::index::{Change, Index, IndexError};
use super::options::OpenError;
use super::segment::{FIRST_FRAME, FrameIter, SegmentHeader};

/// Calls `visit` for each segment with its frames after a sequence, in order, and with its size. Every segment read
/// must be complete.
pub(crate) fn frames_after(
    disk: &dyn Disk,
    segments: &[SegmentHeader],
    end: u64,
    after: u64,
    mut visit: impl FnMut(&[Frame<'_>], u64) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    for (number, header) in segments.iter().enumerate() {
        let next = segments.get(number + 1).map_or(end + 1, |next| next.first);
        if next <= after + 1 {
            continue;
        }
        let bytes = read(disk, header)?;
        let mut walk = FrameIter::new(&bytes, header.seed(), FIRST_FRAME, header.first);
        let frames = walk.by_ref().map(|(_, frame)| frame).filter(|frame| frame.sequence > after);
        let frames: Vec<_> = frames.collect();
        complete(header, &walk, next)?;
        visit(&frames, header.size)?;
    }
    Ok(())
}

/// Returns the digest after a frame of the journal, or after the last one before its base.
pub(crate) fn digest_after(
    disk: &dyn Disk,
    segments: &Segments,
    end: &JournalEnd,
    sequence: u64,
) -> Result<IndexDigest, OpenError> {
    if sequence == end.last.position.sequence {
        return Ok(end.last.digest);
    }
    let mut digest = segments.base.map(|base| base.digest).unwrap_or_default();
    if sequence > segments.before() {
        let segments = &segments.headers;
        let until = segments.partition_point(|header| header.first <= sequence);
        let last = segments.get(until).map_or(end.last.position.sequence, |next| next.first - 1);
        frames_after(disk, &segments[..until], last, sequence - 1, |frames, _| {
            digest = frames.first().map_or(digest, |frame| frame.digest);
            Ok(())
        })?;
    }
    Ok(digest)
}

/// Applies all frames after a sequence, and records the last applied frame.
pub(crate) fn replay(
    disk: &dyn Disk,
    segments: &[SegmentHeader],
    end: u64,
    after: u64,
    index: &dyn Index,
    mut progress: impl FnMut(u64),
) -> Result<AppliedFrame, OpenError> {
    let mut last = None;
    frames_after(disk, segments, end, after, |frames, bytes| {
        index.apply(&mut frames.iter().flat_map(|frame| frame.changes()))?;
        let newest = frames.last();
        last = newest.map(|frame| AppliedFrame { sequence: frame.sequence, digest: frame.digest }).or(last);
        progress(bytes);
        Ok(())
    })?;
    let Some(applied) = last else { return Ok(AppliedFrame::read(index)?) };
    apply(index, &[], applied)?;
    Ok(applied)
}

/// Applies the changes of a frame; the last change records that it was applied.
pub(crate) fn apply(
    index: &dyn Index,
    changes: &[CellChange],
    applied: AppliedFrame,
) -> Result<(), IndexError> {
    let applied = applied.cell();
    let applied = Change { key: applied_frame::KEY, cell: Some(&applied) };
    index.apply(&mut changes.iter().map(CellChange::as_change).chain([applied]))
}

impl From<IndexError> for OpenError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::NoSpace => OpenError::NoSpace,
            IndexError::Locked | IndexError::Failed(_) => OpenError::Index(error.to_string()),
        }
    }
}
