//! Opening a store: find the end of the journal, decide whether the index may be believed, mend, replay or rebuild.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::applied::{self, Applied};
use super::disk::{Disk, HeldLock};
use super::group::Group;
use super::index::{Index, IndexError, OpenIndex};
use super::journal::{Journal, JournalError, Sizes};
use super::lock;
use super::mend;
use super::options::{Event, OpenError, Options, Report};
use super::rebuild::{self, INDEX, OLD};
use super::replay::{ReplayError, apply, replay, totals_after};
use super::segment::JOURNAL;
use super::state::{Position, State, Trust};
use super::survey::{self, End, Segments, clean_end, damage, find_end, io_error};
use super::tx::Tx;
use crate::store::StoreError;

/// What an opened store consists of.
pub(crate) struct Opened {
    pub(crate) lock: Box<dyn HeldLock>,
    pub(crate) state: State,
    pub(crate) journal: Journal,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) applied: Applied,
}

/// The surroundings of a store.
pub(crate) struct Place {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) indexes: Arc<dyn OpenIndex>,
    pub(crate) options: Options,
    pub(crate) report: Report,
}

/// Opens the store in a place, creating it if it is missing.
pub(crate) fn open(place: &Place) -> Result<Opened, OpenError> {
    let lock = lock::take(&*place.disk, place.options.lock_wait)?;
    // First of all: a store that a newer version has written is refused as it is.
    let state = State::read(&*place.disk)?;
    for path in place.disk.mend_modes().map_err(io_error("mend the modes of files"))? {
        (place.report)(Event::ModeMended { path });
    }
    let (mut state, segments) = find(place, state)?;
    let (end, is_clean) = end(place, &state, &segments)?;
    let trusted = state.trust.clone();
    let opened = believe(place, &mut state, &segments, &end, is_clean).and_then(|believed| {
        let mut journal = mend::mend(place, &mut state, &segments, &end, is_clean)?;
        let (index, applied) = bring_up(place, believed, &mut journal, &mut state)?;
        Ok((journal, index, applied))
    });
    let (journal, index, applied) =
        opened.inspect_err(|error| leave_trust(place, &mut state, &trusted, error))?;
    remove_leftovers(place)?;
    Ok(Opened { lock, state, journal, index, applied })
}

/// Opens the index of an open store again, after it ran out of room. With a reason not to trust it, builds it anew.
pub(crate) fn reopen(
    place: &Place,
    state: &mut State,
    journal: &mut Journal,
    distrusted: Option<&str>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Arc<dyn Index>, Applied), OpenError> {
    if let Some(why) = distrusted {
        let rebuilt = rebuild::rebuild(place, why, journal.last(), progress)?;
        return finish(place, rebuilt, journal, state);
    }
    let trusted = state.trust.clone();
    let segments = survey::segments(&*place.disk)?;
    believe(place, state, &segments, &journal.end(), false)
        .and_then(|believed| bring_up(place, believed, journal, state))
        .inspect_err(|error| leave_trust(place, state, &trusted, error))
}

/// An index that was trusted stays so where it could not be opened for a reason that is none of its own; but sled may have
/// written to it, so that it is not trusted beyond the death of the machine.
fn leave_trust(place: &Place, state: &mut State, trusted: &Trust, error: &OpenError) {
    if matches!(error, OpenError::NoRoom | OpenError::Locked { .. }) && state.trust != *trusted {
        // If this fails, the next start trusts less than it could.
        drop(trust_until_the_machine_dies(place, state));
    }
}

/// Applies to a trusted index what it lacks, and rebuilds any other.
fn bring_up(
    place: &Place,
    believed: Believed,
    journal: &mut Journal,
    state: &mut State,
) -> Result<(Arc<dyn Index>, Applied), OpenError> {
    let caught_up = match believed {
        Believed::Yes(index, applied) => catch_up(place, index, applied, journal)?,
        Believed::No(why) => Believed::No(why),
    };
    let current = match caught_up {
        Believed::Yes(index, applied) => (index, applied),
        Believed::No(why) => rebuild::rebuild(place, &why, journal.last(), &mut |_, _| ())?,
    };
    finish(place, current, journal, state)
}

