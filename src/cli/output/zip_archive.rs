//! ZIP archives (PKWARE's APPNOTE.TXT), written from beginning to end. The crate `zip` panics when it is dropped after a write
//! failed.

use std::io::{self, Seek, SeekFrom, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Of an export of 200,000 responses, level 6 makes the file 9 % smaller in six times the time.
const COMPRESSION: Compression = Compression::new(1);

/// Compressed bytes to collect before they are written.
const BUFFER: usize = 1 << 16;

/// Version of ZIP that can read the archive: 2.0, the first with Deflate.
const VERSION: u16 = 20;

/// Flag of a name in UTF-8.
const UTF8: u16 = 1 << 11;

/// Compression method Deflate.
const DEFLATE: u16 = 8;

/// 1 January 1980 at midnight: the same content gives the same bytes.
const TIME_AND_DATE: u32 = 0x0021_0000;

/// Position in a part's header of what is known at its end: checksum and sizes.
const CHECKSUM_OFFSET: u64 = 14;

/// An archive with parts written one after the other.
#[derive(Debug)]
pub struct Archive<W> {
    writer: W,
    length: u64,
    parts: Vec<Entry>,
}

/// A part in the directory of the archive.
#[derive(Debug, Default)]
struct Entry {
    name: String,
    /// Position of its header.
    offset: u32,
    checksum: u32,
    compressed: u32,
    size: u32,
}

impl Entry {
    /// Returns the fields that both headers of a part have.
    fn fields(&self) -> Vec<u8> {
        let Self { name, checksum, compressed, size, .. } = self;
        let name_length = u16::try_from(name.len()).expect("names of parts are short");
        let mut fields = [VERSION, UTF8, DEFLATE].map(u16::to_le_bytes).concat();
        fields.extend([TIME_AND_DATE, *checksum, *compressed, *size].map(u32::to_le_bytes).concat());
        // No extra field.
        fields.extend([name_length, 0].map(u16::to_le_bytes).concat());
        fields
    }

    fn local_header(&self) -> Vec<u8> {
        [b"PK\x03\x04", &*self.fields(), self.name.as_bytes()].concat()
    }

    fn central_header(&self) -> Vec<u8> {
        let mut header = [b"PK\x01\x02", &VERSION.to_le_bytes()[..], &self.fields()].concat();
        // No comment, first disk, no attributes.
        header.extend([0; 10]);
        header.extend(self.offset.to_le_bytes());
        header.extend(self.name.as_bytes());
        header
    }
}

/// A part that is being written.
#[derive(Debug)]
pub struct Part {
    entry: Entry,
    encoder: DeflateEncoder<Vec<u8>>,
    checksum: crc32fast::Hasher,
    /// Length of what was written.
    pub size: u64,
    compressed: u64,
}

impl<W: Write + Seek> Archive<W> {
    /// Creates an archive in `writer`, which is empty.
    pub fn new(writer: W) -> Self {
        Self { writer, length: 0, parts: Vec::new() }
    }

    /// Begins a part, which must end before the next begins.
    pub fn begin(&mut self, name: &str) -> io::Result<Part> {
        let offset = to_u32(self.length)?;
        let entry = Entry { name: name.to_owned(), offset, ..Entry::default() };
        self.write_bytes(&entry.local_header())?;
        let encoder = DeflateEncoder::new(Vec::new(), COMPRESSION);
        Ok(Part { entry, encoder, checksum: crc32fast::Hasher::new(), size: 0, compressed: 0 })
    }

    /// Appends to the part.
    pub fn write(&mut self, part: &mut Part, text: &str) -> io::Result<()> {
        part.size += text.len() as u64;
        part.checksum.update(text.as_bytes());
        part.encoder.write_all(text.as_bytes())?;
        if part.encoder.get_ref().len() < BUFFER {
            return Ok(());
        }
        let compressed = std::mem::take(part.encoder.get_mut());
        part.compressed += compressed.len() as u64;
        self.write_bytes(&compressed)
    }

    /// Ends the part; nothing may be written to it afterwards.
    pub fn end(&mut self, part: &mut Part) -> io::Result<()> {
        part.encoder.try_finish()?;
        let rest = std::mem::take(part.encoder.get_mut());
        self.write_bytes(&rest)?;
        let mut entry = std::mem::take(&mut part.entry);
        entry.checksum = std::mem::take(&mut part.checksum).finalize();
        entry.compressed = to_u32(part.compressed + rest.len() as u64)?;
        entry.size = to_u32(part.size)?;
        self.writer.seek(SeekFrom::Start(u64::from(entry.offset) + CHECKSUM_OFFSET))?;
        let known = [entry.checksum, entry.compressed, entry.size].map(u32::to_le_bytes).concat();
        self.writer.write_all(&known)?;
        self.writer.seek(SeekFrom::Start(self.length))?;
        self.parts.push(entry);
        Ok(())
    }

    /// Writes a part as a whole.
    pub fn add(&mut self, name: &str, text: &str) -> io::Result<()> {
        let mut part = self.begin(name)?;
        self.write(&mut part, text)?;
        self.end(&mut part)
    }

    /// Completes the archive and returns its writer.
    pub fn finish(mut self) -> io::Result<W> {
        let directory = self.parts.iter().flat_map(Entry::central_header).collect::<Vec<_>>();
        let offset = to_u32(self.length)?;
        let length = to_u32(directory.len() as u64)?;
        let count = u16::try_from(self.parts.len()).map_err(too_large)?.to_le_bytes();
        self.write_bytes(&directory)?;
        // One disk, no comment.
        self.write_bytes(b"PK\x05\x06\0\0\0\0")?;
        self.write_bytes(&[count, count].concat())?;
        self.write_bytes(&[length.to_le_bytes(), offset.to_le_bytes()].concat())?;
        self.write_bytes(&[0, 0])?;
        Ok(self.writer)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.writer.write_all(bytes)
    }
}

/// Converts a length or position. Beyond 4 GiB, archives need the format ZIP64, which Excel wants to repair.
fn to_u32(number: u64) -> io::Result<u32> {
    u32::try_from(number).map_err(too_large)
}

fn too_large(error: std::num::TryFromIntError) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, error)
}
