//! Copying one store into another: by comparing them, record by record, and writing what differs.
//!
//! So a copy that was interrupted goes on where it was, one that is repeated writes what has changed meanwhile, and one that
//! finds no difference is the proof that both are equal.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::record::{KeyedRecord, Record, RecordKind};
use super::{Result, Store, StoreError};
use crate::id::FormId;

/// Records that are deleted in one step.
const GONE: usize = 500;

/// The result of a pass over the records of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CopiedKind {
    pub kind: RecordKind,
    /// Records of the source.
    pub count: u64,
    /// Checksum of them, with their keys, whatever the stores.
    pub checksum: u64,
    /// Records that were written.
    pub written: u64,
    /// Records of the target that the source does not have.
    pub deleted: u64,
}

/// Makes `to` hold what `from` does. `progress` is called with numbers of records that were compared. Returns what each kind
/// has; if nothing was written or deleted, both were equal.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    mut progress: impl FnMut(u64) + Send,
) -> Result<Vec<CopiedKind>> {
    let mut kinds = Vec::new();
    let mut forms = BTreeSet::new();
    for kind in RecordKind::ALL {
        let mut copied = CopiedKind { kind, count: 0, checksum: 0, written: 0, deleted: 0 };
        let mut after = Vec::new();
        loop {
            let source = from.read_records(kind, &after, None).await?;
            let until = source.last().map(|last| last.key.clone());
            progress(source.len() as u64);
            copy_range(to, &mut copied, &after, until.as_deref(), source, &mut forms).await?;
            let Some(until) = until else { break };
            after = until;
        }
        kinds.push(copied);
    }
    for form in forms {
        to.recount(form).await?;
    }
    Ok(kinds)
}

/// Whether `to` is empty, or a copy of `from`, as it may have been earlier: their signing keys show that.
pub async fn is_copy_of(from: &dyn Store, to: &dyn Store) -> Result<bool> {
    let settings =
        async |store: &dyn Store| match store.read_records(RecordKind::Settings, &[], None).await?.pop() {
            Some(one) => checksum(&one).map(Some),
            None => Ok(None),
        };
    let (source, target) = (settings(from).await?, settings(to).await?);
    Ok(target.is_none() || target == source)
}

/// Makes the range of `to` after `after`, up to `until`, or to the end, hold the records of `source`.
async fn copy_range(
    to: &dyn Store,
    copied: &mut CopiedKind,
    after: &[u8],
    until: Option<&[u8]>,
    source: Vec<KeyedRecord>,
    forms: &mut BTreeSet<FormId>,
) -> Result<()> {
    let mut present = BTreeMap::new();
    let mut position = after.to_vec();
    loop {
        let found = to.read_records(copied.kind, &position, until).await?;
        let Some(last) = found.last() else { break };
        position.clone_from(&last.key);
        for one in found {
            present.insert(one.key.clone(), checksum(&one)?);
        }
    }
    let mut changed = Vec::new();
    for one in source {
        let sum = checksum(&one)?;
        copied.count += 1;
        copied.checksum ^= sum;
        if present.remove(&one.key) != Some(sum) {
            forms.extend(match &one.record {
                Record::Form(of) => Some(of.form.id),
                Record::Submission { submission, .. } => Some(submission.form),
                _ => None,
            });
            changed.push(one);
        }
    }
    let gone: Vec<_> = present.into_keys().collect();
    if matches!(copied.kind, RecordKind::Submissions) {
        let form = |key: &Vec<u8>| key.first_chunk().map(|form| FormId::from_bytes(*form));
        forms.extend(gone.iter().filter_map(form));
    }
    copied.written += changed.len() as u64;
    copied.deleted += gone.len() as u64;
    if changed.is_empty() && gone.is_empty() {
        return Ok(());
    }
    for some in gone.chunks(GONE) {
        to.write_records(copied.kind, Vec::new(), some.to_vec()).await?;
    }
    to.write_records(copied.kind, changed, Vec::new()).await
}

fn checksum(one: &KeyedRecord) -> Result<u64> {
    let failed = |error: serde_json::Error| StoreError::Io(error.into());
    let text = serde_json::to_vec(&(&one.key, &one.record)).map_err(failed)?;
    Ok(xxh3_64(&text))
}
