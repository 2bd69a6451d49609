//! The search for all that a form has of someone: live and trashed submissions, and states that edits have replaced.

use std::ops::Bound;

use super::engine::tx::Direction;
use super::row_source::RowSource;
use super::search::{Found, Search, SearchGoal};
use super::{SledStore, block, forms, layout, locate, submission_codec, submission_trash};
use crate::domain::submission::filter::{SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{FoundIn, Submission};
use crate::id::{FormId, FormRef, SubmissionId};
use crate::store::{Result, StoreError, Traces};

/// A search in one kind of rows of a form.
struct TraceSearch {
    form: FormId,
    filter: SubmissionFilter,
    place: FoundIn,
}

impl SledStore {
    pub(super) async fn search_traces(
        &self,
        form: FormRef,
        query: SubmissionQuery,
        limit: usize,
    ) -> Result<Option<Traces>> {
        let Some(found) = self.form(form)? else { return Ok(None) };
        let stored = self.reader.read(&layout::version(form.id, found.version), layout::decode_version)?;
        let stored = stored.ok_or_else(|| forms::missing_version(form.id, found.version))?;
        let prepare = move || {
            let version = stored.read().ok_or_else(|| layout::undecodable("a version"))?;
            Ok::<_, StoreError>(SubmissionFilter::new(&query, &version.questions))
        };
        let filter = match self.pool.run(prepare).await?? {
            Ok(filter) => filter,
            Err(violations) => return Ok(Some(Err(violations))),
        };
        let mut traces = Vec::new();
        for (place, mut range) in [
            (FoundIn::Answers, layout::blocks(form.id)),
            (FoundIn::Trash, layout::trashed_submissions(form.id, None)),
            (FoundIn::History, layout::replaced_states(form.id)),
        ] {
            while traces.len() <= limit {
                let search = TraceSearch { form: form.id, filter: filter.clone(), place };
                let goal = SearchGoal::Page(limit + 1);
                let page = self.search(search, range.clone(), Direction::Ascending, goal).await?.into_page();
                traces.extend(page.rows);
                // Of a submission with many replaced states, one counts.
                traces.dedup();
                let Some(last) = page.next else { break };
                range.0 = Bound::Excluded(last);
            }
        }
        Ok(Some(Ok(traces)))
    }
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