fn finish(
    place: &Place,
    (index, applied): (Arc<dyn Index>, Applied),
    journal: &mut Journal,
    state: &mut State,
) -> Result<(Arc<dyn Index>, Applied), OpenError> {
    let applied = correct(place, journal, state, &*index, applied)?;
    trust_until_the_machine_dies(place, state)?;
    Ok((index, applied))
}

/// The ordinal of a state that was not found: nothing says how long the journal must be.
const LOST: u64 = 0;

/// Reads what says where the journal is, or makes an empty one.
fn find(place: &Place, state: Option<State>) -> Result<(State, Segments), OpenError> {
    let disk = &*place.disk;
    let segments = survey::segments(disk)?;
    let newest = segments.headers.last().copied();
    match (state, newest) {
        (None, None) if place.indexes.size(INDEX) > 0 => {
            Err(damage("journal", 0, "there is an index, but no journal", 0, None))
        }
        (None, None) => create(place),
        (Some(state), None) => Err(survey::missing(state.ordinal, 0, None)),
        (Some(state), Some(newest)) if newest.ordinal < state.ordinal => {
            Err(survey::missing(newest.ordinal + 1, newest.first - 1, None))
        }
        (Some(state), Some(newest)) if newest.instance != state.instance => {
            Err(damage("state", 0, "it belongs to another store than the journal", 0, None))
        }
        (Some(state), Some(_)) => Ok((state, segments)),
        (None, Some(newest)) => {
            let instance = newest.instance;
            Ok((State { instance, ordinal: LOST, floor: Position::default(), trust: Trust::None }, segments))
        }
    }
}

fn create(place: &Place) -> Result<(State, Segments), OpenError> {
    let instance = place.options.instance;
    let mut state = State { instance, ordinal: 0, floor: Position::default(), trust: Trust::None };
    Journal::create(Arc::clone(&place.disk), place.sizes(), &mut state)?;
    Ok((state, survey::segments(&*place.disk)?))
}

/// Finds the end of the journal, and whether the store was closed there.
fn end(place: &Place, state: &State, segments: &Segments) -> Result<(End, bool), OpenError> {
    let closed_at = match state.trust {
        Trust::Clean { end, .. } => Some(end),
        Trust::Boot { .. } | Trust::None => None,
    };
    if let Some(at) = closed_at
        && let Some(end) = clean_end(&*place.disk, &segments.headers, at)?
    {
        return Ok((end, true));
    }
    let end = find_end(&*place.disk, &segments.headers)?;
    let last = end.last.position;
    if last.sequence < state.floor.sequence {
        let what =
            format!("the journal ends with change {}, it once held {}", last.sequence, state.floor.sequence);
        return Err(damage(&end.header.path(), end.at, &what, last.sequence, None));
    }
    Ok((end, closed_at == Some(last)))
}

enum Believed {
    Yes(Arc<dyn Index>, Applied),
    No(String),
}

/// Opens the index, if nothing speaks against believing it.
fn believe(
    place: &Place,
    state: &mut State,
    segments: &Segments,
    end: &End,
    is_clean: bool,
) -> Result<Believed, OpenError> {
    if let Err(why) = may_believe(place, state, is_clean) {
        return not_behind(place, end).map(|()| Believed::No(why));
    }
    // sled writes as soon as it is opened: should this start be cut short, the next one believes nothing.
    state.trust = Trust::None;
    state.write(&*place.disk).map_err(io_error("write `state`"))?;
    let opened = place.indexes.open(INDEX).and_then(|index| {
        let applied = Applied::read(&*index)?;
        Ok((index, applied))
    });
    let (index, applied) = match opened {
        Ok(opened) => opened,
        Err(error) => return damaged(place, error).map(Believed::No),
    };
    refuse_beyond(end, applied)?;
    if totals_after(&*place.disk, &segments.headers, end, applied.sequence)? != applied.totals {
        return Ok(Believed::No("the index does not hold what the journal says".to_owned()));
    }
    Ok(Believed::Yes(index, applied))
}

