//! Opening a store: finds the end of the journal, decides whether the index can be trusted, repairs, and replays or
//! rebuilds.

use std::sync::Arc;

use super::applied_frame::AppliedFrame;
use super::base::Base;
use super::compaction;
use super::discover::{self, JournalEnd, Segments, clean_end, damage, find_end, io_error};
use super::disk::{Disk, StoreLock};
use super::erasures;
use super::group::Group;
use super::index::{Index, IndexError, IndexProvider};
use super::journal::Journal;
use super::lock;
use super::options::{EngineEvent, EngineOptions, EventSink, OpenError};
use super::reader::Reader;
use super::rebuild::{self, INDEX};
use super::repair;
use super::replay::{apply, digest_after, replay};
use super::segment::JOURNAL;
use super::state::{StateFile, Trust};
use super::tx::Tx;
use crate::store::{Result, StoreError};

/// Parts of an open store.
pub(crate) struct OpenedStore {
    pub(crate) lock: Box<dyn StoreLock>,
    pub(crate) state: StateFile,
    pub(crate) journal: Journal,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) applied: AppliedFrame,
    pub(crate) base: Option<Base>,
}

pub(crate) struct Env {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) indexes: Arc<dyn IndexProvider>,
    pub(crate) options: EngineOptions,
    pub(crate) report: EventSink,
    /// Shows the progress of a rebuild.
    pub(crate) reader: Reader,
}

pub(crate) fn open(env: &Env) -> Result<OpenedStore, OpenError> {
    let lock = lock::acquire(&*env.disk, env.options.lock_wait)?;
    // Read before anything is changed: a store of a newer version is left as it is.
    let state = StateFile::read(&*env.disk)?;
    for path in env.disk.repair_permissions().map_err(io_error("repair the modes of files"))? {
        (env.report)(EngineEvent::PermissionsRepaired { path });
    }
    let (mut state, segments) = find_journal(env, state)?;
    let (end, is_clean) = find_journal_end(env, &state, &segments)?;
    let trusted = state.trust.clone();
    let opened = trust_index(env, &mut state, &segments, &end, is_clean).and_then(|decision| {
        let mut journal = repair::repair(env, &mut state, &segments, &end, is_clean)?;
        let (index, applied) = recover_index(env, decision, &mut journal, &mut state)?;
        Ok((journal, index, applied))
    });
    let (journal, index, applied) =
        opened.inspect_err(|error| restore_trust(env, &mut state, &trusted, error))?;
    remove_leftovers(env)?;
    Ok(OpenedStore { lock, state, journal, index, applied, base: segments.base })
}

/// Reopens the index of an open store, after the disk was full or the index was replaced. Rebuilds it if there is a reason not
/// to trust it.
pub(crate) fn reopen(
    env: &Env,
    state: &mut StateFile,
    journal: &mut Journal,
    rebuild_reason: Option<&str>,
) -> Result<(Arc<dyn Index>, AppliedFrame), OpenError> {
    let trusted = state.trust.clone();
    let decision = match rebuild_reason {
        Some(why) => Ok(TrustDecision::Untrusted(why.to_owned())),
        None => {
            let segments = discover::find_segments(&*env.disk)?;
            trust_index(env, state, &segments, &journal.end(), false)
        }
    };
    decision
        .and_then(|decision| recover_index(env, decision, journal, state))
        .inspect_err(|error| restore_trust(env, state, &trusted, error))
}

/// Restores the trust in an index that could not be opened for an external reason. sled may have written to it, so it
/// is trusted only until the machine reboots.
fn restore_trust(env: &Env, state: &mut StateFile, trusted: &Trust, error: &OpenError) {
    if matches!(error, OpenError::NoSpace | OpenError::Locked { .. }) && state.trust != *trusted {
        // If this fails, the next start only trusts less than it could.
        drop(trust_until_reboot(env, state));
    }
}

