//! What the writer does about an index that is damaged or has no room: verifies it, takes it away, brings it back.

use std::sync::Arc;

use super::{Writer, when_unused};
use crate::store::Health;
use crate::store::sled::engine::applied::Applied;
use crate::store::sled::engine::index::{Index, IndexError};
use crate::store::sled::engine::open;
use crate::store::sled::engine::operation::Kind;
use crate::store::sled::engine::options::{Event, OpenError};
use crate::store::sled::engine::prove::Prover;
use crate::store::sled::engine::state::Trust;
use crate::store::sled::engine::survey::io_error;

impl Writer {
    /// Whether the index is being proved, or must be.
    pub fn is_proving(&mut self) -> bool {
        if self.reader.take_doubt() {
            self.is_doubted = true;
            self.prover.get_or_insert_default();
        }
        self.prover.is_some() && self.index.is_some()
    }

    /// Proves the next rows of the index. An index that is found wrong is built anew before this returns.
    pub fn prove(&mut self, rows: usize) {
        let (Some(prover), Some(index)) = (&mut self.prover, &self.index) else { return };
        match prover.slice(&**index, rows) {
            Ok(None) => {}
            Ok(Some(totals)) if totals == self.totals => {
                (self.prover, self.is_doubted) = (None, false);
                self.reader.set_proved(true);
                (self.place.report)(Event::Proved);
            }
            Ok(Some(_)) => self.replace_index("the index does not hold what the journal says"),
            Err(IndexError::NoRoom) => self.lose_room(),
            Err(error) => self.replace_index(&error.to_string()),
        }
    }

    /// Builds the index anew while nobody can read.
    pub(crate) fn replace_index(&mut self, why: &str) {
        self.distrusted = Some(why.to_owned());
        self.state.trust = Trust::None;
        let written = self.state.write(&*self.place.disk).map_err(io_error("write `state`"));
        self.take_index_away();
        match written {
            Ok(()) => self.bring_index_back(),
            // Known to this process alone, which writes it down when there is room.
            Err(OpenError::NoRoom) => {}
            Err(error) => self.fail(&error.to_string()),
        }
        if self.index.is_none() && !self.is_stopped {
            (self.place.report)(Event::NoRoom);
        }
    }

    /// The index has no room: it may be whole, but can be used no more before it is opened again.
    pub(super) fn lose_room(&mut self) {
        self.take_index_away();
        (self.place.report)(Event::NoRoom);
    }

    /// Lets nobody read until [`Writer::bring_index_back`].
    fn take_index_away(&mut self) {
        (self.prover, self.index) = (None, None);
        drop(self.reader.take().map(when_unused));
        self.status.set(Health::Full);
    }

    /// Opens the index again, builds it anew if it must, and applies what it lacks. Without room for that it stays away.
    fn bring_index_back(&mut self) {
        let status = self.status.clone();
        let mut progress = |done, total| status.set(Health::Rebuilding { done, total });
        if self.distrusted.is_some() {
            progress(0, 0);
        }
        let (state, journal) = (&mut self.state, &mut self.journal);
        match open::reopen(&self.place, state, journal, self.distrusted.as_deref(), &mut progress) {
            Ok((index, applied)) => self.serve(index, applied),
            Err(OpenError::NoRoom) => self.status.set(Health::Full),
            Err(error) => self.fail(&error.to_string()),
        }
    }

    fn serve(&mut self, index: Arc<dyn Index>, applied: Applied) {
        // One that was built anew needs no proof. Of any other sled may have lost what it had no room for.
        self.prover = if self.distrusted.take().is_some() { None } else { Some(Prover::default()) };
        self.is_doubted = false;
        self.totals = applied.totals;
        self.reader.set_proved(self.prover.is_none());
        self.reader.set(Arc::clone(&index));
        (self.place.options.changed)(None);
        self.index = Some(index);
        self.measure_room();
    }

    /// Looks at the free space, and goes on where the index had no room and there may be some now.
    pub fn look_at_room(&mut self) {
        if self.index.is_some() && self.reader.is_out_of_room() {
            self.lose_room();
        }
        self.measure_room();
        if self.index.is_none() && !self.is_stopped && self.has_room(Kind::Freeing) {
            self.bring_index_back();
        }
    }

    pub(super) fn measure_room(&mut self) {
        // A file system that does not say how much is free is not taken for a full one.
        self.free = self.place.disk.free_space().unwrap_or(u64::MAX);
        let is_short = self.is_short_of_room();
        if is_short && self.status.get() == Health::Ready {
            (self.place.report)(Event::NoRoom);
        }
        self.status.set(if is_short { Health::Full } else { Health::Ready });
    }
}
