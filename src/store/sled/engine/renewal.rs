//! Renewal of the index: what was erased remains in its files until the place is used again. The compaction after an erasure
//! also copies the rows into a fresh index, which then takes the place of the old one.

use std::sync::Arc;

use super::applied_frame::AppliedFrame;
use super::erasures;
use super::index::{Change, Index, IndexError};
use super::open::Env;
use super::rebuild::{INDEX, NEW};
use super::replay;

/// A fresh index under construction.
pub(crate) struct Renewal {
    /// After the first error the index is not completed.
    index: Result<Arc<dyn Index>, IndexError>,
}

impl Renewal {
    /// Creates the index, if there is space for two besides what is kept free.
    pub(crate) fn begin(env: &Env) -> Self {
        let create = || {
            // A file system that does not report free space counts as empty, not as full.
            let free = env.disk.free_space().unwrap_or(u64::MAX).saturating_sub(env.options.min_free);
            if free < env.indexes.size(INDEX).saturating_mul(2) {
                return Err(IndexError::NoSpace);
            }
            env.indexes.open(NEW)
        };
        Self { index: create() }
    }

    /// Applies rows that were read from the old index, or changes that were applied to it.
    pub(crate) fn apply<'a>(&mut self, mut changes: impl Iterator<Item = Change<'a>>) {
        if let Ok(index) = &self.index
            && let Err(error) = index.apply(&mut changes)
        {
            self.index = Err(error);
        }
    }

    /// Completes the index, which then has all rows after a frame and nothing of what the first `erasures` erased, and closes it.
    ///
    /// # Errors
    /// The first error since the beginning.
    pub(crate) fn complete(self, env: &Env, applied: AppliedFrame, erasures: u64) -> Result<(), IndexError> {
        let index = self.index?;
        replay::apply(&*index, &[], applied)?;
        erasures::put_built(&*index, erasures)?;
        env.indexes.close(NEW, index)
    }
}
