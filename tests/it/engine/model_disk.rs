//! A model of a disk: after a crash of the machine each unsynced sector is old or new at random.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use forms::store::sled::engine::disk::{Disk, DiskFile, StoreLock};

use super::fault_injector::FaultInjector;
use crate::harness::stored_text::contains;

const SECTOR: usize = 512;
const BLOCK: usize = 4096;

/// The disk of one machine; clones share it.
#[derive(Clone)]
pub(crate) struct ModelDisk {
    faults: FaultInjector,
    state: Arc<Mutex<DiskState>>,
}

#[derive(Default)]
struct DiskState {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    boot: u64,
    free: u64,
}

#[derive(Default, Clone)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// The versions of each sector written since the last sync, in order.
    dirty: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sectors of a failed sync: they read as new until evicted, and no later sync writes them.
    lost: Vec<usize>,
}

impl ModelDisk {
    pub(crate) fn new(faults: FaultInjector) -> ModelDisk {
        let state = DiskState { free: u64::MAX, ..DiskState::default() };
        ModelDisk { faults, state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap()
    }

    /// Sets how many bytes are free.
    pub(crate) fn set_free(&self, bytes: u64) {
        self.lock().free = bytes;
    }

    /// Whether a file has `text`.
    pub(crate) fn has_text(&self, text: &[u8]) -> bool {
        let state = self.lock();
        state.names.iter().any(|(name, file)| contains(name, &state.files[*file].current, text))
    }

    /// Crashes the process: the page cache stays, except for pages that a failed sync has dropped.
    pub(crate) fn crash_process(&self) {
        for content in &mut self.lock().files {
            for sector in std::mem::take(&mut content.lost) {
                if self.faults.once_in(2) {
                    content.evict(sector);
                } else {
                    content.lost.push(sector);
                }
            }
        }
    }

    /// Crashes the machine: any part of what was not synced may be lost.
    pub(crate) fn crash_machine(&self) {
        let mut state = self.lock();
        state.boot += 1;
        for content in &mut state.files {
            content.lose(&self.faults);
        }
        let names: Vec<String> = state.names.keys().chain(state.durable_names.keys()).cloned().collect();
        for name in names {
            let (current, durable) =
                (state.names.get(&name).copied(), state.durable_names.get(&name).copied());
            let kept = if self.faults.once_in(2) { current } else { durable };
            match kept {
                Some(file) => state.names.insert(name, file),
                None => state.names.remove(&name),
            };
        }
        state.durable_names = state.names.clone();
    }

    /// Shuts down and boots the machine: nothing is lost.
    pub(crate) fn reboot(&self) {
        self.lock().boot += 1;
    }

    fn file(&self, file: usize) -> Box<dyn DiskFile> {
        Box::new(ModelFile { disk: self.clone(), file })
    }

    /// Whether a call takes effect, and what it returns. A call that fails may have taken effect.
    fn effect(&self) -> (bool, io::Result<()>) {
        let result = self.faults.next_call();
        (result.is_ok() || self.faults.once_in(2), result)
    }
}

fn in_folder(name: &str, folder: &str) -> bool {
    name.rsplit_once('/').map_or("", |(folder, _)| folder) == folder
}

impl Disk for ModelDisk {
    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.faults.next_call()?;
        let file = self.lock().names.get(path).copied();
        file.map(|file| self.file(file)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        let (takes_effect, result) = self.effect();
        let mut state = self.lock();
        let file = state.files.len();
        if takes_effect {
            state.files.push(Content::default());
            state.names.insert(path.to_owned(), file);
        }
        drop(state);
        result.map(|()| self.file(file))
    }

    fn create_folder(&self, _path: &str) -> io::Result<()> {
        self.faults.next_call()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (takes_effect, result) = self.effect();
        let mut state = self.lock();
        if takes_effect && let Some(file) = state.names.remove(from) {
            state.names.insert(to.to_owned(), file);
        }
        result
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let (takes_effect, result) = self.effect();
        if takes_effect {
            self.lock().names.remove(path);
        }
        result
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.faults.next_call()?;
        let state = self.lock();
        let names = state.names.keys().filter(|name| in_folder(name, folder));
        Ok(names.map(|name| name.rsplit('/').next().unwrap().to_owned()).collect())
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        let (takes_effect, result) = self.effect();
        if takes_effect {
            let state = &mut *self.lock();
            state.durable_names.retain(|name, _| !in_folder(name, folder));
            let current = state.names.iter().filter(|(name, _)| in_folder(name, folder));
            state.durable_names.extend(current.map(|(name, file)| (name.clone(), *file)));
        }
        result
    }

