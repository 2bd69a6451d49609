//! Building the index anew from the journal, beside the old one.

use std::sync::Arc;

use super::applied::Applied;
use super::index::Index;
use super::journal::Last;
use super::open::Place;
use super::options::{Event, OpenError};
use super::prove;
use super::replay::{apply, frames_after, replay};
use super::segment::Header;
use super::survey::{self, io_error};

/// The folder of the index that serves.
pub(crate) const INDEX: &str = "index";
/// The folder of the one being built.
pub(crate) const NEW: &str = "index.new";
/// The folder of the one it replaces.
pub(crate) const OLD: &str = "index.old";

/// Builds the index from every frame up to the last, and puts it in the place of the old one. `progress` is told
/// the bytes read, of all there are.
pub(crate) fn rebuild(
    place: &Place,
    why: &str,
    last: Last,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Arc<dyn Index>, Applied), OpenError> {
    let segments = survey::segments(&*place.disk)?.headers;
    let end = last.position.sequence;
    for folder in [NEW, OLD] {
        place.indexes.remove(folder).map_err(io_error("remove an old index"))?;
    }
    if end == 0 {
        place.indexes.remove(INDEX).map_err(io_error("remove an old index"))?;
        return Ok((place.indexes.open(INDEX)?, Applied::default()));
    }
    make_room(place, &segments, end)?;
    (place.report)(Event::Rebuilding { why: why.to_owned() });
    let built = build(place, &segments, end, progress).and_then(|applied| swap(place).map(|()| applied));
    if built.is_err() {
        // It takes room that others need; if it cannot be removed now, the next attempt does.
        drop(place.indexes.remove(NEW));
    }
    let applied = built?;
    (place.report)(Event::Rebuilt);
    Ok((place.indexes.open(INDEX)?, applied))
}

fn build(
    place: &Place,
    segments: &[Header],
    end: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Applied, OpenError> {
    let index = place.indexes.open(NEW)?;
    let total = segments.iter().map(|header| header.size).sum();
    let mut done = 0;
    let applied = replay(&*place.disk, segments, end, 0, &*index, |bytes| {
        done += bytes;
        (place.report)(Event::Progress { done, total });
        progress(done, total);
    })?;
    let applied = compare(place, &*index, applied)?;
    place.indexes.close(NEW, index)?;
    Ok(applied)
}

/// Bytes that even an empty index takes, and some more.
const SPARE: u64 = 4 << 20;

/// Where there is no room for two indexes the old one goes, but only once the journal has been read and found whole, and
/// only if there is surely room for the new one then.
fn make_room(place: &Place, segments: &[Header], end: u64) -> Result<(), OpenError> {
    let old = place.indexes.size(INDEX);
    let free = place.disk.free_space().map_err(io_error("look at the free space"))?;
    if old == 0 || free >= old.saturating_mul(2) {
        return Ok(());
    }
    if free < old / 2 + SPARE {
        return Err(OpenError::NoRoom);
    }
    frames_after(&*place.disk, segments, end, 0, |_, _| Ok::<(), OpenError>(()))?;
    place.indexes.remove(INDEX).map_err(io_error("remove an old index"))
}

/// Compares what was built with what the journal says. The frames are all valid, so what was built is right.
fn compare(place: &Place, index: &dyn Index, applied: Applied) -> Result<Applied, OpenError> {
    let totals = prove::sum(index)?;
    if totals == applied.totals {
        return Ok(applied);
    }
    (place.report)(Event::TotalsDiffer { sequence: applied.sequence });
    let applied = Applied { totals, ..applied };
    apply(index, &[], applied)?;
    Ok(applied)
}

fn swap(place: &Place) -> Result<(), OpenError> {
    let failed = io_error("put the new index in place");
    match place.indexes.size(INDEX) {
        0 => place.indexes.remove(INDEX).map_err(&failed)?,
        _ => place.indexes.rename(INDEX, OLD).map_err(&failed)?,
    }
    place.indexes.rename(NEW, INDEX).map_err(&failed)?;
    place.indexes.remove(OLD).map_err(&failed)
}
