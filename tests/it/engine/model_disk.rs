//! A disk that forgets: what was not synced survives the death of the machine by chance, sector by sector.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use forms::store::sled::engine::disk::{Disk, DiskFile, StoreLock};

use super::fate::{Fate, Lot};

const SECTOR: usize = 512;
const BLOCK: usize = 4096;

/// The disk of one world; clones are the same disk.
#[derive(Clone)]
pub(crate) struct ModelDisk {
    fate: Fate,
    platter: Arc<Mutex<Platter>>,
}

#[derive(Default)]
struct Platter {
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
    /// What was written to a sector since it was durable, in order.
    dirty: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sectors of a failed sync: they read as new until they are evicted, and are never written by themselves.
    lost: Vec<usize>,
}

impl ModelDisk {
    pub(crate) fn new(fate: Fate) -> ModelDisk {
        let platter = Platter { free: u64::MAX, ..Platter::default() };
        ModelDisk { fate, platter: Arc::new(Mutex::new(platter)) }
    }

    fn lock(&self) -> MutexGuard<'_, Platter> {
        self.platter.lock().unwrap()
    }

    /// Sets how many bytes are free.
    pub(crate) fn set_free(&self, bytes: u64) {
        self.lock().free = bytes;
    }

    /// The process is dead: the memory of the machine stays, but for pages a failed sync has given up.
    pub(crate) fn lose_process(&self) {
        for content in &mut self.lock().files {
            for sector in std::mem::take(&mut content.lost) {
                if self.fate.once_in(2) {
                    content.evict(sector);
                } else {
                    content.lost.push(sector);
                }
            }
        }
    }

    /// The machine is dead: of what was not synced, any part may be there.
    pub(crate) fn lose_machine(&self) {
        let mut platter = self.lock();
        platter.boot += 1;
        for content in &mut platter.files {
            content.lose(&self.fate);
        }
        let names: Vec<String> = platter.names.keys().chain(platter.durable_names.keys()).cloned().collect();
        for name in names {
            let (current, durable) =
                (platter.names.get(&name).copied(), platter.durable_names.get(&name).copied());
            let kept = if self.fate.once_in(2) { current } else { durable };
            match kept {
                Some(file) => platter.names.insert(name, file),
                None => platter.names.remove(&name),
            };
        }
        platter.durable_names = platter.names.clone();
    }

    /// The machine was shut down in order: everything is there, but it is another boot.
    pub(crate) fn reboot(&self) {
        self.lock().boot += 1;
    }

    fn file(&self, file: usize) -> Box<dyn DiskFile> {
        Box::new(ModelFile { disk: self.clone(), file })
    }

    fn works(&self) -> io::Result<()> {
        match self.fate.draw() {
            Lot::Works => Ok(()),
            Lot::Fails(error) => Err(error),
        }
    }

    /// Whether a call has its effect, and what it returns. One that fails may have had its effect all the same.
    fn effect(&self) -> (bool, io::Result<()>) {
        match self.fate.draw() {
            Lot::Works => (true, Ok(())),
            Lot::Fails(error) => (self.fate.once_in(2), Err(error)),
        }
    }
}

fn in_folder(name: &str, folder: &str) -> bool {
    name.rsplit_once('/').map_or("", |(folder, _)| folder) == folder
}

impl Disk for ModelDisk {
    fn open(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        self.works()?;
        let file = self.lock().names.get(path).copied();
        file.map(|file| self.file(file)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn DiskFile>> {
        let (happens, result) = self.effect();
        let mut platter = self.lock();
        let file = platter.files.len();
        if happens {
            platter.files.push(Content::default());
            platter.names.insert(path.to_owned(), file);
        }
        drop(platter);
        result.map(|()| self.file(file))
    }

    fn create_folder(&self, _path: &str) -> io::Result<()> {
        self.works()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (happens, result) = self.effect();
        let mut platter = self.lock();
        if happens && let Some(file) = platter.names.remove(from) {
            platter.names.insert(to.to_owned(), file);
        }
        result
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let (happens, result) = self.effect();
        if happens {
            self.lock().names.remove(path);
        }
        result
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.works()?;
        let platter = self.lock();
        let names = platter.names.keys().filter(|name| in_folder(name, folder));
        Ok(names.map(|name| name.rsplit('/').next().unwrap().to_owned()).collect())
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        let (happens, result) = self.effect();
        if happens {
            let platter = &mut *self.lock();
            platter.durable_names.retain(|name, _| !in_folder(name, folder));
            let current = platter.names.iter().filter(|(name, _)| in_folder(name, folder));
            platter.durable_names.extend(current.map(|(name, file)| (name.clone(), *file)));
        }
        result
    }

    fn free_space(&self) -> io::Result<u64> {
        self.works()?;
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
        self.disk.works()?;
        Ok(self.disk.lock().files[self.file].current.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.works()?;
        let offset = offset as usize;
        let platter = self.disk.lock();
        let bytes = platter.files[self.file].current.get(offset..offset + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let lot = self.disk.fate.draw();
        let content = &mut self.disk.lock().files[self.file];
        match lot {
            Lot::Works => {
                content.write(bytes, offset as usize);
                Ok(())
            }
            Lot::Fails(error) => {
                // Some first sectors have been written.
                let written = self.disk.fate.below(bytes.len() + 1) / SECTOR * SECTOR;
                content.write(&bytes[..written], offset as usize);
                Err(error)
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let lot = self.disk.fate.draw();
        let content = &mut self.disk.lock().files[self.file];
        match lot {
            Lot::Works => {
                content.sync();
                Ok(())
            }
            Lot::Fails(error) if self.disk.fate.is_dead() => Err(error),
            Lot::Fails(error) => {
                content.fail_to_sync(&self.disk.fate);
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

    fn fail_to_sync(&mut self, fate: &Fate) {
        for (sector, _) in std::mem::take(&mut self.dirty) {
            if fate.once_in(2) {
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

    fn lose(&mut self, fate: &Fate) {
        let grown = self.current.len().saturating_sub(self.durable.len()).div_ceil(BLOCK);
        let length = (self.durable.len() + fate.below(grown + 1) * BLOCK)
            .min(self.current.len().max(self.durable.len()));
        self.durable.resize(length, 0);
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            let kept = fate.below(versions.len() + 1);
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

/// Writes as much of a sector as the file is long.
fn put_sector(file: &mut [u8], sector: usize, bytes: &[u8]) {
    let start = (sector * SECTOR).min(file.len());
    let end = (start + bytes.len()).min(file.len());
    file[start..end].copy_from_slice(&bytes[..end - start]);
}
