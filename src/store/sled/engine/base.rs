//! The base of a journal: a file with all rows of the store, which replaces the segments before it.
//!
//! The rows are copied while the store goes on, so some are newer than others. Applying the frames of the segments after the base
//! makes all of them current, because a frame contains whole rows.
//!
//! ```text
//! 0    magic `forms base\0\0\0\0\0\0`   24   instance id, 16 bytes                   48   sequence before that segment
//! 16   format, 8 bytes                  40   ordinal of the first segment after it   56   digest after that sequence, 24 bytes
//! 80   bytes of the rows, before compression    88   size of the file    96   erasures    104   CRC-32C
//! 512  blocks: length u32, CRC-32C u32 seeded with instance and ordinal, changes as in a frame, compressed with deflate
//! ```

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::digest::IndexDigest;
use super::discover::{JournalEnd, damage, io_error, open};
use super::disk::{Disk, DiskFile};
use super::frame::{FrameChanges, SECTOR, array_at, push_change, u32_at, u64_at, u128_at};
use super::index::Change;
use super::options::OpenError;
use super::segment::{FORMAT, JOURNAL, OLDEST_FORMAT};

const MAGIC: &[u8; 16] = b"forms base\0\0\0\0\0\0";
const CHECKED: usize = 104;

/// A base under construction.
const NEXT_BASE: &str = "journal/base.tmp";

/// Bytes of the changes in a block. A block is synced when it is written, so that syncs of the journal do not wait for the
/// whole file.
const BLOCK: usize = 1 << 20;

/// More bytes than a compressed block has: it is written once a slice of rows has made it full.
const MAX_BLOCK: u64 = 4 << 20;

/// Header of a base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) instance: [u8; 16],
    /// The first segment after it.
    pub(crate) ordinal: u64,
    /// The last frame before that segment, and the digest after it.
    pub(crate) sequence: u64,
    pub(crate) digest: IndexDigest,
    /// The number of erasures before it.
    pub(crate) erasures: u64,
    /// Size of its rows in bytes, before compression.
    pub(crate) bytes: u64,
    /// Size of the file in bytes.
    pub(crate) size: u64,
}

impl Base {
    /// Offset of the first block.
    pub(crate) const FIRST_BLOCK: u64 = SECTOR as u64;

    /// Returns a header in place of a damaged one, of which only this is known.
    pub(crate) fn assumed(instance: [u8; 16], ordinal: u64, size: u64) -> Base {
        let digest = IndexDigest::default();
        Base { instance, ordinal, sequence: 0, digest, erasures: 0, bytes: 0, size }
    }

    pub(crate) fn path(&self) -> String {
        path(self.ordinal)
    }