    fn free_space(&self) -> io::Result<u64> {
        self.faults.next_call()?;
        Ok(self.lock().free)
    }

    fn boot_id(&self) -> Option<String> {
        Some(format!("boot-{}", self.lock().boot))
    }

    fn try_lock(&self) -> io::Result<Option<Box<dyn StoreLock>>> {
        Ok(Some(Box::new(ModelLock)))
    }

    fn repair_permissions(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn location(&self) -> PathBuf {
        PathBuf::from("model")
    }
}

struct ModelLock;

impl StoreLock for ModelLock {
    fn set_text(&self, _text: &str) -> io::Result<()> {
        Ok(())
    }
}

struct ModelFile {
    disk: ModelDisk,
    file: usize,
}

impl DiskFile for ModelFile {
    fn size(&self) -> io::Result<u64> {
        self.disk.faults.next_call()?;
        Ok(self.disk.lock().files[self.file].current.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.faults.next_call()?;
        let offset = offset as usize;
        let state = self.disk.lock();
        let bytes = state.files[self.file].current.get(offset..offset + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let outcome = self.disk.faults.next_call();
        let content = &mut self.disk.lock().files[self.file];
        match outcome {
            Ok(()) => {
                content.write(bytes, offset as usize);
                Ok(())
            }
            Err(error) => {
                // A torn write: only some of the first sectors were written.
                let written = self.disk.faults.below(bytes.len() + 1) / SECTOR * SECTOR;
                content.write(&bytes[..written], offset as usize);
                Err(error)
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let outcome = self.disk.faults.next_call();
        let content = &mut self.disk.lock().files[self.file];
        match outcome {
            Ok(()) => {
                content.sync();
                Ok(())
            }
            Err(error) if self.disk.faults.is_crashed() => Err(error),
            Err(error) => {
                content.fail_to_sync(&self.disk.faults);
                Err(error)
            }
        }
    }
}

impl Content {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        self.current.resize(self.current.len().max(end), 0);
        self.current[offset..end].copy_from_slice(bytes);
        for sector in offset / SECTOR..=(end - 1) / SECTOR {
            let version = sector_of(&self.current, sector).to_vec();
            self.dirty.entry(sector).or_default().push(version);
            self.lost.retain(|lost| *lost != sector);
        }
    }

    fn sync(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for (sector, _) in std::mem::take(&mut self.dirty) {
            let bytes = sector_of(&self.current, sector).to_vec();
            put_sector(&mut self.durable, sector, &bytes);
        }
    }

    fn fail_to_sync(&mut self, faults: &FaultInjector) {
        for (sector, _) in std::mem::take(&mut self.dirty) {
            if faults.once_in(2) {
                let bytes = sector_of(&self.current, sector).to_vec();
                self.durable.resize(self.durable.len().max(sector * SECTOR + bytes.len()), 0);
                put_sector(&mut self.durable, sector, &bytes);
            } else {
                self.lost.push(sector);
            }
        }
    }

    fn evict(&mut self, sector: usize) {
        let mut bytes = sector_of(&self.durable, sector).to_vec();
        bytes.resize(sector_of(&self.current, sector).len(), 0);
        put_sector(&mut self.current, sector, &bytes);
    }

    fn lose(&mut self, faults: &FaultInjector) {
        let grown = self.current.len().saturating_sub(self.durable.len()).div_ceil(BLOCK);
        let length = (self.durable.len() + faults.below(grown + 1) * BLOCK)
            .min(self.current.len().max(self.durable.len()));
        self.durable.resize(length, 0);
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            let kept = faults.below(versions.len() + 1);
            if let Some(bytes) = versions.get(kept) {
                put_sector(&mut self.durable, sector, bytes);
            }
        }
        self.lost.clear();
        self.current.clone_from(&self.durable);
    }
}

fn sector_of(bytes: &[u8], sector: usize) -> &[u8] {
    let start = (sector * SECTOR).min(bytes.len());
    &bytes[start..(start + SECTOR).min(bytes.len())]
}

/// Writes a sector, cut at the end of the file.
fn put_sector(file: &mut [u8], sector: usize, bytes: &[u8]) {
    let start = (sector * SECTOR).min(file.len());
    let end = (start + bytes.len()).min(file.len());
    file[start..end].copy_from_slice(&bytes[..end - start]);
}
