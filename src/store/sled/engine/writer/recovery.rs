//! Recovery of an index that is damaged or has no space: verifies, detaches, rebuilds and reattaches it.

use std::sync::Arc;

use super::{Writer, wait_until_unused};
use tokio::sync::oneshot;

use crate::store::StoreHealth;
use crate::store::sled::engine::applied_frame::AppliedFrame;
use crate::store::sled::engine::discover::io_error;
use crate::store::sled::engine::index::{Index, IndexError};
use crate::store::sled::engine::open;
use crate::store::sled::engine::operation::WriteKind;
use crate::store::sled::engine::options::{EngineEvent, OpenError};
use crate::store::sled::engine::rebuild;
use crate::store::sled::engine::renewal::Renewal;
use crate::store::sled::engine::state::Trust;
use crate::store::sled::engine::verify::IndexVerifier;

impl Writer {
    /// Whether the index is being verified, or must be.
    pub fn is_verifying(&mut self) -> bool {
        if self.reader.take_damage_flag() {
            self.is_suspect = true;
            self.verifier.get_or_insert_default();
        }
        self.verifier.is_some() && self.index.is_some()
    }

    /// Begins to verify the index, unless that is in progress; `reply` gets the reason if it is rebuilt. It is dropped if
    /// there is no index.
    pub(crate) fn begin_verification(&mut self, reply: oneshot::Sender<Option<String>>) {
        if self.index.is_some() {
            self.verifier.get_or_insert_default();
            self.verifications.push(reply);
        }
    }

    fn answer_verifications(&mut self, wrong: Option<&str>) {
        // The caller may have stopped waiting.
        self.verifications.drain(..).for_each(|reply| drop(reply.send(wrong.map(str::to_owned))));
    }

    /// Verifies the next rows of the index. A wrong index is rebuilt before this returns.
    pub fn verify(&mut self, rows: usize) {
        let (Some(verifier), Some(index)) = (&mut self.verifier, &self.index) else { return };
        match verifier.slice(&**index, rows) {
            Ok(None) => {}
            Ok(Some(digest)) if digest == self.digest => {
                (self.verifier, self.is_suspect) = (None, false);
                self.reader.set_verified(true);
                self.answer_verifications(None);
                (self.env.report)(EngineEvent::Verified);
            }
            Ok(Some(_)) => self.replace_index("the index does not match the journal"),
            Err(error) => self.recover(&error),
        }
    }

    /// Recovers from a failure of the index: on a full disk it is taken from readers until there is space; any other is
    /// rebuilt.
    pub(super) fn recover(&mut self, error: &IndexError) {
        match error {
            IndexError::NoSpace => self.detach_full_index(),
            _ => self.replace_index(&error.to_string()),
        }
    }

    /// Rebuilds the index; reads fail meanwhile.
    pub(crate) fn replace_index(&mut self, why: &str) {
        self.rebuild_reason = Some(why.to_owned());
        self.answer_verifications(Some(why));
        self.state.trust = Trust::None;
        let written = self.state.write(&*self.env.disk).map_err(io_error("write `state`"));
        self.detach_index();
        match written {
            Ok(()) => self.reattach_index(),
            // Only this process knows; it writes the mark once there is space.
            Err(OpenError::NoSpace) => {}
            Err(error) => self.fail(&error),
        }
        if self.index.is_none() && !self.is_stopped {
            (self.env.report)(EngineEvent::NoSpace);
        }
    }

    /// Detaches an index that has no space: it may be intact, but is unusable until reopened.
    pub(super) fn detach_full_index(&mut self) {
        self.detach_index();
        (self.env.report)(EngineEvent::NoSpace);
    }

    /// Detaches the index from readers until [`Writer::reattach_index`].
    fn detach_index(&mut self) {
        self.discard_compaction();
        (self.verifier, self.index) = (None, None);
        self.verifications.clear();
        drop(self.reader.take_index().map(wait_until_unused));
        self.reader.set_health(StoreHealth::Full);
    }

    /// Reopens or rebuilds the index and replays missing frames. Without space for that it stays detached.
    fn reattach_index(&mut self) {
        if self.rebuild_reason.is_some() {
            self.reader.set_health(StoreHealth::Rebuilding { done: 0, total: 0 });
        }
        let (state, journal) = (&mut self.state, &mut self.journal);
        match open::reopen(&self.env, state, journal, self.rebuild_reason.as_deref()) {
            Ok((index, applied)) => self.attach_index(index, applied),
            Err(OpenError::NoSpace) => self.reader.set_health(StoreHealth::Full),
            Err(error) => self.fail(&error),
        }
    }

    /// Replaces the index by a fresh one with the same rows, and without what the first `erasures` erased. Reads fail meanwhile.
    pub(super) fn renew_index(&mut self, renewal: Renewal, erasures: u64) {
        let applied = AppliedFrame { sequence: self.journal.last().position.sequence, digest: self.digest };
        let renewed = renewal.complete(&self.env, applied, erasures).map(|()| self.swap_index());
        // After the swap: large files take long to remove.
        let removed = rebuild::remove_unused(&self.env).map_err(|error| error.to_string());
        if let Err(why) = renewed.map_err(|error| error.to_string()).and(removed) {
            self.repeat_compaction(EngineEvent::RenewalFailed { why });
        }
    }

    fn swap_index(&mut self) {
        self.detach_index();
        self.reader.set_health(StoreHealth::Rebuilding { done: 0, total: 0 });
        // The new index has all that the old one had, so it is trusted as much. A start in between finds that it is another.
        let swapped = rebuild::swap(&self.env);
        match swapped.and_then(|()| open::trust_until_reboot(&self.env, &mut self.state)) {
            Ok(()) => self.reattach_index(),
            Err(error) => self.replace_index(&error.with_cause()),
        }
    }

    fn attach_index(&mut self, index: Arc<dyn Index>, applied: AppliedFrame) {
        // A rebuilt index needs no verification. Any other may lack changes that sled could not write.
        self.verifier =
            if self.rebuild_reason.take().is_some() { None } else { Some(IndexVerifier::default()) };
        self.is_suspect = false;
        self.digest = applied.digest;
        self.reader.set_verified(self.verifier.is_none());
        self.reader.set_index(Arc::clone(&index));
        (self.env.options.on_change)(None);
        self.index = Some(index);
        self.measure_free_space();
    }

    /// Measures the free space, and reattaches the index if it had no space and there may be some now.
    pub fn check_free_space(&mut self) {
        if self.index.is_some() && self.reader.is_out_of_space() {
            self.detach_full_index();
        }
        self.measure_free_space();
        if self.index.is_none() && !self.is_stopped && self.has_space(WriteKind::Reclaim) {
            self.reattach_index();
        }
    }

    pub(super) fn measure_free_space(&mut self) {
        // A file system that does not report free space counts as empty, not as full.
        self.free = self.env.disk.free_space().unwrap_or(u64::MAX);
        let is_short = self.is_low_on_space();
        if is_short && self.reader.health() == StoreHealth::Ready {
            let is_readable = self.index.is_some() && !self.reader.is_out_of_space();
            (self.env.report)(if is_readable { EngineEvent::LowSpace } else { EngineEvent::NoSpace });
        }
        self.reader.set_health(if is_short { StoreHealth::Full } else { StoreHealth::Ready });
    }
}