/// Whether an error of the index means damage, and which; all others are reasons to refuse.
fn damaged(place: &Place, error: IndexError) -> Result<String, OpenError> {
    match error {
        IndexError::Failed(why) => Ok(why),
        IndexError::NoRoom => Err(OpenError::NoRoom),
        IndexError::Locked => Err(lock::held(&*place.disk)),
    }
}

/// An index that is not trusted still tells, if it has come further than the journal, that the end of the journal is
/// lost. One that cannot be read tells nothing.
fn not_behind(place: &Place, end: &End) -> Result<(), OpenError> {
    if place.indexes.size(INDEX) == 0 {
        return Ok(());
    }
    let marked = place.disk.list("").map_err(io_error("list the store"))?.iter().any(|name| name == PEEKING);
    if marked {
        return Ok(());
    }
    place.disk.create(PEEKING).map_err(io_error("look at an old index"))?;
    let peeked = peek(place);
    place.disk.remove(PEEKING).map_err(io_error("look at an old index"))?;
    match peeked {
        Ok(cell) => match Applied::decode(cell) {
            Ok(applied) => refuse_beyond(end, applied),
            Err(_) => Ok(()),
        },
        Err(error) => damaged(place, error).map(drop),
    }
}

/// There while an index is read that is not trusted: if that ends the process, the next start does without.
const PEEKING: &str = "peek.tmp";

/// Reads how far the index has come. One that was mangled may hang sled: after a while it is not waited for any more.
fn peek(place: &Place) -> Result<Option<Vec<u8>>, IndexError> {
    let patience = PEEK + Duration::from_secs(place.indexes.size(INDEX) / PEEKED_A_SECOND);
    let (sender, result) = mpsc::channel();
    let indexes = Arc::clone(&place.indexes);
    let peeking = thread::Builder::new().name("peek".to_owned()).spawn(move || {
        let _nobody_waits = sender.send(indexes.peek(INDEX, applied::KEY));
    });
    let hangs = |_| Err(IndexError::Failed("it does not answer".to_owned()));
    match peeking {
        Ok(_detached) => result.recv_timeout(patience).unwrap_or_else(hangs),
        Err(error) => Err(IndexError::Failed(error.to_string())),
    }
}

/// How long an index that is not trusted may take to say how far it has come, and bytes that may cost a second more.
const PEEK: Duration = Duration::from_secs(10);
const PEEKED_A_SECOND: u64 = 20 << 20;

/// The index gets only what is durable: if it holds more than the journal, the journal was longer.
fn refuse_beyond(end: &End, applied: Applied) -> Result<(), OpenError> {
    let last = end.last.position.sequence;
    if applied.sequence <= last {
        return Ok(());
    }
    let what = format!(
        "the journal ends with change {last}, but the index has seen change {}: what came between is gone; put the \
         whole journal back, or remove `index` and go on without it",
        applied.sequence
    );
    Err(damage(&end.header.path(), end.at, &what, last, None))
}

/// Says why the index may not be believed.
fn may_believe(place: &Place, state: &State, is_clean: bool) -> Result<(), String> {
    let same_file = |identity: &str| match place.indexes.identity(INDEX) {
        Some(found) if found.text == identity => Ok(()),
        Some(_) => Err("the index is not the file it was".to_owned()),
        None => Err("there is no index".to_owned()),
    };
    match &state.trust {
        Trust::None if state.ordinal == LOST => Err("`state` is missing or damaged".to_owned()),
        Trust::None => Err("the last start or stop was cut short".to_owned()),
        Trust::Clean { .. } if !is_clean => Err("the journal has gone on without the index".to_owned()),
        Trust::Clean { identity, .. } => same_file(identity),
        Trust::Boot { boot, .. } if place.disk.boot_id().as_ref() != Some(boot) => {
            Err("the machine went down while the store was open".to_owned())
        }
        Trust::Boot { identity, .. } => same_file(identity),
    }
}

