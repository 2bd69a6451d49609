//! Discovery of the journal when a store is opened: its segments, and its end.

use std::io;

use super::base::{self, Base};
use super::disk::{Disk, DiskFile, is_full, read_all};
use super::frame::{Frame, SECTOR};
use super::journal::LastFrame;
use super::options::{JournalDamage, OpenError};
use super::segment::{
    FIRST_FRAME, FORMAT, FrameIter, HEADER_OFFSETS, JOURNAL, OLDEST_FORMAT, PAGE, SegmentHeader, Tail,
    ordinal, path,
};
use super::state::Position;

#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalEnd {
    /// The newest segment.
    pub(crate) header: SegmentHeader,
    /// Offset of its next frame.
    pub(crate) at: u64,
    pub(crate) last: LastFrame,
    /// End of the bytes of a torn write, if there is one.
    pub(crate) torn: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Segments {
    /// The newest base; segments and bases before it are left over from its making.
    pub(crate) base: Option<Base>,
    /// In order, without gaps, after the base.
    pub(crate) headers: Vec<SegmentHeader>,
    /// Headers with one damaged copy, and the offset of that copy.
    pub(crate) damaged_headers: Vec<(SegmentHeader, u64)>,
}

/// Reads the headers of all segments and checks that none is missing.
pub(crate) fn find_segments(disk: &dyn Disk) -> Result<Segments, OpenError> {
    let names = disk.list(JOURNAL).map_err(io_error("list `journal`"))?;
    let newest_base = names.iter().filter_map(|name| base::ordinal(name)).max();
    let base = newest_base.map(|ordinal| Base::read(disk, ordinal)).transpose()?;
    let first = base.map_or(1, |base| base.ordinal);
    let is_after = |ordinal: &u64| *ordinal >= first;
    let mut ordinals: Vec<u64> = names.iter().filter_map(|name| ordinal(name)).filter(is_after).collect();
    ordinals.sort_unstable();
    let (mut headers, mut damaged_headers) = (Vec::<SegmentHeader>::new(), Vec::new());
    for (expected, found) in (first..).zip(ordinals) {
        if found != expected {
            let after = header(disk, found, &mut Vec::new())?.first;
            return Err(missing(expected, headers.last().map_or(0, |last| last.first), Some(after)));
        }
        let header = header(disk, found, &mut damaged_headers)?;
        match (headers.last(), &base) {
            (Some(earlier), _) => follows(earlier, &header)?,
            (None, Some(base)) => follows_base(base, &header)?,
            (None, None) => {}
        }
        headers.push(header);
    }
    match base {
        Some(base) if headers.is_empty() => Err(missing(base.ordinal, base.sequence, None)),
        base => Ok(Segments { base, headers, damaged_headers }),
    }
}

fn follows_base(base: &Base, header: &SegmentHeader) -> Result<(), OpenError> {
    if (header.instance, header.first) == (base.instance, base.sequence + 1) {
        return Ok(());
    }
    Err(damage(&header.path(), 0, "the segment does not follow the base before it", base.sequence, None))
}

impl Segments {
    /// Returns the sequence before the first segment: frames up to it are only in the base.
    pub(crate) fn before(&self) -> u64 {
        self.base.map_or(0, |base| base.sequence)
    }
}

pub(crate) fn header(
    disk: &dyn Disk,
    ordinal: u64,
    damaged_headers: &mut Vec<(SegmentHeader, u64)>,
) -> Result<SegmentHeader, OpenError> {
    let path = path(ordinal);
    let file = open(disk, &path)?;
    let length = file.size().map_err(io_error("read the journal"))?;
    if length < FIRST_FRAME {
        return Err(damage(&path, length, "the file has been cut", 0, None));
    }
    let mut copies = Vec::new();
    for at in HEADER_OFFSETS {
        let mut bytes = [0; SECTOR];
        file.read_at(&mut bytes, at).map_err(io_error("read the journal"))?;
        copies.push(SegmentHeader::parse(&bytes));
    }
    let Some(header) = copies.iter().flatten().next().copied() else {
        return Err(damage(&path, 0, "neither of the two headers is valid", 0, None));
    };
    if !(OLDEST_FORMAT..=FORMAT).contains(&header.format) {
        return Err(OpenError::Format { found: header.format, ours: FORMAT, version: None });
    }
    if header.ordinal != ordinal {
        return Err(damage(&path, 0, "the header is that of another segment", 0, None));
    }
    if length < header.size {
        return Err(damage(&path, length, "the file has been cut", header.first.saturating_sub(1), None));
    }
    let damaged = HEADER_OFFSETS.iter().zip(&copies).filter(|(_, copy)| copy.is_none());
    damaged_headers.extend(damaged.map(|(at, _)| (header, *at)));
    Ok(header)
}

fn follows(earlier: &SegmentHeader, header: &SegmentHeader) -> Result<(), OpenError> {
    if header.instance != earlier.instance {
        return Err(damage(
            &header.path(),
            0,
            "the segment belongs to another store",
            header.first - 1,
            None,
        ));
    }
    if header.first <= earlier.first {
        return Err(damage(&header.path(), 0, "the segment does not follow the one before it", 0, None));
    }
    Ok(())
}

