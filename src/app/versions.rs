//! Compiled versions of forms. A version never changes, so what is cached is never stale.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tokio::time::timeout;

use super::{App, AppError, no_form};
use crate::domain::form::{Form, StoredVersion, Version};
use crate::id::{FormId, WorkspaceId};
use crate::store::StoreError;

/// Bytes of memory that cached versions may take, about.
const CAPACITY: u64 = 64 << 20;

/// Versions expected; the cache grows past it.
const EXPECTED_VERSIONS: usize = 1_000;

/// Bytes that questions take in memory for each byte of their text: 14 were measured where options are short.
const MEMORY_PER_TEXT_BYTE: usize = 16;

type Key = (FormId, u32);

/// Compiled versions by form and number: bounded by weight, each compiled once however many requests wait for it.
pub(super) struct VersionCache(Cache<Key, Compiled, Weight>);

#[derive(Clone)]
struct Compiled {
    version: Arc<Version>,
    bytes: usize,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Compiled> for Weight {
    fn weight(&self, _: &Key, compiled: &Compiled) -> u64 {
        compiled.bytes as u64
    }
}

impl Default for VersionCache {
    fn default() -> Self {
        let mut options = OptionsBuilder::new();
        // One shard: each has its part of the capacity, and a large version must fit whatever the number of processors.
        options.estimated_items_capacity(EXPECTED_VERSIONS).weight_capacity(CAPACITY).shards(1);
        let options = options.build().expect("the capacities are given");
        Self(Cache::with_options(options, Weight, DefaultHashBuilder::default(), DefaultLifecycle::default()))
    }
}

impl App {
    /// Returns the present version of `form`, compiled.
    pub(super) async fn present_version(&self, form: &Form) -> Result<Arc<Version>, AppError> {
        self.version(form.workspace, form.id, form.version).await
    }

    /// Returns a version of a form outside the trash, compiled.
    pub(super) async fn version(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        number: u32,
    ) -> Result<Arc<Version>, AppError> {
        let key = (form, number);
        let compiled = self.versions.0.get_or_insert_async(&key, async {
            let found = self.store.find_version(workspace, form, number).await?;
            let written = found.ok_or_else(|| no_form(&form.to_string()))?;
            self.pool.run(move || compile(&written)).await?
        });
        // Where one who compiles is refused, the next who waits tries: in all they wait no longer than one job may.
        let compiled = timeout(self.pool.limits().max_wait, compiled).await;
        Ok(compiled.map_err(|_elapsed| AppError::Overloaded)??.version)
    }

    /// Caches a version that was just stored, and so need not be compiled again.
    pub(super) fn cache_version(&self, form: FormId, version: Arc<Version>, text_bytes: usize) {
        self.versions.0.insert((form, version.number), Compiled::new(version, text_bytes));
    }
}

impl Compiled {
    fn new(version: Arc<Version>, text_bytes: usize) -> Self {
        let bytes = text_bytes * MEMORY_PER_TEXT_BYTE + version.pattern_bytes();
        Self { version, bytes }
    }
}

fn compile(written: &StoredVersion) -> Result<Compiled, AppError> {
    let unreadable = || StoreError::Undecodable(format!("the questions of version {}", written.number));
    let version = written.read().ok_or_else(unreadable)?;
    Ok(Compiled::new(Arc::new(version), written.questions.get().len()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CAPACITY, Compiled, VersionCache};
    use crate::clock::Timestamp;
    use crate::domain::form::Version;
    use crate::id::FormId;

    #[test]
    fn a_version_that_takes_most_of_the_capacity_is_kept() {
        let (cache, key) = (VersionCache::default(), (FormId::from_bytes([7; 8]), 1));
        let version = Arc::new(Version::new(1, Timestamp::from_millis(0), Vec::new()));
        cache.0.insert(key, Compiled { version, bytes: CAPACITY as usize / 4 * 3 });
        assert!(cache.0.get(&key).is_some());
    }
}