/// Lets the next frame carry the true totals where the journal's were wrong, or every start would rebuild again, and
/// with them what was counted on a wrong index.
fn correct(
    place: &Place,
    journal: &mut Journal,
    state: &mut State,
    index: &dyn Index,
    applied: Applied,
) -> Result<Applied, OpenError> {
    let mut totals = applied.totals;
    if totals == journal.last().totals {
        return Ok(applied);
    }
    let counted = recounted(place, index).map_err(|error| OpenError::Index(error.to_string()))?;
    let changes = counted.into_changes(journal.next_sequence());
    changes.iter().for_each(|change| totals.replace(change.old, change.new));
    let written = match changes.is_empty() {
        true => journal.seal(state, totals),
        false => journal.append(state, &changes, totals),
    };
    written?;
    let applied = Applied { sequence: journal.last().position.sequence, totals };
    apply(index, &changes, applied)?;
    Ok(applied)
}

fn recounted(place: &Place, index: &dyn Index) -> Result<Group, StoreError> {
    let mut group = Group::default();
    let mut tx = Tx::new(index, &group);
    (place.options.recount)(&mut tx)?;
    let changes = tx.into_changes();
    group.join(changes, index)?;
    Ok(group)
}

/// Applies to a trusted index what it lacks, and makes the first reads of it. It is trusted no more if it is damaged.
fn catch_up(
    place: &Place,
    index: Arc<dyn Index>,
    applied: Applied,
    journal: &Journal,
) -> Result<Believed, OpenError> {
    let end = journal.last().position.sequence;
    let replayed = match applied.sequence == end {
        true => Ok(applied),
        false => {
            let segments = survey::segments(&*place.disk)?;
            replay(&*place.disk, &segments.headers, end, applied.sequence, &*index, |_| ())
        }
    };
    let applied = match replayed {
        Ok(applied) => applied,
        Err(ReplayError::Index(error)) => return damaged(place, error).map(Believed::No),
        Err(ReplayError::Journal(error)) => return Err(error),
    };
    match (place.options.check)(&mut Tx::new(&*index, &Group::default())) {
        Ok(()) => Ok(Believed::Yes(index, applied)),
        Err(StoreError::Full) => Err(OpenError::NoRoom),
        Err(error) => Ok(Believed::No(error.to_string())),
    }
}

/// From now on the index may be believed as long as the machine lives.
fn trust_until_the_machine_dies(place: &Place, state: &mut State) -> Result<(), OpenError> {
    let identity = place.indexes.identity(INDEX).filter(|identity| identity.tells_copies);
    let was_none = state.trust == Trust::None;
    state.trust = match place.disk.boot_id().zip(identity) {
        Some((boot, identity)) => Trust::Boot { boot, identity: identity.text },
        None => Trust::None,
    };
    let written = match was_none {
        // Once the machine has died, neither is believed: either may be found.
        true => state.put(&*place.disk),
        false => state.write(&*place.disk),
    };
    written.map_err(io_error("write `state`"))
}

fn remove_leftovers(place: &Place) -> Result<(), OpenError> {
    for folder in [rebuild::NEW, OLD] {
        place.indexes.remove(folder).map_err(io_error("remove an old index"))?;
    }
    for (folder, prefix) in [("", ""), (JOURNAL, "journal/")] {
        let names = place.disk.list(folder).map_err(io_error("list the store"))?;
        for name in names.iter().filter(|name| name.ends_with(".tmp")) {
            place.disk.remove(&format!("{prefix}{name}")).map_err(io_error("remove a temporary file"))?;
        }
    }
    Ok(())
}

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NoRoom => OpenError::NoRoom,
            JournalError::Failed { doing, source } => OpenError::Io { doing: doing.to_owned(), source },
        }
    }
}

impl Place {
    pub(crate) fn sizes(&self) -> Sizes {
        let Options { first_segment, largest_segment, min_free, .. } = self.options;
        Sizes { first: first_segment, largest: largest_segment, min_free }
    }
}