    fn seed(&self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.instance), &self.ordinal.to_le_bytes())
    }

    fn encode(&self) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..24].copy_from_slice(&u64::from(FORMAT).to_be_bytes());
        bytes[24..40].copy_from_slice(&self.instance);
        bytes[40..48].copy_from_slice(&self.ordinal.to_be_bytes());
        bytes[48..56].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[56..64].copy_from_slice(&self.digest.count.to_be_bytes());
        bytes[64..80].copy_from_slice(&self.digest.sum.to_be_bytes());
        bytes[80..88].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[88..96].copy_from_slice(&self.size.to_be_bytes());
        bytes[96..104].copy_from_slice(&self.erasures.to_be_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKED]);
        bytes[CHECKED..CHECKED + 4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Reads the header of the base before the segment `ordinal`.
    ///
    /// # Errors
    /// If it is damaged, or of a newer version.
    pub(crate) fn read(disk: &dyn Disk, ordinal: u64) -> Result<Base, OpenError> {
        let path = path(ordinal);
        let file = open(disk, &path)?;
        let mut bytes = [0; SECTOR];
        let length = file.size().map_err(io_error("read the journal"))?;
        if length >= SECTOR as u64 {
            file.read_at(&mut bytes, 0).map_err(io_error("read the journal"))?;
        }
        if &bytes[..16] != MAGIC || crc32c::crc32c(&bytes[..CHECKED]) != u32_at(&bytes, CHECKED) {
            return Err(damage(&path, 0, "the header is not valid", 0, None));
        }
        let format = u32::try_from(u64_at(&bytes, 16)).unwrap_or(u32::MAX);
        if !(OLDEST_FORMAT..=FORMAT).contains(&format) {
            return Err(OpenError::Format { found: format, ours: FORMAT, version: None });
        }
        let base = Base {
            instance: array_at(&bytes, 24),
            ordinal: u64_at(&bytes, 40),
            sequence: u64_at(&bytes, 48),
            digest: IndexDigest { count: u64_at(&bytes, 56), sum: u128_at(&bytes, 64) },
            bytes: u64_at(&bytes, 80),
            size: u64_at(&bytes, 88),
            erasures: u64_at(&bytes, 96),
        };
        match () {
            () if base.ordinal != ordinal => {
                Err(damage(&path, 0, "the header is that of another base", 0, None))
            }
            () if length < base.size => Err(damage(&path, length, "the file has been cut", 0, None)),
            () => Ok(base),
        }
    }

    /// Finds the first intact block at an offset or after it: its offset, its changes and its length.
    pub(crate) fn next_block(&self, file: &dyn DiskFile, at: u64) -> Option<(u64, Vec<u8>, u64)> {
        (at..self.size).find_map(|at| {
            // A place that cannot be read is damaged.
            let (changes, length) = read_block(file, at, self.size, self.seed()).ok().flatten()?;
            Some((at, changes, length))
        })
    }

    /// Calls `visit` with the rows of each block, and the number of bytes it has on the disk.
    ///
    /// # Errors
    /// If a block is damaged; and those of `visit`.
    pub(crate) fn blocks(
        &self,
        disk: &dyn Disk,
        mut visit: impl FnMut(FrameChanges<'_>, u64) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let file = open(disk, &self.path())?;
        let mut at = Self::FIRST_BLOCK;
        while at < self.size {
            let block =
                read_block(&*file, at, self.size, self.seed()).map_err(io_error("read the journal"))?;
            let Some((changes, length)) = block else {
                return Err(damage(
                    &self.path(),
                    at,
                    "a block of rows is damaged",
                    0,
                    Some(self.sequence + 1),
                ));
            };
            visit(FrameChanges::new(&changes), length)?;
            at += length;
        }
        Ok(())
    }
}

/// Reads the block at an offset; returns its changes and its length, or `None` if it is damaged.
fn read_block(file: &dyn DiskFile, at: u64, end: u64, seed: u32) -> io::Result<Option<(Vec<u8>, u64)>> {
    if end - at < 8 {
        return Ok(None);
    }
    let mut head = [0; 8];
    file.read_at(&mut head, at)?;
    let length = u64::from(u32_at(&head, 0));
    if length > (end - at - 8).min(MAX_BLOCK) {
        return Ok(None);
    }
    let mut compressed = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_at(&mut compressed, at + 8)?;
    if crc32c::crc32c_append(seed, &compressed) != u32_at(&head, 4) {
        return Ok(None);
    }
    let mut changes = Vec::new();
    let read = DeflateDecoder::new(&compressed[..]).read_to_end(&mut changes);
    Ok(read.is_ok().then_some((changes, length + 8)))
}

pub(crate) fn path(ordinal: u64) -> String {
    format!("{JOURNAL}/{ordinal:08}.base")
}

pub(crate) fn ordinal(name: &str) -> Option<u64> {
    name.strip_suffix(".base")?.parse().ok()
}

/// Writes a base.
pub(crate) struct BaseWriter {
    file: Box<dyn DiskFile>,
    base: Base,
    /// The changes in the unfinished block.
    pub(crate) block: Vec<u8>,
}

impl BaseWriter {
    /// Begins a base before the newest segment of a journal with this `end`; nothing but the temporary file is changed until it
    /// is installed.
    pub(crate) fn begin(disk: &dyn Disk, end: &JournalEnd, erasures: u64) -> io::Result<BaseWriter> {
        let file = disk.create(NEXT_BASE)?;
        let base = Base {
            instance: end.header.instance,
            ordinal: end.header.ordinal,
            sequence: end.last.position.sequence,
            digest: end.last.digest,
            erasures,
            bytes: 0,
            size: SECTOR as u64,
        };
        Ok(BaseWriter { file, base, block: Vec::with_capacity(BLOCK) })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, key: &[u8], cell: &[u8]) {
        push_change(&mut self.block, Change { key, cell: Some(cell) });
    }

    /// Writes a block, if there are rows for one.
    pub(crate) fn write_if_full(&mut self) -> io::Result<()> {
        if self.block.len() >= BLOCK { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        let mut encoder = DeflateEncoder::new(vec![0; 8], Compression::fast());
        encoder.write_all(&self.block)?;
        let mut bytes = encoder.finish()?;
        let length = u32::try_from(bytes.len() - 8).map_err(io::Error::other)?;
        let checksum = crc32c::crc32c_append(self.base.seed(), &bytes[8..]);
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        bytes[4..8].copy_from_slice(&checksum.to_be_bytes());
        self.file.write_at(&bytes, self.base.size)?;
        self.file.sync()?;
        self.base.size += bytes.len() as u64;
        self.base.bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Removes the unfinished base, which takes space. If that fails, the next start does it.
    pub(crate) fn discard(self, disk: &dyn Disk) {
        drop(disk.remove(NEXT_BASE));
    }

    /// Completes the base and installs it, durably.
    pub(crate) fn install(&mut self, disk: &dyn Disk) -> io::Result<Base> {
        if !self.block.is_empty() {
            self.write()?;
        }
        self.file.write_at(&self.base.encode(), 0)?;
        self.file.sync()?;
        disk.rename(NEXT_BASE, &self.base.path())?;
        disk.sync_folder(JOURNAL)?;
        Ok(self.base)
    }
}
