//! The disk as the journal needs it, and its implementation on the file system.
//!
//! All durable state goes through [`Disk`], so that tests can replace it by a model that loses unsynced writes. Paths
//! are relative to the folder of the store.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::segment::JOURNAL;

pub trait Disk: Send + Sync {
    /// Opens a file for reading and writing.
    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a file, or truncates an existing one.
    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a folder, unless it exists.
    fn create_folder(&self, path: &str) -> io::Result<()>;
    /// Renames a file, replacing any file of the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Returns the names in a folder, unordered; none if the folder does not exist.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Syncs a folder, which makes its names durable; `""` is the folder of the store.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
    fn free_space(&self) -> io::Result<u64>;
    /// Returns the identity of the current boot of the machine, if known.
    fn boot_id(&self) -> Option<String>;
    /// Locks the store, or returns `None` if another process holds the lock.
    fn try_lock(&self) -> io::Result<Option<Box<dyn StoreLock>>>;
    /// Removes access for group and others; returns the paths that were changed.
    fn repair_permissions(&self) -> io::Result<Vec<String>>;
    /// Returns the path of the store, for messages.
    fn location(&self) -> PathBuf;
}

pub trait DiskFile: Send + Sync {
    fn size(&self) -> io::Result<u64>;
    /// Fills the buffer from an offset; fails if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the content durable (`fdatasync`). After an error the content on disk is unknown, and this must not be
    /// called again.
    fn sync(&self) -> io::Result<()>;
}

/// Lock of a store; released when dropped.
pub trait StoreLock: Send + Sync {
    /// Writes the description of the holder to the lock file.
    fn set_text(&self, text: &str) -> io::Result<()>;
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

pub(crate) fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.size()?).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Replaces a file atomically: temporary file, sync, rename. Durable once the folder is synced.
pub(crate) fn replace(disk: &dyn Disk, path: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{path}.tmp");
    let file = disk.create(&temporary)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(&temporary, path)
}

pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// Creates the folder if missing, with its parents, and makes them durable.
    ///
    /// # Errors
    /// If the folder has other content than a store: its permissions are about to be restricted, and it may belong to
    /// another program.
    pub fn new(root: &Path) -> io::Result<RealDisk> {
        let root = std::path::absolute(root)?;
        create_durably(&root)?;
        refuse_foreign(&root)?;
        Ok(RealDisk { root })
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Opens a file for reading and writing. Symbolic links are not followed: a store has none.
    fn open_own(&self, path: &str, options: &mut OpenOptions) -> io::Result<File> {
        let path = self.path(path);
        let options = options.read(true).write(true).mode(FILE_MODE);
        let opened = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&path);
        opened.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => {
                io::Error::other(format!("`{}` is a symbolic link; a store has none", path.display()))
            }
            _ => error,
        })
    }
}

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Names that identify the folder of a store.
const STORE_FILES: [&str; 5] = ["lock", "state", "journal", "index", "operator-key"];

/// Whether a folder contains a store, or the remains of one.
pub fn holds_store(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if STORE_FILES.iter().any(|ours| name == *ours) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn refuse_foreign(folder: &Path) -> io::Result<()> {
    // In this order: another process may begin a store in between.
    if fs::read_dir(folder)?.next().is_none() || holds_store(folder)? {
        return Ok(());
    }
    let why = "it holds other files and no store; name an empty folder or a new one";
    Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, why))
}

fn create_durably(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new("/"));
    create_durably(parent)?;
    match fs::DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    File::open(parent)?.sync_all()
}

impl Disk for RealDisk {
    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open_own(path, &mut OpenOptions::new())?))
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open_own(path, OpenOptions::new().create(true).truncate(true))?))
    }

    fn create_folder(&self, path: &str) -> io::Result<()> {
        match fs::DirBuilder::new().mode(FOLDER_MODE).create(self.path(path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        File::open(self.path(folder))?.sync_all()
    }

    fn free_space(&self) -> io::Result<u64> {
        let room = rustix::fs::statvfs(&self.root)?;
        Ok(room.f_bavail.saturating_mul(room.f_frsize))
    }

    fn boot_id(&self) -> Option<String> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned())
    }

    fn try_lock(&self) -> io::Result<Option<Box<dyn StoreLock>>> {
        self.create_folder(JOURNAL)?;
        let Some(journal) = locked(File::open(self.path(JOURNAL))?)? else { return Ok(None) };
        let file = self.open_own("lock", OpenOptions::new().create(true).truncate(false))?;
        Ok(locked(file)?.map(|file| Box::new(RealLock { file, _journal: journal }) as Box<dyn StoreLock>))
    }

    fn repair_permissions(&self) -> io::Result<Vec<String>> {
        let journal = self.list(JOURNAL)?.into_iter().map(|name| format!("{JOURNAL}/{name}"));
        let paths = [""].iter().chain(&STORE_FILES).map(|path| (*path).to_owned()).chain(journal);
        let mut repaired = Vec::new();
        for path in paths.map(|path| self.path(&path)) {
            if repair_mode(&path)? {
                repaired.push(path.display().to_string());
            }
        }
        Ok(repaired)
    }

    fn location(&self) -> PathBuf {
        self.root.clone()
    }
}

/// Removes access for group and others; returns whether they had any.
pub(super) fn repair_mode(path: &Path) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        metadata => metadata?,
    };
    let mode = metadata.permissions().mode();
    let is_open = mode & 0o077 != 0 && !metadata.is_symlink();
    if is_open {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
    }
    Ok(is_open)
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Locks a file or a folder for this process; `None` if another process holds the lock.
fn locked(file: File) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

struct RealLock {
    /// The file `lock`, which names the holder. Earlier versions use no other lock.
    file: File,
    /// The folder of the journal: this lock exists as long as the data, even if the file `lock` is removed.
    _journal: File,
}

impl StoreLock for RealLock {
    fn set_text(&self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all_at(text.as_bytes(), 0)
    }
}
