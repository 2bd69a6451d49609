//! Small files that only their owner can read: keys.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Returns the content of the file, or `None` if it is missing.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        // Reading a FIFO would wait for its writer.
        Ok(metadata) if !metadata.is_file() => Err(io::Error::other("it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(_) | Err(_) => fs::read(path).map(Some),
    }
}

/// Writes `line` and a line break. Atomic, and durable once it returns.
pub(super) fn write(path: &Path, line: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    write_draft(&draft, line)?;
    fs::rename(&draft, path)?;
    sync_folder(path)
}

/// Writes `line` and a line break as [`write()`] does, unless the file exists; `name` is unique among those who write it.
pub(super) fn write_new(path: &Path, name: &str, line: &str) -> io::Result<()> {
    let draft = path.with_extension(name);
    write_draft(&draft, line)?;
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder(path),
    }
}

fn write_draft(draft: &Path, line: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    // A symbolic link planted there must not redirect the key.
    let mut file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(draft)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