/// Finds the end by reading the newest segment with frames.
pub(crate) fn find_end(disk: &dyn Disk, segments: &Segments) -> Result<JournalEnd, OpenError> {
    let newest = *segments.headers.last().expect("a journal has a segment");
    let bytes = read(disk, &newest)?;
    let mut walk = FrameIter::new(&bytes, newest.seed(), FIRST_FRAME, newest.first);
    let last = match last_of(&newest, &mut walk) {
        Some(last) => last,
        None => last_before(disk, segments)?,
    };
    let torn = match walk.tail() {
        Tail::Empty => None,
        Tail::Torn { end } => Some(end as u64),
        Tail::Damage { next, sequence } => {
            let what = format!("a change is damaged; the next valid one begins at byte {next}");
            return Err(damage(&newest.path(), walk.at() as u64, &what, walk.expected() - 1, Some(sequence)));
        }
    };
    Ok(JournalEnd { header: newest, at: walk.at() as u64, last, torn })
}

/// Finds the last frame if the newest segment has none: in the segment before it, or before the base.
fn last_before(disk: &dyn Disk, segments: &Segments) -> Result<LastFrame, OpenError> {
    let (base, segments) = (segments.base, &segments.headers);
    let Some(header) = segments.len().checked_sub(2).map(|before| segments[before]) else {
        return Ok(base.map_or_else(LastFrame::default, |base| LastFrame::before(&base)));
    };
    let bytes = read(disk, &header)?;
    let mut walk = FrameIter::new(&bytes, header.seed(), FIRST_FRAME, header.first);
    let last = last_of(&header, &mut walk);
    complete(&header, &walk, segments[segments.len() - 1].first)?;
    last.ok_or_else(|| {
        damage(&header.path(), FIRST_FRAME, "the segment has no change", header.first - 1, None)
    })
}

fn last_of(header: &SegmentHeader, walk: &mut FrameIter<'_>) -> Option<LastFrame> {
    walk.last().map(|(offset, frame)| last(header, offset as u64, &frame))
}

fn last(header: &SegmentHeader, offset: u64, frame: &Frame<'_>) -> LastFrame {
    let position = Position { ordinal: header.ordinal, offset, sequence: frame.sequence };
    LastFrame { position, digest: frame.digest, is_seal: frame.is_seal(), length: frame.length() }
}

/// Checks that a segment other than the newest was read to its end.
pub(crate) fn complete(header: &SegmentHeader, walk: &FrameIter<'_>, next: u64) -> Result<(), OpenError> {
    if walk.expected() == next {
        return Ok(());
    }
    let what = format!("change {} is damaged or missing", walk.expected());
    let after = match walk.tail() {
        Tail::Damage { sequence, .. } => sequence,
        Tail::Empty | Tail::Torn { .. } => next,
    };
    Err(damage(&header.path(), walk.at() as u64, &what, walk.expected() - 1, Some(after)))
}

/// Checks the end recorded at a clean stop; `None` if the journal does not end there.
pub(crate) fn clean_end(
    disk: &dyn Disk,
    segments: &[SegmentHeader],
    at: Position,
) -> Result<Option<JournalEnd>, OpenError> {
    let newest = *segments.last().expect("a journal has a segment");
    let Some(header) = segments.iter().find(|header| header.ordinal == at.ordinal) else { return Ok(None) };
    let bytes = some_from(disk, header, at.offset)?;
    let seal = Frame::parse(&bytes, header.seed()).filter(|frame| frame.is_seal());
    let Some(seal) = seal.filter(|seal| seal.sequence == at.sequence) else { return Ok(None) };
    let mut end = at.offset + seal.length() as u64;
    let mut behind = bytes[seal.length()..].to_vec();
    if newest.ordinal > at.ordinal {
        // A segment was started after it and has no frame.
        end = FIRST_FRAME;
        behind.extend(some_from(disk, &newest, FIRST_FRAME)?);
    }
    let is_end = newest.first <= at.sequence + 1 && behind.iter().all(|&byte| byte == 0);
    let last = last(header, at.offset, &seal);
    Ok(is_end.then_some(JournalEnd { header: newest, at: end, last, torn: None }))
}

/// Reads two pages at an offset, or fewer at the end of the file.
fn some_from(disk: &dyn Disk, header: &SegmentHeader, at: u64) -> Result<Vec<u8>, OpenError> {
    let length = usize::try_from(header.size.saturating_sub(at)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(2 * PAGE)];
    open(disk, &header.path())?.read_at(&mut bytes, at).map_err(io_error("read the journal"))?;
    Ok(bytes)
}

pub(crate) fn open(disk: &dyn Disk, path: &str) -> Result<Box<dyn DiskFile>, OpenError> {
    disk.open(path).map_err(io_error("open the journal"))
}

pub(crate) fn read(disk: &dyn Disk, header: &SegmentHeader) -> Result<Vec<u8>, OpenError> {
    read_all(&*open(disk, &header.path())?).map_err(io_error("read the journal"))
}

pub(crate) fn missing(ordinal: u64, readable_before: u64, readable_after: Option<u64>) -> OpenError {
    damage(&path(ordinal), 0, "the file is missing", readable_before, readable_after)
}

pub(crate) fn damage(file: &str, position: u64, what: &str, before: u64, after: Option<u64>) -> OpenError {
    OpenError::Damaged(Box::new(JournalDamage {
        file: file.to_owned(),
        position,
        what: what.to_owned(),
        readable_before: before,
        readable_after: after,
    }))
}

/// Adds the failed action to an I/O error; a full disk becomes [`OpenError::NoSpace`].
pub(crate) fn io_error(doing: &str) -> impl Fn(io::Error) -> OpenError + '_ {
    move |source| match is_full(&source) {
        true => OpenError::NoSpace,
        false => OpenError::Io { doing: doing.to_owned(), source },
    }
}