/// Replays missing frames into a trusted index, and rebuilds an untrusted one.
fn recover_index(
    env: &Env,
    mut decision: TrustDecision,
    journal: &mut Journal,
    state: &mut StateFile,
) -> Result<(Arc<dyn Index>, AppliedFrame), OpenError> {
    if let TrustDecision::Trusted(index, applied) = decision {
        decision = catch_up(env, index, applied, journal)?;
    }
    let (index, applied) = match decision {
        TrustDecision::Trusted(index, applied) => (index, applied),
        TrustDecision::Untrusted(why) => rebuild::rebuild(env, &why, journal.last())?,
    };
    let applied = correct_digest(env, journal, state, &*index, applied)?;
    trust_until_reboot(env, state)?;
    Ok((index, applied))
}

/// Finds the journal and checks it against `state`, or creates an empty one.
fn find_journal(env: &Env, state: Option<StateFile>) -> Result<(StateFile, Segments), OpenError> {
    let disk = &*env.disk;
    let segments = discover::find_segments(disk)?;
    let newest = segments.headers.last().copied();
    match (state, newest) {
        (None, None) if env.indexes.size(INDEX) > 0 => {
            Err(damage("journal", 0, "there is an index, but no journal", 0, None))
        }
        (None, None) => create(env),
        (Some(state), None) => Err(discover::missing(state.ordinal, 0, None)),
        (Some(state), Some(newest)) if newest.ordinal < state.ordinal => {
            Err(discover::missing(newest.ordinal + 1, newest.first - 1, None))
        }
        (Some(state), Some(newest)) if newest.instance != state.instance => {
            Err(damage("state", 0, "it belongs to another store than the journal", 0, None))
        }
        (Some(state), Some(_)) => Ok((state, segments)),
        (None, Some(newest)) => Ok((StateFile::new(newest.instance), segments)),
    }
}

fn create(env: &Env) -> Result<(StateFile, Segments), OpenError> {
    let mut state = StateFile::new(env.options.instance);
    Journal::create(&*env.disk, &env.options, &mut state, 1)?;
    Ok((state, discover::find_segments(&*env.disk)?))
}

/// Finds the end of the journal. True if the store was closed cleanly there.
fn find_journal_end(
    env: &Env,
    state: &StateFile,
    segments: &Segments,
) -> Result<(JournalEnd, bool), OpenError> {
    let closed_at = if let Trust::Clean { end, .. } = state.trust { Some(end) } else { None };
    if let Some(at) = closed_at
        && let Some(end) = clean_end(&*env.disk, &segments.headers, at)?
    {
        return Ok((end, true));
    }
    let end = find_end(&*env.disk, segments)?;
    let last = end.last.position;
    if last.sequence < state.floor.sequence {
        let message =
            format!("the journal ends with change {}, it once held {}", last.sequence, state.floor.sequence);
        return Err(damage(&end.header.path(), end.at, &message, last.sequence, None));
    }
    Ok((end, closed_at == Some(last)))
}

enum TrustDecision {
    Trusted(Arc<dyn Index>, AppliedFrame),
    Untrusted(String),
}

