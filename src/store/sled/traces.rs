//! The search for all that a form has of someone: live and trashed submissions, and states that edits have replaced.

use super::search::{Found, Search};
use super::{SledStore, block, layout, locate, submission_codec, submission_trash};
use crate::domain::submission::filter::SubmissionFilter;
use crate::domain::submission::{FoundIn, Submission};
use crate::id::{FormId, SubmissionId};
use crate::store::Result;

/// A search in one kind of rows of a form.
pub(super) struct TraceSearch {
    pub(super) form: FormId,
    pub(super) filter: SubmissionFilter,
    pub(super) place: FoundIn,
}

impl TraceSearch {
    /// Returns the submissions in a row.
    fn read(&self, store: &SledStore, key: &[u8], body: &[u8]) -> Result<Vec<Submission>> {
        Ok(match self.place {
            FoundIn::Answers => {
                let items = block::read(body)?;
                let read = items.iter().map(|item| locate::read(&store.reader, self.form, item));
                read.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
            }
            FoundIn::Trash => vec![submission_trash::decode(key, body)?],
            FoundIn::History => {
                let (form, id) = layout::listed_submission(&key[..key.len() - 4])?;
                vec![submission_codec::read_with_timestamp(body)?.1.to_submission(form, id)?]
            }
        })
    }
}

impl Search for TraceSearch {
    type Item = (SubmissionId, FoundIn);
    /// The key of a row.
    type Position = Vec<u8>;

    fn items_per_row(&self) -> Option<usize> {
        None
    }

    fn examine(&self, store: &SledStore, key: &[u8], body: &[u8], found: &mut Found<Self>) -> Result<()> {
        for Submission { id, answers, metadata, .. } in self.read(store, key, body)? {
            let is_match = self.filter.matches_anywhere(&answers, metadata.as_deref());
            found.take(key.to_vec(), is_match.then_some(((id, self.place), 0)));
        }
        Ok(())
    }
}
