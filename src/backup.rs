//! Backups: a tar archive of the files of a store at one point, with their checksums in its last entry. An archive without that
//! entry is not whole.

use std::io::{self, BufReader, Read, Write};
use std::path::{Component, Path};

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, EntryType, Header};

use crate::clock::Timestamp;
use crate::store::StoreFile;

/// Name of the last entry.
const MANIFEST: &str = "manifest.json";

/// Format of the archives that this version writes and reads.
const FORMAT: u32 = 1;

/// Maximum size of the manifest in bytes: a hundred thousand files.
const MAX_MANIFEST: u64 = 32 << 20;

/// Files and folders of a store that an archive can have.
const NAMES: [&str; 4] = ["journal", "state", "master-key", "exports"];

/// The list of the files in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// Version of the program that wrote it.
    pub version: String,
    pub created_at: Timestamp,
    /// In the order of the archive.
    pub files: Vec<ManifestFile>,
}

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Relative to the data directory.
    pub path: String,
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: String,
}

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is not a whole backup: its end is missing")]
    Cut,
    #[error("it is damaged: `{0}` is not what was backed up")]
    Damaged(String),
    #[error("it is not a backup of forms: it contains `{0}`")]
    Foreign(String),
    #[error("it was written by forms {0}; use that version or a newer one")]
    Newer(String),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Writes an archive of `files`.
///
/// # Errors
/// If a file or `out` fails; what was written then is not a whole archive.
pub fn write_archive(files: Vec<StoreFile>, created_at: Timestamp, out: impl Write) -> io::Result<()> {
    let mut archive = Builder::new(out);
    let mut written = Vec::with_capacity(files.len());
    for StoreFile { path, bytes, content } in files {
        let mut content = HashingReader::new(content.take(bytes));
        archive.append_data(&mut header(bytes, created_at), &path, &mut content)?;
        let file = content.finish(path);
        if file.bytes != bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, file.path));
        }
        written.push(file);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let manifest = serde_json::to_vec(&Manifest { format: FORMAT, version, created_at, files: written })?;
    archive.append_data(&mut header(manifest.len() as u64, created_at), MANIFEST, &manifest[..])?;
    archive.into_inner()?.flush()
}

fn header(bytes: u64, created_at: Timestamp) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(created_at.millis() / 1_000).unwrap_or_default());
    header
}

/// Reads an archive and checks that it is whole and unchanged. `visit` receives the path and the content of each file, before
/// it is known whether they are right.
///
/// # Errors
/// See [`ArchiveError`]; and those of `visit`.
pub fn read_archive(
    archive: impl Read,
    mut visit: impl FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<Manifest, ArchiveError> {
    let mut archive = Archive::new(BufReader::with_capacity(1 << 20, archive));
    let mut read = Vec::new();
    for entry in archive.entries()? {
        let entry = entry.map_err(cut)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let size = entry.size();
        if path == MANIFEST {
            let manifest = io::read_to_string(entry.take(MAX_MANIFEST)).map_err(cut)?;
            return if (manifest.len() as u64) < size {
                Err(ArchiveError::Cut)
            } else {
                check(&manifest, read)
            };
        }
        if !is_store_file(&path) {
            return Err(ArchiveError::Foreign(path));
        }
        let mut content = HashingReader::new(entry);
        visit(&path, &mut content)?;
        io::copy(&mut content, &mut io::sink()).map_err(cut)?;
        if content.bytes < size {
            return Err(ArchiveError::Cut);
        }
        read.push(content.finish(path));
    }
    Err(ArchiveError::Cut)
}

/// Parses the manifest and compares it with the files that were read.
fn check(manifest: &str, read: Vec<ManifestFile>) -> Result<Manifest, ArchiveError> {
    let damaged = || ArchiveError::Damaged(MANIFEST.to_owned());
    let manifest: Manifest = serde_json::from_str(manifest).map_err(|_invalid| damaged())?;
    if manifest.format > FORMAT {
        return Err(ArchiveError::Newer(manifest.version));
    }
    if let Some(wrong) = read.iter().find(|file| !manifest.files.contains(file)) {
        return Err(ArchiveError::Damaged(wrong.path.clone()));
    }
    if read.len() == manifest.files.len() { Ok(manifest) } else { Err(damaged()) }
}

/// The end of a file that was cut, or that is not an archive at all, is an error of the reader.
fn cut(error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::Other => ArchiveError::Cut,
        _ => ArchiveError::Io(error),
    }
}

/// Whether `path` is a file of a store, and nowhere else.
fn is_store_file(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let is_ours = |part| matches!(part, Component::Normal(name) if NAMES.iter().any(|ours| name == *ours));
    parts.next().is_some_and(is_ours) && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// A reader that counts and hashes what is read.
struct HashingReader<R> {
    reader: R,
    bytes: u64,
    hash: Context,
}

impl<R: Read> HashingReader<R> {
    fn new(reader: R) -> Self {
        Self { reader, bytes: 0, hash: Context::new(&SHA256) }
    }

    fn finish(self, path: String) -> ManifestFile {
        let hash = self.hash.finish();
        let sha256 = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        ManifestFile { path, bytes: self.bytes, sha256 }
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bytes += count as u64;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
