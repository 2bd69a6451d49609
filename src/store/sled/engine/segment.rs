//! Segments: the files of the journal, their names and headers, and iteration over their frames.
//!
//! There are two copies of the header, at 0 and at 4096; frames begin at 8192.
//!
//! ```text
//! 0    magic `forms journal\0\0\0`     24   instance id, 16 bytes     48   first sequence
//! 16   format, 8 bytes                 40   ordinal                   56   size of the file     64   CRC-32C
//! ```

use super::frame::{Frame, SECTOR, array_at, u32_at, u64_at};

/// Format written by this version: of the journal and of every row in it. It must increase with any change that an
/// older version cannot read, even of a single row, so that the older version refuses the store instead of finding
/// rows it cannot decode.
pub(crate) const FORMAT: u32 = 4;
/// Oldest format that this version reads. Format 1 has the same rows, but does not record the version that wrote it.
pub(crate) const OLDEST_FORMAT: u32 = 1;
pub(crate) const FIRST_FRAME: u64 = 8192;
pub(crate) const HEADER_OFFSETS: [u64; 2] = [0, 4096];
/// Folder of the segments.
pub(crate) const JOURNAL: &str = "journal";
/// A segment under construction.
pub(crate) const NEXT_SEGMENT: &str = "journal/next.tmp";
/// Alignment of seals: pages that contain acknowledged frames are not rewritten by a seal.
pub(crate) const PAGE: usize = 4096;
const MAGIC: &[u8; 16] = b"forms journal\0\0\0";
const CHECKED: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) format: u32,
    pub(crate) instance: [u8; 16],
    pub(crate) ordinal: u64,
    /// Sequence of its first frame.
    pub(crate) first: u64,
    pub(crate) size: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..24].copy_from_slice(&u64::from(self.format).to_be_bytes());
        bytes[24..40].copy_from_slice(&self.instance);
        bytes[40..48].copy_from_slice(&self.ordinal.to_be_bytes());
        bytes[48..56].copy_from_slice(&self.first.to_be_bytes());
        bytes[56..64].copy_from_slice(&self.size.to_be_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKED]);
        bytes[CHECKED..CHECKED + 4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; SECTOR]) -> Option<SegmentHeader> {
        if &bytes[..16] != MAGIC || crc32c::crc32c(&bytes[..CHECKED]) != u32_at(bytes, CHECKED) {
            return None;
        }
        Some(SegmentHeader {
            format: u32::try_from(u64_at(bytes, 16)).ok()?,
            instance: array_at(bytes, 24),
            ordinal: u64_at(bytes, 40),
            first: u64_at(bytes, 48),
            size: u64_at(bytes, 56),
        })
    }

    /// Returns the seed of this segment's checksums, so that bytes of another segment, or of an answer, never look
    /// like a frame.
    pub(crate) fn seed(&self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.instance), &self.ordinal.to_be_bytes())
    }

    pub(crate) fn path(&self) -> String {
        path(self.ordinal)
    }
}

pub(crate) fn path(ordinal: u64) -> String {
    format!("{JOURNAL}/{ordinal:08}.log")
}

pub(crate) fn ordinal(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

/// Iterator over the frames of a segment in memory.
pub(crate) struct FrameIter<'a> {
    bytes: &'a [u8],
    seed: u32,
    at: usize,
    next: u64,
}

/// Bytes after the last frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Only zeros: no write was in progress.
    Empty,
    /// A torn write, up to this offset.
    Torn { end: usize },
    /// A valid frame after invalid bytes, which must have been valid once.
    Damage { next: usize, sequence: u64 },
}

impl<'a> FrameIter<'a> {
    /// Starts at an offset where the frame `next` is expected.
    pub(crate) fn new(bytes: &'a [u8], seed: u32, at: u64, next: u64) -> Self {
        FrameIter { bytes, seed, at: usize::try_from(at).unwrap_or(usize::MAX), next }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn expected(&self) -> u64 {
        self.next
    }

    fn frame_at(&self, at: usize) -> Option<Frame<'a>> {
        Frame::parse(self.bytes.get(at..)?, self.seed)
    }

    /// Classifies the bytes after the last frame.
    pub(crate) fn tail(&self) -> Tail {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(last) = last_written(rest) else { return Tail::Empty };
        for at in (self.at..=self.at + last).step_by(SECTOR) {
            if let Some(frame) = self.frame_at(at) {
                return Tail::Damage { next: at, sequence: frame.sequence };
            }
        }
        Tail::Torn { end: self.at + last + 1 }
    }
}

impl<'a> Iterator for FrameIter<'a> {
    type Item = (usize, Frame<'a>);

    fn next(&mut self) -> Option<(usize, Frame<'a>)> {
        // A seal begins at the next page. What lies between need not be zero: the sequence alone shows that no frame
        // is missing, and after a failed sync an unfinished write may come back that had been overwritten with zeros.
        let page = self.at.next_multiple_of(PAGE);
        let (at, frame) = [self.at, page].into_iter().find_map(|at| {
            let frame = self.frame_at(at).filter(|frame| frame.sequence == self.next)?;
            Some((at, frame))
        })?;
        self.at = at + frame.length();
        self.next += 1;
        Some((at, frame))
    }
}

/// Returns the offset of the last byte that is not zero.
fn last_written(bytes: &[u8]) -> Option<usize> {
    // Whole blocks first: a segment may be 64 MiB of zeros, and comparing slices is as fast as memory.
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut end = bytes.len();
    while end >= ZEROS.len() && bytes[end - ZEROS.len()..end] == ZEROS {
        end -= ZEROS.len();
    }
    bytes[..end].iter().rposition(|&byte| byte != 0)
}
