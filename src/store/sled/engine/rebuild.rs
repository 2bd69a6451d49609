//! Rebuild of the index from the journal, beside the old one.

use std::io;
use std::sync::Arc;

use super::applied_frame::AppliedFrame;
use super::discover::{self, Segments, io_error};
use super::erasures;
use super::index::Index;
use super::journal::LastFrame;
use super::open::Env;
use super::options::{EngineEvent, OpenError};
use super::replay::{apply, frames_after, replay};
use super::verify;
use crate::store::StoreHealth;

/// Folder of the serving index.
pub(crate) const INDEX: &str = "index";
/// Folder of the index under construction.
pub(crate) const NEW: &str = "index.new";
/// Folder of the replaced index.
pub(crate) const OLD: &str = "index.old";

/// Rebuilds the index from all frames, and replaces the old one.
pub(crate) fn rebuild(
    env: &Env,
    why: &str,
    last: LastFrame,
) -> Result<(Arc<dyn Index>, AppliedFrame), OpenError> {
    let segments = discover::find_segments(&*env.disk)?;
    let end = last.position.sequence;
    remove_unused(env).map_err(io_error("remove an old index"))?;
    if end == 0 {
        env.indexes.remove(INDEX).map_err(io_error("remove an old index"))?;
        return Ok((env.indexes.open(INDEX)?, AppliedFrame::default()));
    }
    make_space(env, &segments, end)?;
    (env.report)(EngineEvent::Rebuilding { why: why.to_owned() });
    let built = build(env, &segments, end).and_then(|applied| swap(env).map(|()| applied));
    if built.is_err() {
        // The unfinished index takes space; if it cannot be removed now, the next attempt removes it.
        drop(env.indexes.remove(NEW));
    }
    let applied = built?;
    remove_unused(env).map_err(io_error("remove an old index"))?;
    (env.report)(EngineEvent::Rebuilt);
    Ok((env.indexes.open(INDEX)?, applied))
}

fn build(env: &Env, segments: &Segments, end: u64) -> Result<AppliedFrame, OpenError> {
    let index = env.indexes.open(NEW)?;
    let base_size = segments.base.map_or(0, |base| base.size);
    let total = base_size + segments.headers.iter().map(|header| header.size).sum::<u64>();
    let mut done = 0;
    let mut progress = |bytes| {
        done += bytes;
        (env.report)(EngineEvent::Progress { done, total });
        env.reader.set_health(StoreHealth::Rebuilding { done, total });
    };
    if let Some(base) = segments.base {
        base.blocks(&*env.disk, |mut rows, bytes| {
            index.apply(&mut rows)?;
            progress(bytes);
            Ok(())
        })?;
        apply(&*index, &[], AppliedFrame { sequence: base.sequence, digest: base.digest })?;
    }
    let applied = replay(&*env.disk, &segments.headers, end, segments.before(), &*index, progress)?;
    let applied = compare(env, &*index, applied)?;
    erasures::put_built(&*index, segments.base.map_or(0, |base| base.erasures))?;
    env.indexes.close(NEW, index)?;
    Ok(applied)
}

/// Size of an empty index in bytes, with a margin.
const SPARE: u64 = 4 << 20;

/// Removes the old index if there is no space for two, but only after the journal has been read without error, and
/// only if the space then suffices for the new one.
fn make_space(env: &Env, segments: &Segments, end: u64) -> Result<(), OpenError> {
    let old = env.indexes.size(INDEX);
    let free = env.disk.free_space().map_err(io_error("look at the free space"))?;
    if old == 0 || free >= old.saturating_mul(2) {
        return Ok(());
    }
    if free < old / 2 + SPARE {
        return Err(OpenError::NoSpace);
    }
    if let Some(base) = segments.base {
        base.blocks(&*env.disk, |_, _| Ok(()))?;
    }
    frames_after(&*env.disk, &segments.headers, end, segments.before(), |_, _| Ok(()))?;
    env.indexes.remove(INDEX).map_err(io_error("remove an old index"))
}

/// Compares the digest of the rebuilt index with the journal's. All frames are valid, so the rebuilt index is right.
fn compare(env: &Env, index: &dyn Index, applied: AppliedFrame) -> Result<AppliedFrame, OpenError> {
    let digest = verify::sum(index)?;
    if digest == applied.digest {
        return Ok(applied);
    }
    (env.report)(EngineEvent::DigestMismatch { sequence: applied.sequence });
    let applied = AppliedFrame { digest, ..applied };
    apply(index, &[], applied)?;
    Ok(applied)
}

/// Puts the new index in the place of the old one, which is renamed. Both must be closed.
pub(crate) fn swap(env: &Env) -> Result<(), OpenError> {
    let failed = io_error("put the new index in place");
    match env.indexes.size(INDEX) {
        0 => env.indexes.remove(INDEX).map_err(&failed)?,
        _ => env.indexes.rename(INDEX, OLD).map_err(&failed)?,
    }
    env.indexes.rename(NEW, INDEX).map_err(&failed)
}

/// Removes indexes that do not serve: unfinished and replaced ones.
pub(crate) fn remove_unused(env: &Env) -> io::Result<()> {
    [NEW, OLD].iter().try_for_each(|folder| env.indexes.remove(folder))
}
