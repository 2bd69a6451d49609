//! The search for all that a form has of someone: live and trashed submissions, and states that edits have replaced.

use super::PostgresStore;
use super::forms::read_version;
use super::submission_search::{Place, SubmissionSearch};

use crate::domain::submission::FoundIn;
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::id::{FormId, FormRef, SubmissionId};
use crate::store::search::SearchGoal;
use crate::store::{Result, StoreError, Traces};

/// Replaced states that are read at once; each may be large.
const STATES: i64 = 16;

impl PostgresStore {
    pub(super) async fn search_traces(
        &self,
        form: FormRef,
        query: SubmissionQuery,
        limit: usize,
    ) -> Result<Option<Traces>> {
        let Some(found) = self.batchers.forms.ask(form).await? else { return Ok(None) };
        let filter = match self.prepare_filter(form.id, found.version, query).await? {
            Ok(filter) => filter,
            Err(violations) => return Ok(Some(Err(violations))),
        };
        let mut traces = Vec::new();
        for (place, found_in) in [
            (Place::Live, FoundIn::Answers),
            (Place::Trash, FoundIn::Trash),
            (Place::Quarantine, FoundIn::Trash),
        ] {
            let mut after = None;
            while traces.len() <= limit {
                let (filter, order) = (filter.clone(), Order::OldestFirst);
                let search = SubmissionSearch { form: form.id, place, filter, order, after, anywhere: true };
                let page = self.search_submissions(search, SearchGoal::Page(limit + 1)).await?.into_page();
                traces.extend(page.rows.iter().map(|one| (one.id, found_in)));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        self.search_history(form.id, &filter, limit, &mut traces).await?;
        Ok(Some(Ok(traces)))
    }

    async fn prepare_filter(
        &self,
        form: FormId,
        version: u32,
        query: SubmissionQuery,
    ) -> Result<Result<SubmissionFilter, Vec<crate::domain::validation::violation::Violation>>> {
        let stored = self.read(|tx| async move { read_version(&tx, form, version).await }).await?;
        let prepare = move || {
            let version = stored.read().ok_or_else(|| StoreError::Undecodable("a version".to_owned()))?;
            Ok(SubmissionFilter::new(&query, &version.questions))
        };
        self.context.pool.run(prepare).await?
    }

    async fn search_history(
        &self,
        form: FormId,
        filter: &SubmissionFilter,
        limit: usize,
        traces: &mut Vec<(SubmissionId, FoundIn)>,
    ) -> Result<()> {
        let sql = "SELECT submission, number, answers, metadata FROM replaced_states
                   WHERE form = $1 AND (submission, number) > ($2, $3) ORDER BY submission, number LIMIT $4";
        let mut after = (SubmissionId::ZERO, i64::MIN);
        while traces.len() <= limit {
            let (submission, number) = after;
            let rows = self.query(sql, &[&form, &submission, &number, &STATES]).await?;
            for row in &rows {
                after = (row.get(0), row.get(1));
                // Of a submission with many replaced states, one counts.
                let found = (after.0, FoundIn::History);
                if filter.matches_anywhere(row.get(2), row.get(3)) && traces.last() != Some(&found) {
                    traces.push(found);
                }
            }
            if (rows.len() as i64) < STATES {
                break;
            }
        }
        Ok(())
    }
}
