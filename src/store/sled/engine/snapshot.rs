//! A snapshot: the files of a store as they are at one point, opened, so that they can be copied while the store goes on.

use std::cmp::Ordering;
use std::io::{self, Read};

use super::discover::{find_segments, io_error, open};
use super::disk::{Disk, DiskFile};
use super::options::OpenError;
use super::state::{self, StateFile, Trust};
use super::writer::Writer;
use crate::store::{Result, StoreError, StoreFile};

impl Writer {
    /// Opens the files of the journal, up to its end, and describes them in `state`. What is read of them does not change: frames
    /// are only appended, and a segment that is removed stays readable while it is open.
    ///
    /// # Errors
    /// If the store has stopped, or the files cannot be read.
    pub(crate) fn snapshot(&mut self) -> Result<Vec<StoreFile>> {
        if self.is_unsealed() {
            self.seal();
        }
        if self.is_stopped() {
            return Err(StoreError::Unavailable("it has stopped".to_owned()));
        }
        self.snapshot_files().map_err(|error| StoreError::Unavailable(error.with_cause()))
    }

    fn snapshot_files(&self) -> Result<Vec<StoreFile>, OpenError> {
        let (disk, end) = (self.disk(), self.journal.end());
        let mut files = Vec::new();
        let segments = find_segments(disk)?;
        if let Some(base) = segments.base {
            files.push(store_file(base.path(), base.size, base.size, open(disk, &base.path())?));
        }
        for header in segments.headers {
            let written = match header.ordinal.cmp(&end.header.ordinal) {
                Ordering::Less => header.size,
                Ordering::Equal => end.at,
                // It has no frames yet.
                Ordering::Greater => continue,
            };
            files.push(store_file(header.path(), written, header.size, open(disk, &header.path())?));
        }
        let (ordinal, floor) = (end.header.ordinal, end.last.position);
        let state = StateFile { instance: end.header.instance, ordinal, floor, trust: Trust::None }.encode();
        let bytes = state.len() as u64;
        let content = Box::new(io::Cursor::new(state.into_bytes()));
        files.push(StoreFile { path: state::PATH.to_owned(), bytes, content });
        Ok(files)
    }
}

/// Opens the files with these names beside the journal; of folders, everything in them. Missing ones are left out.
pub(crate) fn other_files(disk: &dyn Disk, names: &[&str]) -> Result<Vec<StoreFile>, OpenError> {
    let mut paths: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut files = Vec::new();
    while let Some(path) = paths.pop() {
        match disk.open(&path).and_then(|file| Ok((file.size()?, file))) {
            Ok((bytes, file)) => files.push(store_file(path, bytes, bytes, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let names = disk.list(&path).map_err(io_error("list the store"))?;
                paths.extend(names.into_iter().map(|name| format!("{path}/{name}")));
            }
            Err(error) => return Err(io_error("read a file beside the journal")(error)),
        }
    }
    Ok(files)
}

/// Returns a file of `bytes`, of which those after the first `written` are read as zeros.
fn store_file(path: String, written: u64, bytes: u64, file: Box<dyn DiskFile>) -> StoreFile {
    let content = FileReader { file, at: 0, end: written }.chain(io::repeat(0).take(bytes - written));
    StoreFile { path, bytes, content: Box::new(content) }
}

/// Reads a file from its beginning to `end`.
struct FileReader {
    file: Box<dyn DiskFile>,
    at: u64,
    end: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        self.file.read_at(&mut buffer[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
