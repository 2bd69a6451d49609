//! Editing, deleting and restoring submissions, and their history.

use std::sync::Arc;

use super::submissions::{body_error, is_costly, submission_id};
use super::{App, AppError, Current, IdempotentRequest, ListPage, Resource, into_result, require_scope};
use crate::domain::form::Version;
use crate::domain::form::admission::Refusal;
use crate::domain::form::settings::UnknownAnswers;
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::edit::{EditedContent, SubmissionPatch};
use crate::domain::submission::{ReplacedState, Submission};
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, SubmissionId};
use crate::store::{CheckedEdit, IdempotentOperation, StepResult};

/// Maximum attempts to apply an edit. Edits are serialized, but one whose caller has disconnected may still be written.
const TRIES: usize = 2;

impl App {
    /// Changes a submission at the revision expected by the merge patch in the body. What comes of it must fit the
    /// questions that the submission was checked against, whatever the form is now. Gives with it the keys that are none
    /// of these questions, and were left out as the form has it.
    pub async fn edit_submission(
        &self,
        caller: &Caller,
        form: &str,
        id: &str,
        body: &str,
        expected: &ExpectedRevision,
    ) -> Result<(Submission, Vec<String>), AppError> {
        require_scope(caller, Scope::Write)?;
        let current = self.current(caller, form).await?;
        let submission = submission_id(id)?;
        let patch = SubmissionPatch::read(body).map_err(body_error)?;
        let _permit = self.submission_edits.acquire(submission).await;
        for _ in 0..TRIES {
            let step = self.edit_once(caller, &current, submission, patch.clone(), expected).await?;
            if !matches!(step, StepResult::Recheck) {
                let (edited, _) = into_result(step, Resource::Submission(id.to_owned()))?;
                return Ok(edited);
            }
        }
        Err(AppError::Overloaded)
    }

    /// Changes the submission as it is now, unless it is edited meanwhile. Gives with it the keys that were left out.
    async fn edit_once(
        &self,
        caller: &Caller,
        current: &Current,
        submission: SubmissionId,
        mut patch: SubmissionPatch,
        expected: &ExpectedRevision,
    ) -> Result<StepResult<(Submission, Vec<String>)>, AppError> {
        let (form, workspace) = (current.form.id, current.form.workspace);
        let found = self.store.find_submission(workspace, form, submission).await?;
        let Some(found) = found else { return Ok(StepResult::Missing) };
        if let Err(why) = expected.check(found.revision()) {
            return Ok(StepResult::Refused(why));
        }
        let version = self.version(workspace, form, found.form_version).await?;
        let dropped = match current.form.settings.unknown_answers() {
            UnknownAnswers::Drop => patch.split_unknown(&version),
            UnknownAnswers::Reject => Vec::new(),
        };
        let edit = self.merged(caller, &patch, &found, version).await?;
        let Some(edit) = edit else { return Ok(StepResult::Done((found, dropped))) };
        let checked = CheckedEdit { form, submission, seen_edits: found.edits(), edit };
        let step = self.store.edit_submission(workspace, checked, self.now()).await?;
        Ok(step.map(|edited| (edited, dropped)))
    }

    /// Applies `patch` to a submission that was checked against `version`, on the pool if that may take long.
    async fn merged(
        &self,
        caller: &Caller,
        patch: &SubmissionPatch,
        submission: &Submission,
        version: Arc<Version>,
    ) -> Result<Option<EditedContent>, AppError> {
        let refused = |violations| AppError::Refused(Refusal::InvalidAnswers(violations));
        if !patch.has_answers() || !is_costly(&version, submission.size() + patch.size()) {
            return patch.apply(submission, &version, &self.limits).map_err(refused);
        }
        let (patch, submission, limits) = (patch.clone(), submission.clone(), self.limits);
        self.run_job(caller, move || patch.apply(&submission, &version, &limits).map_err(refused)).await
    }

    /// A page of what edits have replaced, newest first, `limit` at most, from `cursor` on.
    pub async fn list_history(
        &self,
        caller: &Caller,
        form: &str,
        id: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<ReplacedState>, AppError> {
        require_scope(caller, Scope::Read)?;
        let (form, submission) = self.resolve_submission(caller, form, id).await?;
        let missing = || AppError::NotFound(Resource::Submission(id.to_owned()));
        let cursors = self.cursors(format!("history {} {form} {submission}", caller.workspace)).await?;
        let before = cursors.read(cursor)?.map(u32::from_be_bytes);
        let page = self.store.list_history(caller.workspace, form, submission, before, limit).await?;
        let page = page.ok_or_else(missing)?;
        let last = page.rows.last().filter(|_| page.more);
        let next = last.map(|last| cursors.write(&last.number.to_be_bytes()));
        Ok(ListPage { items: page.rows, next, total: None })
    }

    /// Moves a submission at the revision expected to the trash, or erases it, which needs `admin`, and takes one from
    /// the trash too.
    pub async fn delete_submission(
        &self,
        caller: &Caller,
        form: &str,
        id: &str,
        purge: bool,
        expected: ExpectedRevision,
    ) -> Result<(), AppError> {
        require_scope(caller, if purge { Scope::Admin } else { Scope::Write })?;
        let (form, submission) = self.resolve_submission(caller, form, id).await?;
        let step = if purge {
            self.store.purge_submission(caller.workspace, form, submission, expected).await?
        } else {
            let now = self.now();
            self.store.trash_submission(caller.workspace, form, submission, expected, now).await?
        };
        into_result(step, Resource::Submission(id.to_owned())).map(drop)
    }

    /// Restores a submission from the trash; true if it was replayed.
    pub async fn restore_submission(
        &self,
        caller: &Caller,
        form: &str,
        id: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<(Submission, bool), AppError> {
        require_scope(caller, Scope::Write)?;
        let (form, submission) = self.resolve_submission(caller, form, id).await?;
        let retry = request.idempotency_key(caller, IdempotentOperation::RestoreSubmission(form, submission));
        let now = self.now();
        let step = self.store.restore_submission(caller.workspace, form, submission, retry, now).await?;
        into_result(step, Resource::Submission(id.to_owned()))
    }

    /// Resolves the ids of a form, which must exist outside the trash, and a submission.
    async fn resolve_submission(
        &self,
        caller: &Caller,
        form: &str,
        id: &str,
    ) -> Result<(FormId, SubmissionId), AppError> {
        Ok((self.form(caller, form).await?.id, submission_id(id)?))
    }
}