/// Opens the index, if it can be trusted.
fn trust_index(
    env: &Env,
    state: &mut StateFile,
    segments: &Segments,
    end: &JournalEnd,
    is_clean: bool,
) -> Result<TrustDecision, OpenError> {
    if let Err(why) = check_trust(env, state, is_clean) {
        return refuse_untrusted_if_ahead(env, end).map(|()| TrustDecision::Untrusted(why));
    }
    // sled writes as soon as it is opened: if this start is interrupted, the next one must not trust the index.
    state.trust = Trust::None;
    state.write(&*env.disk).map_err(io_error("write `state`"))?;
    let opened = env.indexes.open(INDEX);
    let (index, applied) =
        match opened.and_then(|index| Ok((Arc::clone(&index), AppliedFrame::read(&*index)?))) {
            Ok(opened) => opened,
            Err(error) => return damaged(env, error).map(TrustDecision::Untrusted),
        };
    refuse_if_ahead(end, applied)?;
    match segments.base.map(|base| Ok(base.erasures > erasures::built(&*index)?)).transpose() {
        Ok(None | Some(false)) => {}
        Ok(Some(true)) => return Ok(TrustDecision::Untrusted("what was erased leaves it".to_owned())),
        Err(error) => return damaged(env, error).map(TrustDecision::Untrusted),
    }
    if applied.sequence < segments.before() {
        return Ok(TrustDecision::Untrusted("the index is older than the journal".to_owned()));
    }
    if digest_after(&*env.disk, segments, end, applied.sequence)? != applied.digest {
        return Ok(TrustDecision::Untrusted("the index does not match the journal".to_owned()));
    }
    Ok(TrustDecision::Trusted(index, applied))
}

/// Returns the reason if an index error means damage; any other error prevents the store from opening.
fn damaged(env: &Env, error: IndexError) -> Result<String, OpenError> {
    match error {
        IndexError::Failed(why) => Ok(why),
        IndexError::NoSpace => Err(OpenError::NoSpace),
        IndexError::Locked => Err(lock::locked_error(&*env.disk)),
    }
}

/// Refuses a journal that ends before the last frame applied to an untrusted index: its end was lost. An index that
/// cannot be read proves nothing.
fn refuse_untrusted_if_ahead(env: &Env, end: &JournalEnd) -> Result<(), OpenError> {
    if env.indexes.size(INDEX) == 0 {
        return Ok(());
    }
    let names = env.disk.list("").map_err(io_error("list the store"))?;
    if names.iter().any(|name| name == PEEK_MARKER) {
        return Ok(());
    }
    env.disk.create(PEEK_MARKER).map_err(io_error("look at an old index"))?;
    let applied = env.indexes.open(INDEX).and_then(|index| AppliedFrame::read(&*index));
    env.disk.remove(PEEK_MARKER).map_err(io_error("look at an old index"))?;
    match applied {
        Ok(applied) => refuse_if_ahead(end, applied),
        Err(error) => damaged(env, error).map(drop),
    }
}

/// Marker file that exists while an untrusted index is read: if that kills the process, or hangs and the watchdog ends it, the
/// next start skips it.
const PEEK_MARKER: &str = "peek.tmp";

/// Refuses an index that is ahead of the journal: only durable frames are applied, so the journal was longer.
fn refuse_if_ahead(end: &JournalEnd, applied: AppliedFrame) -> Result<(), OpenError> {
    let last = end.last.position.sequence;
    if applied.sequence <= last {
        return Ok(());
    }
    let message = format!(
        "the journal ends with change {last}, but the index has seen change {}: the changes in between are missing; put the \
         whole journal back, or remove `index` and go on without it",
        applied.sequence
    );
    Err(damage(&end.header.path(), end.at, &message, last, None))
}

/// Checks whether the index can be trusted; the error is the reason why not.
fn check_trust(env: &Env, state: &StateFile, is_clean: bool) -> Result<(), String> {
    let same_file = |identity: &str| match env.indexes.identity(INDEX) {
        Some(found) if found.text == identity => Ok(()),
        Some(_) => Err("the index was copied; no data is affected".to_owned()),
        None => Err("there is no index".to_owned()),
    };
    match &state.trust {
        Trust::None if state.ordinal == 0 => Err("`state` is missing or damaged".to_owned()),
        Trust::None => Err("the last start or stop was cut short".to_owned()),
        Trust::Clean { .. } if !is_clean => Err("the journal has gone on without the index".to_owned()),
        Trust::Clean { identity, .. } => same_file(identity),
        Trust::Boot { boot, .. } if env.disk.boot_id().as_ref() != Some(boot) => {
            Err("the machine went down while the store was open".to_owned())
        }
        Trust::Boot { identity, .. } => same_file(identity),
    }
}

