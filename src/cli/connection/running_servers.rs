//! How a running server tells the commands of the same user where it is: a file with its address and key.
//!
//! A file is believed only if it and the process it names belong to the user, the process lives, and the store it names is
//! held.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Pid, getuid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::cli::connection::target::is_loopback;
use crate::cli::environment::Environment;
use crate::client::Url;
use crate::process::has_ended;
use crate::secret::Secret;

/// A server of this user that is running.
#[derive(Debug, Clone)]
pub struct Live {
    pub url: String,
    pub key: Secret<String>,
    pub pid: u32,
    /// Its data directory, absolute.
    pub data: PathBuf,
    /// The file that told.
    pub file: PathBuf,
}

/// What stands in the file.
#[derive(Serialize, Deserialize)]
struct Content {
    url: String,
    key: String,
    pid: u32,
    data: PathBuf,
}

/// Takes the file away when the server ends.
#[derive(Debug)]
pub struct Announcement(PathBuf);

impl Drop for Announcement {
    fn drop(&mut self) {
        // Left behind it does no harm: its process does not live.
        let _gone = fs::remove_file(&self.0);
    }
}

/// Returns the folders of the files: a server writes to the first, commands look in all of them.
///
/// The first is in the user's runtime folder, or in the state folder where `XDG_RUNTIME_DIR` is not set. A server and a
/// command can be started with different environments, by a login shell and by cron: so the others are looked in too, and
/// the place where systemd makes runtime folders.
pub fn folders(environment: &Environment) -> Vec<PathBuf> {
    let runtime = environment.get("XDG_RUNTIME_DIR").map(PathBuf::from);
    let state = directories::ProjectDirs::from("", "", "forms")
        .map(|folders| folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).join("run"));
    let usual = PathBuf::from(format!("/run/user/{}", getuid().as_raw()));
    let forms = |folder: PathBuf| folder.join("forms");
    let mut folders = Vec::new();
    for folder in [runtime.map(forms), state, Some(forms(usual))].into_iter().flatten() {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Tells this user's commands of the server at `url`, until the announcement is dropped.
///
/// # Errors
/// If the folder or the file cannot be made, or the folder belongs to someone else.
pub fn announce(folder: &Path, url: &Url, key: &str, data: &Path) -> io::Result<Announcement> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let metadata = fs::metadata(folder)?;
    if metadata.uid() != getuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!("{} can be written by others", folder.display())));
    }
    let host = url.host_str().unwrap_or_default().replace(['[', ']', ':'], "_");
    let path = folder.join(format!("{host}-{}.json", url.port_or_known_default().unwrap_or_default()));
    let content = Content {
        url: url.as_str().trim_end_matches('/').to_owned(),
        key: key.to_owned(),
        pid: std::process::id(),
        data: fs::canonicalize(data)?,
    };
    // Renamed into place, so that nobody reads half of it.
    let draft = path.with_extension(format!("{}.tmp", content.pid));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(&content)?)?;
    fs::rename(&draft, &path)?;
    Ok(Announcement(path))
}

/// The servers of this user that are running and have a file in one of the `folders`.
pub fn live_in(folders: &[PathBuf]) -> Vec<Live> {
    let mut servers: Vec<Live> = Vec::new();
    for server in folders.iter().flat_map(|folder| live(folder)) {
        // Two folders are one where a link leads from one to the other.
        if !servers.iter().any(|known| (known.pid, &known.url) == (server.pid, &server.url)) {
            servers.push(server);
        }
    }
    servers
}

/// The servers of this user that are running. Files of those that are not are taken away.
pub fn live(folder: &Path) -> Vec<Live> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let paths = listing.filter_map(|found| Some(found.ok()?.path()));
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    paths.sort();
    paths.into_iter().filter_map(read).collect()
}

fn read(path: PathBuf) -> Option<Live> {
    // Opening a pipe would wait for its writer, and a link may lead anywhere.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&path).ok()?;
    let metadata = file.metadata().ok()?;
    if metadata.uid() != getuid().as_raw() || metadata.mode() & 0o077 != 0 || !metadata.is_file() {
        return None;
    }
    let Content { url, key, pid, data } = serde_json::from_reader(file).ok()?;
    if !lives(pid) || !is_held(&data) {
        let _stale = fs::remove_file(&path);
        return None;
    }
    Some(Live { url, key: Secret::new(key), pid, data, file: path })
}

/// Whether somebody holds the store in `data`, as its server does from before it tells of itself until it ends. The
/// process of a file's number may be another by now.
fn is_held(data: &Path) -> bool {
    let lock = File::open(data.join("lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

/// Whether the process lives and belongs to this user.
fn lives(pid: u32) -> bool {
    let Some(known) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(known).is_err() || has_ended(pid) {
        return false;
    }
    // Only the superuser may signal the processes of others: there the signal proves nothing.
    match fs::metadata(format!("/proc/{pid}")) {
        Ok(process) => process.uid() == getuid().as_raw(),
        Err(_) => !Path::new("/proc/self").exists(),
    }
}

impl Live {
    /// Whether this server listens at `url`.
    pub fn is_at(&self, url: &Url) -> bool {
        Url::parse(&self.url).is_ok_and(|own| {
            own.scheme() == url.scheme()
                && own.host() == url.host()
                && own.port_or_known_default() == url.port_or_known_default()
        })
    }

    /// Whether `url` may be another name of this server: the same port of this machine.
    pub fn may_be_at(&self, url: &Url) -> bool {
        Url::parse(&self.url).is_ok_and(|own| {
            is_loopback(&own)
                && is_loopback(url)
                && own.port_or_known_default() == url.port_or_known_default()
        })
    }

    /// Whether this server works on the data directory `data`.
    pub fn holds(&self, data: &Path) -> bool {
        fs::canonicalize(data).is_ok_and(|data| data == self.data)
    }
}
