//! The lock of a store: one process holds it, and publishes its address to the others.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::discover::io_error;
use super::disk::{Disk, StoreLock, read_all};
use super::options::{LockHolder, OpenError};
use crate::process::has_ended;

/// Acquires the lock, as [`wait_for`] does, and names this process in it.
pub(crate) fn acquire(disk: &dyn Disk, wait: Duration) -> Result<Box<dyn StoreLock>, OpenError> {
    let lock = wait_for(disk, wait)?;
    lock.set_text(&text(None)).map_err(io_error("write the lock file"))?;
    Ok(lock)
}

/// Acquires the lock, waiting at most `wait`: a killed process holds its locks a little longer.
pub(crate) fn wait_for(disk: &dyn Disk, wait: Duration) -> Result<Box<dyn StoreLock>, OpenError> {
    let given_up = Instant::now() + wait;
    loop {
        if let Some(lock) = disk.try_lock().map_err(io_error("lock the store"))? {
            return Ok(lock);
        }
        if Instant::now() >= given_up {
            return Err(locked_error(disk));
        }
        sleep(Duration::from_millis(20));
    }
}

/// Returns the error that another process holds the store.
pub(crate) fn locked_error(disk: &dyn Disk) -> OpenError {
    OpenError::Locked { path: disk.location(), holder: holder(disk) }
}

/// Returns the text of the lock file: the process id, and the address of its server.
pub(crate) fn text(address: Option<&str>) -> String {
    format!("{} {}\n", std::process::id(), address.unwrap_or_default())
}

fn holder(disk: &dyn Disk) -> Option<LockHolder> {
    let bytes = disk.open("lock").and_then(|file| read_all(&*file)).ok()?;
    read(&String::from_utf8(bytes).ok()?)
}

fn read(text: &str) -> Option<LockHolder> {
    let (pid, address) = text.trim_end_matches('\n').split_once(' ')?;
    let address = (!address.is_empty()).then(|| address.to_owned());
    Some(LockHolder { pid: pid.parse().ok()?, address })
}

/// Whether the store in the folder `data` is locked by a process that [has ended](has_ended), so that it will be
/// released soon.
pub fn is_held_by_ended_process(data: &Path) -> bool {
    let Ok(file) = File::open(data.join("lock")) else { return false };
    let holder = || read(&io::read_to_string(&file).ok()?);
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
        && holder().is_some_and(|holder| has_ended(holder.pid))
}