/// Corrects the digest in the journal by a new frame, or every start would rebuild again, and with it the counters
/// computed on a wrong index.
fn correct_digest(
    env: &Env,
    journal: &mut Journal,
    state: &mut StateFile,
    index: &dyn Index,
    applied: AppliedFrame,
) -> Result<AppliedFrame, OpenError> {
    let mut digest = applied.digest;
    if digest == journal.last().digest {
        return Ok(applied);
    }
    let changes = stage_changes(index, |tx| (env.options.recount)(tx))
        .map_err(|error| OpenError::Index(error.to_string()))?;
    let changes = changes.into_changes(journal.next_sequence());
    changes.iter().for_each(|change| digest.replace(change.old, change.new));
    if changes.is_empty() {
        journal.seal(state, digest)?;
    } else {
        journal.append(state, &changes, digest)?;
    }
    let applied = AppliedFrame { sequence: journal.last().position.sequence, digest };
    apply(index, &changes, applied)?;
    Ok(applied)
}

/// Returns the changes that `work` makes to an index.
pub(crate) fn stage_changes(
    index: &dyn Index,
    work: impl FnOnce(&mut Tx<'_>) -> Result<()>,
) -> Result<Group> {
    let mut group = Group::default();
    let mut tx = Tx::new(index, &group);
    work(&mut tx)?;
    let changes = tx.into_changes();
    group.join(changes, index)?;
    Ok(group)
}

/// Replays missing frames into a trusted index and runs the startup check. A damaged index becomes untrusted.
fn catch_up(
    env: &Env,
    index: Arc<dyn Index>,
    applied: AppliedFrame,
    journal: &Journal,
) -> Result<TrustDecision, OpenError> {
    let end = journal.last().position.sequence;
    let replayed = if applied.sequence == end {
        Ok(applied)
    } else {
        let segments = discover::find_segments(&*env.disk)?;
        replay(&*env.disk, &segments.headers, end, applied.sequence, &*index, |_| ())
    };
    let applied = match replayed {
        Ok(applied) => applied,
        Err(OpenError::Index(why)) => return Ok(TrustDecision::Untrusted(why)),
        Err(error) => return Err(error),
    };
    match (env.options.startup_check)(&mut Tx::new(&*index, &Group::default())) {
        Ok(()) => Ok(TrustDecision::Trusted(index, applied)),
        Err(StoreError::Full) => Err(OpenError::NoSpace),
        Err(error) => Ok(TrustDecision::Untrusted(error.to_string())),
    }
}

/// Trusts the index until the machine reboots.
pub(crate) fn trust_until_reboot(env: &Env, state: &mut StateFile) -> Result<(), OpenError> {
    let identity = env.indexes.identity(INDEX).filter(|identity| identity.detects_copies);
    let was_none = state.trust == Trust::None;
    state.trust = match env.disk.boot_id().zip(identity) {
        Some((boot, identity)) => Trust::Boot { boot, identity: identity.text },
        None => Trust::None,
    };
    // After a reboot the index is untrusted either way, so leaving `None` need not be durable.
    let written = if was_none { state.put(&*env.disk) } else { state.write(&*env.disk) };
    written.map_err(io_error("write `state`"))
}

fn remove_leftovers(env: &Env) -> Result<(), OpenError> {
    rebuild::remove_unused(env).map_err(io_error("remove an old index"))?;
    for (folder, prefix) in [("", ""), (JOURNAL, "journal/")] {
        let names = env.disk.list(folder).map_err(io_error("list the store"))?;
        for name in names.iter().filter(|name| name.ends_with(".tmp")) {
            env.disk.remove(&format!("{prefix}{name}")).map_err(io_error("remove a temporary file"))?;
        }
    }
    compaction::remove_compacted(&*env.disk)
}
