//! Retention: submissions are erased at the age that their form sets.

use futures_util::future::try_join_all;

use super::App;
use crate::clock::Timestamp;
use crate::domain::form::filter::FormFilter;
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::SubmissionStatus;
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::trash::cutoff;
use crate::id::{FormRef, SubmissionId, WorkspaceId};
use crate::store::{DEFAULT_PAGE, StepResult, StoreError};

impl App {
    /// Erases the submissions that are older than their form keeps them, those in the trash and in quarantine, too;
    /// returns their number.
    pub(super) async fn erase_expired(&self) -> Result<usize, StoreError> {
        let mut erased = 0;
        for workspace in self.store.list_workspaces().await? {
            for (form, days) in self.forms_with_retention(workspace.id).await? {
                let cutoff = cutoff(self.now(), days);
                erased += self.erase_before(form, cutoff).await?;
                for status in SubmissionStatus::ALL {
                    erased += self.erase_trashed_before(form, status, cutoff).await?;
                }
            }
        }
        Ok(erased)
    }

    async fn forms_with_retention(&self, workspace: WorkspaceId) -> Result<Vec<(FormRef, u32)>, StoreError> {
        let (mut forms, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.list_forms(workspace, &FormFilter::default(), after, DEFAULT_PAGE).await?;
            let kept = page
                .rows
                .iter()
                .filter_map(|(form, _)| Some((form.reference(), form.settings.retention_days?)));
            forms.extend(kept);
            after = page.next;
            if after.is_none() {
                return Ok(forms);
            }
        }
    }

    async fn erase_before(&self, form: FormRef, cutoff: Timestamp) -> Result<usize, StoreError> {
        let query = SubmissionQuery { until: Some(cutoff), ..SubmissionQuery::default() };
        let filter = SubmissionFilter::new(&query, &[]).expect("a time is a valid filter");
        let mut erased = 0;
        loop {
            let due =
                self.store.list_submissions(form, &filter, Order::OldestFirst, None, DEFAULT_PAGE).await?;
            let due = due.map(|page| page.rows).unwrap_or_default();
            let gone = self.purge_all(form, due.into_iter().map(|one| one.id)).await?;
            erased += gone;
            if gone == 0 {
                return Ok(erased);
            }
        }
    }

    async fn erase_trashed_before(
        &self,
        form: FormRef,
        status: SubmissionStatus,
        cutoff: Timestamp,
    ) -> Result<usize, StoreError> {
        let (mut erased, mut before) = (0, Some(SubmissionId::first_of(cutoff.millis())));
        while before.is_some() {
            let page = self.store.list_trashed_submissions(form, status, before, DEFAULT_PAGE).await?;
            let Some(page) = page else { return Ok(erased) };
            erased += self.purge_all(form, page.rows.into_iter().map(|one| one.id)).await?;
            before = page.next;
        }
        Ok(erased)
    }

    /// Erases submissions of `form`, in the trash, quarantined or neither; returns how many there were.
    pub(super) async fn purge_all(
        &self,
        form: FormRef,
        ids: impl Iterator<Item = SubmissionId>,
    ) -> Result<usize, StoreError> {
        let any = ExpectedRevision::default();
        let purge = |id| self.store.purge_submission(form.submission(id), any.clone(), self.now());
        let steps = try_join_all(ids.map(purge)).await?;
        Ok(steps.iter().filter(|step| matches!(step, StepResult::Done(()))).count())
    }
}
