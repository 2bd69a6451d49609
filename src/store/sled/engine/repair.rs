//! Repair of the end of a journal, before any of it is applied or read.

use std::sync::Arc;

use super::discover::{JournalEnd, Segments, io_error, open};
use super::disk::{DiskFile, replace};
use super::journal::Journal;
use super::open::Env;
use super::options::{EngineEvent, OpenError};
use super::segment::{JOURNAL, path};
use super::state::StateFile;

/// Makes the end of the journal durable and clean, and opens it for appending.
///
/// After a crash the last frame may be in the page cache only, and bytes after it belong to a write that was never
/// acknowledged. After a clean stop everything is durable, except a segment whose creation did not finish.
pub(crate) fn repair(
    env: &Env,
    state: &mut StateFile,
    segments: &Segments,
    end: &JournalEnd,
    is_clean: bool,
) -> Result<Journal, OpenError> {
    let disk = &*env.disk;
    for (header, at) in &segments.damaged_headers {
        let file = open(disk, &header.path())?;
        file.write_at(&header.encode(), *at)
            .and_then(|()| file.sync())
            .map_err(io_error("repair a header"))?;
        (env.report)(EngineEvent::HeaderRepaired { file: header.path() });
    }
    let newest = open(disk, &end.header.path())?;
    if let Some(torn) = end.torn {
        save_torn_write(env, &*newest, end, torn)?;
    }
    if !is_clean || state.ordinal != end.header.ordinal {
        make_durable(env, &*newest, end)?;
    }
    if state.ordinal != end.header.ordinal {
        state.ordinal = end.header.ordinal;
        state.write(disk).map_err(io_error("write `state`"))?;
    }
    let disk = Arc::clone(&env.disk);
    let at_end = JournalEnd { torn: None, ..*end };
    let sizes = segments.headers.iter().map(|header| header.size);
    let closed_bytes = sizes.sum::<u64>() - end.header.size;
    let mut journal = Journal::resume(disk, env.options.clone(), at_end, closed_bytes, newest);
    if end.last.position.sequence > 0 && !end.last.is_seal {
        journal.seal(state, end.last.digest)?;
    }
    Ok(journal)
}

/// Saves the bytes of a torn write to a file, and overwrites them with zeros.
fn save_torn_write(env: &Env, newest: &dyn DiskFile, end: &JournalEnd, torn: u64) -> Result<(), OpenError> {
    let mut bytes = vec![0; usize::try_from(torn - end.at).unwrap_or(0)];
    newest.read_at(&mut bytes, end.at).map_err(io_error("read the journal"))?;
    let file = format!("{JOURNAL}/aside-{}", end.last.position.sequence + 1);
    replace(&*env.disk, &file, &bytes)
        .and_then(|()| env.disk.sync_folder(JOURNAL))
        .map_err(io_error("set an unfinished write aside"))?;
    (env.report)(EngineEvent::TornWriteSaved { file, bytes: bytes.len() as u64 });
    bytes.fill(0);
    newest.write_at(&bytes, end.at).map_err(io_error("write to the journal"))
}

fn make_durable(env: &Env, newest: &dyn DiskFile, end: &JournalEnd) -> Result<(), OpenError> {
    rewrite_last_frame(env, newest, end)?;
    newest.sync().map_err(io_error("sync the journal"))?;
    for folder in [JOURNAL, ""] {
        env.disk.sync_folder(folder).map_err(io_error("sync the folder of the journal"))?;
    }
    Ok(())
}

/// Rewrites the last valid frame in place, so that the next sync covers it.
fn rewrite_last_frame(env: &Env, newest: &dyn DiskFile, end: &JournalEnd) -> Result<(), OpenError> {
    if end.last.position.sequence == 0 {
        return Ok(());
    }
    let last = end.last;
    let mut bytes = vec![0; last.length];
    let mut again = |file: &dyn DiskFile| {
        file.read_at(&mut bytes, last.position.offset)?;
        file.write_at(&bytes, last.position.offset)
    };
    let failed = io_error("write to the journal");
    if last.position.ordinal == end.header.ordinal {
        return again(newest).map_err(failed);
    }
    let earlier = open(&*env.disk, &path(last.position.ordinal))?;
    again(&*earlier).and_then(|()| earlier.sync()).map_err(failed)
}
