//! This process and others of this machine.
//!
//! Lock files and runtime files outlive the processes that wrote them: these functions find out whether those still live.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Whether the process `pid` has ended, or is at least losing its memory.
///
/// A killed process loses its memory first, which takes seconds for gigabytes, then its locks and sockets. False where
/// `/proc` is missing.
pub fn has_ended(pid: u32) -> bool {
    let has_memory = fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    !has_memory && Path::new("/proc/self").exists()
}

/// Whether this process ignores SIGHUP from its start on, as `nohup` arranges. False where `/proc` is missing.
pub fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (Signal::HUP.as_raw() - 1) != 0)
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

/// What this process uses of the machine.
#[derive(Debug, Clone, Copy)]
pub struct ProcessUsage {
    pub resident_bytes: u64,
    pub open_files: u64,
    /// CPU time since its start.
    pub cpu: Duration,
}

/// Returns what this process uses; without `/proc`, no memory and no files.
pub fn process_usage() -> ProcessUsage {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    let kibibytes: u64 = resident.and_then(|size| size.parse().ok()).unwrap_or_default();
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    ProcessUsage {
        resident_bytes: kibibytes * 1_024,
        open_files: fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64),
        cpu: cpu.try_into().unwrap_or_default(),
    }
}
