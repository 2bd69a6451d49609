//! Discovery of running servers by files with their address and key.
//!
//! A file is trusted only if it belongs to the user, and its process is running and holds the lock of its store, or of the file
//! if the store is a database.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::cli::connection::credentials::reveal;
use crate::cli::connection::target::{display_url, is_loopback};
use crate::cli::environment::Environment;
use crate::client::Url;
use crate::process::has_ended;
use crate::secret::Secret;
use crate::server::read_operator_key;

/// A running server of this user, as its file has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunningServer {
    pub url: String,
    #[serde(serialize_with = "reveal")]
    pub key: Secret<String>,
    pub pid: u32,
    /// Its data directory, absolute; `None` if it uses a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// The file that announced it.
    #[serde(skip)]
    pub file: PathBuf,
}

/// The files that announce a server, locked; removed when dropped.
#[derive(Debug, Default)]
pub struct Announcement(Vec<(PathBuf, File)>);

impl Drop for Announcement {
    fn drop(&mut self) {
        // A stale file does no harm: its process is not running.
        self.0.iter().for_each(|(path, _)| drop(fs::remove_file(path)));
    }
}

/// Returns the folders in which commands look for the files.
///
/// The first is in the user's runtime folder, or in the state folder if `XDG_RUNTIME_DIR` is not set. Server and command
/// may have different environments, from a login shell and from cron, so the folders of [`default_folders`] follow.
pub fn folders(environment: &Environment) -> Vec<PathBuf> {
    let runtime = environment.get("XDG_RUNTIME_DIR").map(|folder| Path::new(folder).join("forms"));
    let state = directories::ProjectDirs::from("", "", "forms")
        .map(|folders| folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).join("run"));
    let mut folders = Vec::new();
    for folder in [runtime, state].into_iter().flatten().chain(default_folders()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Returns the folders that every process of the user knows, whatever its environment: in the default state folder, and
/// in systemd's runtime folder.
fn default_folders() -> Vec<PathBuf> {
    // Without HOME, the home folder is that of the user database.
    let state = directories::BaseDirs::new().map(|base| base.home_dir().join(".local/state/forms/run"));
    let runtime = PathBuf::from(format!("/run/user/{}/forms", getuid().as_raw()));
    state.into_iter().chain([runtime]).collect()
}

/// Returns the folders in which a server announces itself: the first of [`folders`], and if other processes of the user
/// may not know that one, the default state folder too.
fn own_folders(environment: &Environment) -> Vec<PathBuf> {
    let (first, defaults) = (folders(environment).into_iter().next(), default_folders());
    let is_known = first.as_ref().is_some_and(|first| defaults.contains(first));
    let default = defaults.into_iter().next().filter(|_| !is_known);
    first.into_iter().chain(default).collect()
}

/// Announces the server at `url`, with its data directory if it has one, to this user's commands, until the announcement is
/// dropped.
///
/// # Errors
/// If no file can be written, with the first folder and the reason.
pub fn announce(
    environment: &Environment,
    url: &Url,
    key: &str,
    data: Option<&Path>,
) -> Result<Announcement, (PathBuf, io::Error)> {
    let (mut announcement, mut errors) = (Announcement::default(), Vec::new());
    for folder in own_folders(environment) {
        match write(&folder, url, key, data) {
            Ok(file) => announcement.0.push(file),
            Err(error) => errors.push((folder, error)),
        }
    }
    match errors.into_iter().next() {
        Some(error) if announcement.0.is_empty() => Err(error),
        _ => Ok(announcement),
    }
}

/// Writes the file into `folder`, which must not be writable by others, and returns its path and the file, locked.
fn write(folder: &Path, url: &Url, key: &str, data: Option<&Path>) -> io::Result<(PathBuf, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let metadata = fs::metadata(folder)?;
    if metadata.uid() != getuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!("{} can be written by others", folder.display())));
    }
    let host = url.host_str().unwrap_or_default().replace(['[', ']', ':'], "_");
    let path = folder.join(format!("{host}-{}.json", url.port_or_known_default().unwrap_or_default()));
    let (url, key, data) =
        (display_url(url), Secret::new(key.to_owned()), data.map(fs::canonicalize).transpose()?);
    let server = RunningServer { url, key, pid: std::process::id(), data, file: PathBuf::new() };
    // Only its owner can read the new file, and readers never see a part of it.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(&server)?)?;
    file.as_file().try_lock()?;
    Ok((path.clone(), file.persist(path)?))
}

/// Returns the running servers of this user with a file in one of the `folders`. Removes files of those that have ended.
pub fn running_in(folders: &[PathBuf]) -> Vec<RunningServer> {
    let entries = folders.iter().flat_map(fs::read_dir).flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut servers: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|name| name == "json")).filter_map(read).collect();
    servers.sort_by(|one, other| (&one.url, one.pid).cmp(&(&other.url, other.pid)));
    // A link can make two folders the same.
    servers.dedup_by(|one, other| (&one.url, one.pid) == (&other.url, other.pid));
    servers
}

fn read(path: PathBuf) -> Option<RunningServer> {
    // Opening a FIFO would block, and a link may lead anywhere.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&path).ok()?;
    let metadata = file.metadata().ok()?;
    if metadata.uid() != getuid().as_raw() || metadata.mode() & 0o077 != 0 || !metadata.is_file() {
        return None;
    }
    let server: RunningServer = serde_json::from_reader(&file).ok()?;
    let is_held = match &server.data {
        Some(data) => is_held(data, server.pid),
        None => is_locked(&file),
    };
    if has_ended(server.pid) || !is_held {
        let _stale = fs::remove_file(&path);
        return None;
    }
    // A key that was rotated since is in the data directory.
    let rotated =
        server.data.as_deref().and_then(read_operator_key).map(|key| Secret::new(key.reveal().to_owned()));
    Some(RunningServer { key: rotated.unwrap_or(server.key), file: path, ..server })
}

/// Whether the process `pid` holds the lock of the store in `data`, which names it. The process id alone may have been reused.
fn is_held(data: &Path, pid: u32) -> bool {
    let Ok(lock) = File::open(data.join("lock")) else { return false };
    let holder = io::read_to_string(&lock).unwrap_or_default();
    is_locked(&lock) && holder.split(' ').next() == Some(&pid.to_string())
}

fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
}

/// Whether a `forms serve` of this user is running: one that is not announced is starting. True where `/proc` is missing.
pub fn is_starting() -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let program = std::env::current_exe().ok();
    let is_server = |process: &Path| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == b"serve")
            && fs::read_link(process.join("exe")).ok() == program
    };
    processes.flatten().any(|process| is_server(&process.path()))
}

impl RunningServer {
    /// Whether this server listens at `url`.
    pub fn is_at(&self, url: &Url) -> bool {
        Url::parse(&self.url).is_ok_and(|own| own.origin() == url.origin())
    }

    /// Whether `url` may be another name of this server: the same port on this machine.
    pub fn may_be_at(&self, url: &Url) -> bool {
        Url::parse(&self.url).is_ok_and(|own| {
            is_loopback(&own)
                && is_loopback(url)
                && own.port_or_known_default() == url.port_or_known_default()
        })
    }

    /// Whether this server works on the data directory `data`.
    pub fn holds(&self, data: &Path) -> bool {
        fs::canonicalize(data).is_ok_and(|data| self.data.as_ref() == Some(&data))
    }

    /// Returns its data directory as text, or what it has instead.
    pub fn store(&self) -> String {
        self.data.as_ref().map_or_else(|| "a database".to_owned(), |data| data.display().to_string())
    }
}
