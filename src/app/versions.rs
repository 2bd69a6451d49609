//! Compiled versions of forms. A version never changes, so a cached one is never stale.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tokio::time::timeout;

use super::{App, AppError, no_form};
use crate::domain::form::{Form, StoredVersion, Version};
use crate::id::{FormId, WorkspaceId};
use crate::store::StoreError;

/// Approximate bytes of memory for cached versions.
const CAPACITY: u64 = 64 << 20;

/// Initial size of the cache, in versions.
const EXPECTED_VERSIONS: usize = 1_000;

/// Bytes of memory for each byte of the questions' JSON: 14 were measured where options are short.
const MEMORY_PER_TEXT_BYTE: usize = 16;

type Key = (FormId, u32);

/// Compiled versions by form and number: bounded by weight, each compiled once however many requests wait for it.
pub(super) type VersionCache = Cache<Key, Compiled, ByBytes>;

/// A version and the approximate bytes of memory it takes.
#[derive(Clone)]
pub(super) struct Compiled {
    version: Arc<Version>,
    bytes: usize,
}

#[derive(Clone)]
pub(super) struct ByBytes;

impl Weighter<Key, Compiled> for ByBytes {
    fn weight(&self, _: &Key, compiled: &Compiled) -> u64 {
        compiled.bytes as u64
    }
}

pub(super) fn new_cache() -> VersionCache {
    let mut options = OptionsBuilder::new();
    // One shard: shards divide the capacity, and a large version must fit whatever the number of processors.
    options.estimated_items_capacity(EXPECTED_VERSIONS).weight_capacity(CAPACITY).shards(1);
    let options = options.build().expect("both capacities are set");
    Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

impl App {
    /// Returns the current version of `form`, compiled.
    pub(super) async fn current_version(&self, form: &Form) -> Result<Arc<Version>, AppError> {
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
        let compiled = self.versions.get_or_insert_async(&key, async {
            let stored = self.store.find_version(workspace, form, number).await?;
            let stored = stored.ok_or_else(|| no_form(&form.to_string()))?;
            self.pool.run(move || compile(&stored)).await?
        });
        // If the pool refuses the compiling request, the next waiting one tries: the limit is for all of these attempts.
        let compiled = timeout(self.pool.limits().max_wait, compiled).await;
        Ok(compiled.map_err(|_elapsed| AppError::Overloaded)??.version)
    }
}

fn compile(stored: &StoredVersion) -> Result<Compiled, AppError> {
    let undecodable = || StoreError::Undecodable(format!("the questions of version {}", stored.number));
    let version = stored.read().ok_or_else(undecodable)?;
    let bytes = stored.questions.get().len() * MEMORY_PER_TEXT_BYTE + version.pattern_bytes;
    Ok(Compiled { version: Arc::new(version), bytes })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CAPACITY, Compiled, new_cache};
    use crate::clock::Timestamp;
    use crate::domain::form::Version;
    use crate::id::FormId;

    #[test]
    fn a_version_that_takes_most_of_the_capacity_is_kept() {
        let (cache, key) = (new_cache(), (FormId::from_bytes([7; 8]), 1));
        let version = Arc::new(Version::new(1, Timestamp::from_millis(0), Vec::new()));
        cache.insert(key, Compiled { version, bytes: CAPACITY as usize / 4 * 3 });
        assert!(cache.get(&key).is_some());
    }
}
