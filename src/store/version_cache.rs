//! Compiled versions of forms. A version never changes, so a cached one is never stale.

use std::collections::HashSet;
use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tokio::time::timeout;

use super::{Result, Store, StoreError};
use crate::cpu_pool::CpuPool;
use crate::domain::form::{StoredVersion, Version};
use crate::domain::integration::FieldSelection;
use crate::domain::integration::row::column_questions;
use crate::domain::submission::filter::Order;
use crate::id::{FormId, FormRef};

/// Initial size of a cache, in versions.
const EXPECTED_VERSIONS: usize = 1_000;

/// Versions listed at once.
const PAGE: usize = 1_000;

/// Bytes of memory for each byte of the questions' JSON: 14 were measured where options are short.
const MEMORY_PER_TEXT_BYTE: usize = 16;

type Key = (FormId, u32);

/// Versions by form and number: bounded by weight, each compiled once however many requests wait for it.
pub struct VersionCache {
    store: Arc<dyn Store>,
    pool: CpuPool,
    versions: Cache<Key, Compiled, ByBytes>,
}

/// A version and the approximate bytes of memory it takes.
type Compiled = (Arc<Version>, usize);

#[derive(Clone)]
struct ByBytes;

impl Weighter<Key, Compiled> for ByBytes {
    fn weight(&self, _: &Key, (_, bytes): &Compiled) -> u64 {
        *bytes as u64
    }
}

impl VersionCache {
    /// Creates a cache of versions of `store` that takes about `capacity` bytes of memory. They are compiled on `pool`.
    pub fn new(store: Arc<dyn Store>, pool: CpuPool, capacity: u64) -> Self {
        Self { store, pool, versions: new_cache(capacity) }
    }

    /// Returns a version of a form outside the trash, compiled.
    pub async fn find(&self, form: FormRef, number: u32) -> Result<Option<Arc<Version>>> {
        let key = (form.id, number);
        // The error `None` stands for a missing version.
        let compiled = self.versions.get_or_insert_async(&key, async {
            let stored = self.store.find_version(form, number).await.map_err(Some)?.ok_or(None)?;
            let compiled = self.pool.run(move || compile(&stored)).await;
            compiled.map_err(|error| Some(error.into()))?.map_err(Some)
        });
        // If the pool refuses the compiling request, the next waiting one tries: the limit is for all of these attempts.
        match timeout(self.pool.limits.max_wait, compiled).await {
            Ok(Ok((version, _))) => Ok(Some(version)),
            Ok(Err(None)) => Ok(None),
            Ok(Err(Some(error))) => Err(error),
            Err(_elapsed) => Err(StoreError::Overloaded),
        }
    }

    /// Returns the ids of the questions of all versions of a form outside the trash that have columns: those of the first version
    /// in `order`, then those that each further one adds.
    pub async fn columns(
        &self,
        form: FormRef,
        order: Order,
        selection: Option<&FieldSelection>,
    ) -> Result<Vec<String>> {
        let (mut numbers, mut before) = (Vec::new(), None);
        while let Some(page) = self.store.list_versions(form, before, PAGE).await? {
            numbers.extend(page.rows.iter().map(|version| version.number));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        if order == Order::OldestFirst {
            numbers.reverse();
        }
        let (mut columns, mut known) = (Vec::new(), HashSet::new());
        for number in numbers {
            let Some(version) = self.find(form, number).await? else { continue };
            let added =
                column_questions(&version, selection).filter(|(id, _)| known.insert((*id).to_owned()));
            columns.extend(added.map(|(id, _)| id.to_owned()));
        }
        Ok(columns)
    }
}

fn new_cache(capacity: u64) -> Cache<Key, Compiled, ByBytes> {
    let mut options = OptionsBuilder::new();
    // One shard: shards divide the capacity, and a large version must fit whatever the number of processors.
    options.estimated_items_capacity(EXPECTED_VERSIONS).weight_capacity(capacity).shards(1);
    let options = options.build().expect("both capacities are set");
    Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

fn compile(stored: &StoredVersion) -> Result<Compiled> {
    let undecodable = || StoreError::Undecodable(format!("the questions of version {}", stored.number));
    let version = stored.read().ok_or_else(undecodable)?;
    let bytes = stored.questions.get().len() * MEMORY_PER_TEXT_BYTE + version.pattern_bytes;
    Ok((Arc::new(version), bytes))
}
