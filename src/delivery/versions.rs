//! Versions of forms, compiled to render submissions. A version never changes, so a cached one is never stale.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::DeliveryService;
use crate::domain::form::{StoredVersion, Version};
use crate::id::{FormId, WorkspaceId};
use crate::store::{Result, StoreError};

/// Approximate bytes of memory for cached versions.
const CAPACITY: u64 = 16 << 20;

/// Initial size of the cache, in versions.
const EXPECTED_VERSIONS: usize = 250;

/// Bytes of memory for each byte of the questions' JSON: 14 were measured where options are short.
const MEMORY_PER_TEXT_BYTE: usize = 16;

pub(super) type VersionCache = Cache<(FormId, u32), Compiled, ByBytes>;

#[derive(Clone)]
pub(super) struct Compiled {
    version: Arc<Version>,
    bytes: usize,
}

#[derive(Clone)]
pub(super) struct ByBytes;

impl Weighter<(FormId, u32), Compiled> for ByBytes {
    fn weight(&self, _: &(FormId, u32), compiled: &Compiled) -> u64 {
        compiled.bytes as u64
    }
}

pub(super) fn new_cache() -> VersionCache {
    Cache::with_weighter(EXPECTED_VERSIONS, CAPACITY, ByBytes)
}

impl DeliveryService {
    /// Returns a version of a form; `None` if the form is in the trash or erased.
    pub(super) async fn version(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        number: u32,
    ) -> Result<Option<Arc<Version>>> {
        if let Some(compiled) = self.versions.get(&(form, number)) {
            return Ok(Some(compiled.version));
        }
        let Some(stored) = self.store.find_version(workspace, form, number).await? else { return Ok(None) };
        let compiling = tokio::task::spawn_blocking(move || compile(&stored)).await;
        let compiled = compiling.map_err(|panicked| StoreError::Panicked(panicked.to_string()))??;
        self.versions.insert((form, number), compiled.clone());
        Ok(Some(compiled.version))
    }
}

fn compile(stored: &StoredVersion) -> Result<Compiled> {
    let undecodable = || StoreError::Undecodable(format!("the questions of version {}", stored.number));
    let version = stored.read().ok_or_else(undecodable)?;
    let bytes = stored.questions.get().len() * MEMORY_PER_TEXT_BYTE + version.pattern_bytes;
    Ok(Compiled { version: Arc::new(version), bytes })
}
