//! This process and others of this machine.
//!
//! Who holds a store and which servers run is told in files that outlive who wrote them: so it is asked whether they
//! still live.

use std::path::Path;
use std::{fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Whether the process `pid` has ended, at least so far that its memory is going.
///
/// Of one that was killed that goes first, for seconds if it is gigabytes, and its locks and its sockets after that.
/// False where nothing tells.
pub fn has_ended(pid: u32) -> bool {
    let has_memory = fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    !has_memory && Path::new("/proc/self").exists()
}

/// Bytes that are free for this user on the disk of `folder`.
pub fn free_space(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Raises the number of files that this process may have open to the most it is allowed, and returns it.
pub fn raise_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    current.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX)
}
