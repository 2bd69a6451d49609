//! Editing, deleting and restoring submissions, and their history.

use super::submissions::{body_error, is_costly, submission_id};
use super::{ApiError, Current, IdempotentRequest, ListPage, MAX_TRIES, Session, into_result};
use crate::api::Code;
use crate::domain::form::admission::Refusal;
use crate::domain::form::settings::UnknownAnswers;
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::edit::SubmissionPatch;
use crate::domain::submission::{ReplacedState, Submission};
use crate::domain::workspace::Scope;
use crate::id::{FormId, SubmissionId};
use crate::store::{CheckedEdit, IdempotentOperation, StepResult};

impl Session {
    /// Applies the merge patch in the body to a submission, if it is at the `expected` revision. The result must be valid for
    /// the version that the submission was validated against, whatever the form is now. Returns it with the unknown keys,
    /// which were dropped.
    pub async fn edit_submission(
        &self,
        form: &str,
        id: &str,
        body: &str,
        expected: &ExpectedRevision,
    ) -> Result<(Submission, Vec<String>), ApiError> {
        self.require_scope(Scope::Write)?;
        let current = self.current(form).await?;
        let submission = submission_id(id)?;
        let patch = SubmissionPatch::read(body).map_err(body_error)?;
        let _permit = self.submission_edits.acquire(submission).await;
        for _ in 0..MAX_TRIES {
            let step = self.edit_once(&current, submission, patch.clone(), expected).await?;
            if !matches!(step, StepResult::Recheck) {
                let (edited, _) = into_result(step, Code::SubmissionNotFound, id)?;
                return Ok(edited);
            }
        }
        Err(ApiError::overloaded())
    }

    /// Applies `patch` to the submission, unless it is edited meanwhile. Returns it with the dropped keys.
    async fn edit_once(
        &self,
        current: &Current,
        submission: SubmissionId,
        mut patch: SubmissionPatch,
        expected: &ExpectedRevision,
    ) -> Result<StepResult<(Submission, Vec<String>)>, ApiError> {
        let (form, workspace) = (current.form.id, current.form.workspace);
        let found = self.store.find_submission(workspace, form, submission).await?;
        let Some(found) = found else { return Ok(StepResult::Missing) };
        if let Err(why) = expected.check(found.revision()) {
            return Ok(StepResult::Refused(why));
        }
        let version = self.version(form, found.form_version).await?;
        let dropped = match current.form.settings.unknown_answers() {
            UnknownAnswers::Drop => patch.split_unknown(&version),
            UnknownAnswers::Reject => Vec::new(),
        };
        let is_costly = patch.has_answers() && is_costly(&version, found.size() + patch.size());
        let (original, limits) = (found.clone(), self.limits);
        let work = move || Ok(patch.apply(&original, &version, &limits).map_err(Refusal::InvalidAnswers)?);
        let edit = self.run_here_or_job(is_costly, work).await?;
        let Some(edit) = edit else { return Ok(StepResult::Done((found, dropped))) };
        let checked = CheckedEdit { form, submission, seen_edits: found.edits(), edit };
        let step = self.store.edit_submission(workspace, checked, self.now()).await?;
        Ok(step.map(|edited| (edited, dropped)))
    }

    /// Lists the states that edits of a submission replaced, newest first: at most `limit`, from `cursor` on.
    pub async fn list_history(
        &self,
        form: &str,
        id: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<ReplacedState>, ApiError> {
        self.require_scope(Scope::Read)?;
        let (form, submission) = self.resolve_submission(form, id).await?;
        let cursors = self.cursors(format!("history {} {form} {submission}", self.caller.workspace)).await?;
        let before = cursors.read(cursor)?.map(u32::from_be_bytes);
        let page = self.store.list_history(self.caller.workspace, form, submission, before, limit).await?;
        let page = page.ok_or_else(|| ApiError::not_found(Code::SubmissionNotFound, id))?;
        let next = page.next.map(|last| cursors.write(&last.to_be_bytes()));
        Ok(ListPage { items: page.rows, next, total: None })
    }

    /// Moves a submission to the trash if it is at the `expected` revision. With `purge` it is erased, also from the trash;
    /// that needs the scope `admin`.
    pub async fn delete_submission(
        &self,
        form: &str,
        id: &str,
        purge: bool,
        expected: ExpectedRevision,
    ) -> Result<(), ApiError> {
        self.require_scope(if purge { Scope::Admin } else { Scope::Write })?;
        let (form, submission) = self.resolve_submission(form, id).await?;
        let step = if purge {
            self.store.purge_submission(self.caller.workspace, form, submission, expected, self.now()).await?
        } else {
            let now = self.now();
            self.store.trash_submission(self.caller.workspace, form, submission, expected, now).await?
        };
        into_result(step, Code::SubmissionNotFound, id).map(drop)
    }

    /// Restores a submission from the trash. Returns true with it if that was replayed.
    pub async fn restore_submission(
        &self,
        form: &str,
        id: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<(Submission, bool), ApiError> {
        self.require_scope(Scope::Write)?;
        let (form, submission) = self.resolve_submission(form, id).await?;
        let operation = IdempotentOperation::RestoreSubmission(form, submission);
        let key = request.idempotency_key(&self.caller, operation);
        let step =
            self.store.restore_submission(self.caller.workspace, form, submission, key, self.now()).await?;
        into_result(step, Code::SubmissionNotFound, id)
    }

    /// Resolves the ids of a form, which must exist outside the trash, and a submission.
    pub(super) async fn resolve_submission(
        &self,
        form: &str,
        id: &str,
    ) -> Result<(FormId, SubmissionId), ApiError> {
        Ok((self.form(form).await?.id, submission_id(id)?))
    }
}
