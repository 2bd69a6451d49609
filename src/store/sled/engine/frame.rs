//! Frames: the encoding of one group of changes in the journal.
//!
//! ```text
//! 0     magic `frm1`
//! 4     CRC-32C of all that follows, seeded with the segment
//! 8     length of the payload, bytes
//! 12    number of changes; 0 is a seal
//! 16    sequence
//! 24    digest after it: count, 8 bytes, and sum, 16 bytes
//! 48    payload: changes one after the other
//! ```
//! A change is `1, key length u16, value length u32, key, value` or `0, key length u16, key`. Integers are big-endian.

use super::digest::IndexDigest;
use super::index::Change;

/// Alignment of frames, so that a rewritten sector never contains bytes of two frames.
pub(crate) const SECTOR: usize = 512;
const MAGIC: &[u8; 4] = b"frm1";
const HEADER: usize = 48;

/// A valid frame of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) sequence: u64,
    pub(crate) digest: IndexDigest,
    changes: u32,
    payload: &'a [u8],
}

/// Reusable buffer for building frames.
#[derive(Default)]
pub(crate) struct FrameBuilder {
    bytes: Vec<u8>,
    changes: u32,
}

impl FrameBuilder {
    pub(crate) fn begin(&mut self) {
        // The memory of a very large frame is released.
        if self.bytes.capacity() > 8 << 20 {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        self.changes = 0;
    }

    pub(crate) fn push(&mut self, change: Change<'_>) {
        push_change(&mut self.bytes, change);
        self.changes += 1;
    }

    /// Returns the size of the frame on disk, in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.bytes.len().next_multiple_of(SECTOR) as u64
    }

    /// Completes the header and returns the frame, padded with zeros to whole sectors.
    pub(crate) fn finish(&mut self, seed: u32, sequence: u64, digest: IndexDigest) -> &[u8] {
        let end = self.bytes.len();
        let length = u32::try_from(end - HEADER).expect("a frame is smaller than 4 GiB");
        let header = &mut self.bytes[..HEADER];
        header[..4].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&length.to_be_bytes());
        header[12..16].copy_from_slice(&self.changes.to_be_bytes());
        header[16..24].copy_from_slice(&sequence.to_be_bytes());
        header[24..32].copy_from_slice(&digest.count.to_be_bytes());
        header[32..48].copy_from_slice(&digest.sum.to_be_bytes());
        let checksum = crc32c::crc32c_append(seed, &self.bytes[8..]);
        self.bytes[4..8].copy_from_slice(&checksum.to_be_bytes());
        self.bytes.resize(end.next_multiple_of(SECTOR), 0);
        &self.bytes
    }
}

impl<'a> Frame<'a> {
    /// Parses the frame at the start of `bytes`; `None` if it is not valid.
    pub(crate) fn parse(bytes: &'a [u8], seed: u32) -> Option<Frame<'a>> {
        let header = bytes.get(..HEADER)?;
        if &header[..4] != MAGIC {
            return None;
        }
        let end = HEADER.checked_add(u32_at(header, 8) as usize)?;
        let checked = bytes.get(8..end)?;
        if crc32c::crc32c_append(seed, checked) != u32_at(header, 4) {
            return None;
        }
        Some(Frame {
            sequence: u64_at(header, 16),
            digest: IndexDigest { count: u64_at(header, 24), sum: u128_at(header, 32) },
            changes: u32_at(header, 12),
            payload: &bytes[HEADER..end],
        })
    }

    /// Whether this is an empty frame. Once it follows a frame, damage to that frame is distinguishable from a torn
    /// write.
    pub(crate) fn is_seal(&self) -> bool {
        self.changes == 0
    }

    /// Bytes the frame takes on the disk.
    pub(crate) fn length(&self) -> usize {
        (HEADER + self.payload.len()).next_multiple_of(SECTOR)
    }

    pub(crate) fn changes(&self) -> FrameChanges<'a> {
        FrameChanges(self.payload)
    }
}

/// Adds a change to a payload.
pub(crate) fn push_change(bytes: &mut Vec<u8>, change: Change<'_>) {
    let key_length = u16::try_from(change.key.len()).expect("keys are at most some hundred bytes");
    bytes.push(u8::from(change.cell.is_some()));
    bytes.extend_from_slice(&key_length.to_be_bytes());
    if let Some(cell) = change.cell {
        let length = u32::try_from(cell.len()).expect("cells are at most some thousand bytes");
        bytes.extend_from_slice(&length.to_be_bytes());
    }
    bytes.extend_from_slice(change.key);
    bytes.extend_from_slice(change.cell.unwrap_or_default());
}

/// Iterator over the changes of a payload, in the order they were written.
pub(crate) struct FrameChanges<'a>(&'a [u8]);

impl<'a> FrameChanges<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        FrameChanges(payload)
    }
}

impl<'a> Iterator for FrameChanges<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        let has_cell = *self.0.first()? == 1;
        self.0 = &self.0[1..];
        let key_length = usize::from(u16::from_be_bytes(self.0.split_off(..2)?.try_into().ok()?));
        let cell_length = if has_cell { u32_at(self.0.split_off(..4)?, 0) as usize } else { 0 };
        let key = self.0.split_off(..key_length)?;
        let cell = self.0.split_off(..cell_length)?;
        Some(Change { key, cell: has_cell.then_some(cell) })
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array_at(bytes, at))
}

pub(crate) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_be_bytes(array_at(bytes, at))
}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the range has N bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_only_read_in_its_segment_and_unchanged() {
        let mut builder = FrameBuilder::default();
        builder.begin();
        builder.push(Change { key: b"Sa", cell: Some(b"one") });
        builder.push(Change { key: b"Sb", cell: None });
        let used = builder.bytes.len();
        let bytes = builder.finish(7, 42, IndexDigest { count: 3, sum: u128::MAX - 1 }).to_vec();
        let frame = Frame::parse(&bytes, 7).unwrap();
        assert_eq!((frame.sequence, frame.is_seal(), frame.length()), (42, false, SECTOR));
        assert_eq!(frame.changes().count(), 2);
        assert_eq!(Frame::parse(&bytes, 8), None);
        for bit in 0..used * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Frame::parse(&flipped, 7), None, "bit {bit}");
        }
    }
}
