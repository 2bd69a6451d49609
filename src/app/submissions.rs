//! Submissions: creating, reading, editing and deleting them, and their history.

use std::sync::Arc;

use super::metrics::count_submission;
use super::signer::Cursors;
use super::{ApiError, Current, IdempotentRequest, ListPage, MAX_TRIES, Result, Session, into_result};
use crate::api::Code;
use crate::clock::Timestamp;
use crate::domain::form::admission::{AcceptingReason, Refusal, accepting};
use crate::domain::form::settings::UnknownAnswers;
use crate::domain::form::{Form, Version};
use crate::domain::revision::ExpectedRevision;
use crate::domain::submission::edit::SubmissionPatch;
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{
    self, BodyError, ReplacedState, Submission, SubmissionStatus, SubmittedAnswers,
};
use crate::domain::validation::limits::Limits;
use crate::domain::workspace::Scope;
use crate::id::{FormId, FormRef, SubmissionId, SubmissionRef};
use crate::store::{CheckedEdit, IdempotentOperation, NewSubmission, StepResult, SubmissionRows};

/// A stored submission.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub submission: Submission,
    /// Whether an earlier request stored it.
    pub replayed: bool,
    /// Unknown keys, which were dropped.
    pub dropped: Vec<String>,
}

/// Answers to store, and the unknown keys that are dropped.
pub(super) type Validated = (SubmittedAnswers, Vec<String>);

/// A request for a page of the list of submissions.
#[derive(Debug, Clone, Default)]
pub struct SubmissionListRequest {
    /// Whether to list the submissions in the trash; then, as for the status `quarantined`, only `cursor` and `limit` have an
    /// effect.
    pub trashed: bool,
    pub query: SubmissionQuery,
    pub order: Order,
    pub cursor: Option<String>,
    /// Maximum number of items.
    pub limit: usize,
    /// Whether to count all items.
    pub count: bool,
}

impl SubmissionListRequest {
    /// Returns the status to list of the submissions that do not count; `None` to list those that do.
    pub(super) fn uncounted(&self) -> Option<SubmissionStatus> {
        let status = self.query.status.unwrap_or(SubmissionStatus::Completed);
        (self.trashed || status == SubmissionStatus::Quarantined).then_some(status)
    }
}

impl Session {
    /// Stores the answers in the body if the form accepts them, with this `status`. Without `notify`, which needs the scope
    /// `write`, its integrations are not notified.
    pub async fn create_submission(
        &self,
        form: &str,
        request: IdempotentRequest<'_>,
        status: SubmissionStatus,
        notify: bool,
    ) -> Result<Accepted> {
        let result = self.store_submission(form, request, status, notify).await;
        count_submission(&self.metrics, &result);
        result
    }

    async fn store_submission(
        &self,
        form: &str,
        request: IdempotentRequest<'_>,
        status: SubmissionStatus,
        notify: bool,
    ) -> Result<Accepted> {
        self.require_submit(notify)?;
        for _ in 0..MAX_TRIES {
            let current = self.current(form).await?;
            // Before the lookup: the request that takes the last place may be this one, sent twice.
            let accepting = self.accepting(&current.form).await?;
            let operation = IdempotentOperation::CreateSubmission(current.form.id);
            let idempotency_key = request.idempotency_key(&self.caller, operation);
            // Before all validation: a repeated request must not be refused because the form has changed since.
            if let Some(record) = self.find_record(idempotency_key.as_ref()).await? {
                let id = SubmissionId::from_bytes(record.result.to_be_bytes());
                return self.replay(id, &current, request.body).await;
            }
            let (sent, dropped) = self.validate(&current, request.body, accepting).await?;
            let new = NewSubmission {
                form: current.form.reference(),
                checked_revision: current.form.revision,
                checked_version: current.form.version,
                answers: sent.answers.text(),
                metadata: sent.metadata.as_deref(),
                status,
                notify,
                idempotency_key,
            };
            let step = self.store.accept_submission(new, self.now()).await?;
            if matches!(step, StepResult::Recheck) {
                continue;
            }
            return match into_result(step, Code::FormNotFound, form)? {
                (id, true) => self.replay(id, &current, request.body).await,
                (id, false) => {
                    let submission = Submission { status, ..to_submission(id, &current, sent) };
                    Ok(Accepted { submission, replayed: false, dropped })
                }
            };
        }
        Err(ApiError::overloaded())
    }

    /// Dry run of [`create_submission`](Self::create_submission). Returns the form's id, the answers that would be stored,
    /// and the unknown keys that would be dropped.
    pub async fn try_submission(
        &self,
        form: &str,
        body: &str,
        notify: bool,
    ) -> Result<(FormId, SubmittedAnswers, Vec<String>)> {
        self.require_submit(notify)?;
        let current = self.current(form).await?;
        let accepting = self.accepting(&current.form).await?;
        let (sent, dropped) = self.validate(&current, body, accepting).await?;
        Ok((current.form.id, sent, dropped))
    }

    /// Requires the scope for new submissions: without `notify` it is `write`.
    pub(super) fn require_submit(&self, notify: bool) -> Result<()> {
        self.require_scope(if notify { Scope::Submit } else { Scope::Write })
    }

    /// Returns whether `form` accepts answers now.
    pub(super) async fn accepting(&self, form: &Form) -> Result<Result<(), AcceptingReason>> {
        // Most forms have no limit, and need no counting.
        let responses = match form.settings.max_responses {
            Some(_) => self.store.count_submissions(form.reference()).await?,
            None => 0,
        };
        Ok(accepting(form, responses, self.now()))
    }

    /// Validates the body of a submission. Returns the answers to store, and the unknown keys to drop.
    pub(super) async fn validate(
        &self,
        current: &Current,
        body: &str,
        accepting: Result<(), AcceptingReason>,
    ) -> Result<Validated> {
        let (limits, now) = (self.limits, self.now());
        let is_costly = is_costly(&current.version, body.len());
        let (current, body) = (current.clone(), body.to_owned());
        let work = move || validate_body(&current, &body, accepting, &limits, now);
        self.run_here_or_job(is_costly, work).await
    }

    /// Returns the first response to a repeated request: the submission as it was stored then, whatever has become of it. A
    /// submission that was erased is rebuilt from the body.
    async fn replay(&self, id: SubmissionId, current: &Current, body: &str) -> Result<Accepted> {
        let form = current.form.id;
        let original = self.store.find_original(self.caller.workspace.form(form).submission(id)).await?;
        let version = match &original {
            Some(found) => self.version(form, found.form_version).await?,
            None => Arc::clone(&current.version),
        };
        let is_costly = is_costly(&version, body.len());
        let (current, body, limits) = (Current { version, ..current.clone() }, body.to_owned(), self.limits);
        let work = move || rebuild(&current, &body, original, id, &limits);
        let (submission, dropped) = self.run_here_or_job(is_costly, work).await?;
        Ok(Accepted { submission, replayed: true, dropped })
    }

    pub async fn get_submission(&self, form: &str, id: &str) -> Result<Submission> {
        self.require_scope(Scope::Read)?;
        let submission = self.resolve_submission(form, id).await?;
        let found = self.store.find_submission(submission).await?;
        found.ok_or_else(|| ApiError::not_found(Code::SubmissionNotFound, id))
    }

    pub async fn list_submissions(
        &self,
        form: &str,
        request: SubmissionListRequest,
    ) -> Result<ListPage<Submission>> {
        self.require_scope(Scope::Read)?;
        if let Some(status) = request.uncounted() {
            return self
                .list_uncounted_submissions(form, status, request.cursor.as_deref(), request.limit)
                .await;
        }
        let SubmissionListRequest { query, order, cursor, limit, count, .. } = request;
        let found = self.form(form).await?;
        let (workspace, id) = (self.caller.workspace, found.id);
        let cursors = self.cursors(format!("submissions {workspace} {id} {query:?} {order:?}")).await?;
        let filter = self.filter(&found, query).await?;
        let _permit = match filter.reads_answers() || count {
            true => Some(self.job_permit().await?),
            false => None,
        };
        let after = cursors.read(cursor.as_deref())?.map(SubmissionId::from_bytes);
        let page = self.store.list_submissions(workspace.form(id), &filter, order, after, limit).await?;
        let total = match count {
            true => self.store.count_filtered(workspace.form(id), &filter).await?,
            false => None,
        };
        list_page(page, form, &cursors, total)
    }

    /// Prepares `query`, on the pool if it tests answers: compiling its patterns may take 50 ms.
    pub(super) async fn filter(&self, form: &Form, query: SubmissionQuery) -> Result<SubmissionFilter> {
        if query.answers.is_empty() {
            return SubmissionFilter::new(&query, &[]).map_err(ApiError::invalid_query);
        }
        let version = self.version(form.id, form.version).await?;
        let prepare =
            move || SubmissionFilter::new(&query, &version.questions).map_err(ApiError::invalid_query);
        self.run_job(prepare).await
    }

    /// Lists the form's submissions in the trash, or those in quarantine if that is the `status`, newest first.
    async fn list_uncounted_submissions(
        &self,
        form: &str,
        status: SubmissionStatus,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<Submission>> {
        let id = self.form_id(form).await?;
        let workspace = self.caller.workspace;
        let cursors = self.cursors(format!("trashed {status} submissions {workspace} {id}")).await?;
        let before = cursors.read(cursor)?.map(SubmissionId::from_bytes);
        let page = self.store.list_trashed_submissions(workspace.form(id), status, before, limit).await?;
        list_page(page, form, &cursors, None)
    }

    /// Applies the merge patch in the body to a submission, if it is at the `expected` revision. The result must be valid for
    /// the version that the submission was validated against, whatever the form is now. Returns it with the unknown keys,
    /// which were dropped.
    pub async fn edit_submission(
        &self,
        form: &str,
        id: &str,
        body: &str,
        expected: &ExpectedRevision,
    ) -> Result<(Submission, Vec<String>)> {
        self.require_scope(Scope::Write)?;
        let current = self.current(form).await?;
        let submission = current.form.reference().submission(submission_id(id)?);
        let patch = SubmissionPatch::read(body).map_err(body_error)?;
        let _permit = self.submission_edits.acquire(submission.id).await;
        let (form, limits) = (current.form.id, self.limits);
        let texts = current.form.settings.language().texts();
        for _ in 0..MAX_TRIES {
            let found = self.store.find_submission(submission).await?;
            let found = found.filter(|found| found.status == SubmissionStatus::Completed);
            let found = found.ok_or_else(|| ApiError::not_found(Code::SubmissionNotFound, id))?;
            expected.check(found.revision())?;
            let version = self.version(form, found.form_version).await?;
            let mut patch = patch.clone();
            let dropped = match current.form.settings.unknown_answers() {
                UnknownAnswers::Drop => patch.split_unknown(&version),
                UnknownAnswers::Reject => Vec::new(),
            };
            let is_costly = patch.has_answers() && is_costly(&version, found.size() + patch.size());
            let original = found.clone();
            let work = move || {
                let edited = patch.apply(&original, &version, &limits, texts);
                Ok(edited.map_err(Refusal::InvalidAnswers)?)
            };
            let Some(edit) = self.run_here_or_job(is_costly, work).await? else {
                return Ok((found, dropped));
            };
            let checked = CheckedEdit { submission, seen_edits: found.edits(), edit };
            let step = self.store.edit_submission(checked, self.now()).await?;
            if !matches!(step, StepResult::Recheck) {
                return Ok((into_result(step, Code::SubmissionNotFound, id)?.0, dropped));
            }
        }
        Err(ApiError::overloaded())
    }

    /// Lists the states that edits of a submission replaced, newest first: at most `limit`, from `cursor` on.
    pub async fn list_history(
        &self,
        form: &str,
        id: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<ReplacedState>> {
        self.require_scope(Scope::Read)?;
        let submission = self.resolve_submission(form, id).await?;
        let FormRef { workspace, id: form } = submission.form;
        let cursors = self.cursors(format!("history {workspace} {form} {}", submission.id)).await?;
        let before = cursors.read(cursor)?.map(u32::from_be_bytes);
        let page = self.store.list_history(submission, before, limit).await?;
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
    ) -> Result<()> {
        self.require_scope(if purge { Scope::Admin } else { Scope::Write })?;
        let submission = self.resolve_submission(form, id).await?;
        let step = if purge {
            self.store.purge_submission(submission, expected, self.now()).await?
        } else {
            self.store.trash_submission(submission, expected, self.now()).await?
        };
        into_result(step, Code::SubmissionNotFound, id).map(drop)
    }

    /// Restores a submission from the trash, or releases it from quarantine if that is its `status`. Returns true with it if that
    /// was replayed.
    pub async fn restore_submission(
        &self,
        form: &str,
        id: &str,
        status: SubmissionStatus,
        request: IdempotentRequest<'_>,
    ) -> Result<(Submission, bool)> {
        self.require_scope(Scope::Write)?;
        let submission = self.resolve_submission(form, id).await?;
        let operation = match status {
            SubmissionStatus::Completed => IdempotentOperation::RestoreSubmission,
            SubmissionStatus::Quarantined => IdempotentOperation::ReleaseSubmission,
        };
        let key = request.idempotency_key(&self.caller, operation(submission.form.id, submission.id));
        let step = self.store.restore_submission(submission, status, key, self.now()).await?;
        into_result(step, Code::SubmissionNotFound, id)
    }

    /// Resolves the ids of a form, which must exist outside the trash, and a submission.
    async fn resolve_submission(&self, form: &str, id: &str) -> Result<SubmissionRef> {
        Ok(self.form(form).await?.reference().submission(submission_id(id)?))
    }
}

fn list_page(
    page: Option<SubmissionRows>,
    form: &str,
    cursors: &Cursors,
    total: Option<u64>,
) -> Result<ListPage<Submission>> {
    let page = page.ok_or_else(|| ApiError::not_found(Code::FormNotFound, form))?;
    let next = page.next.map(|last| cursors.write(&last.to_bytes()));
    Ok(ListPage { items: page.rows, next, total })
}

fn submission_id(id: &str) -> Result<SubmissionId> {
    id.parse().map_err(|_invalid| ApiError::not_found(Code::SubmissionNotFound, id))
}

pub(super) fn body_error(why: BodyError) -> ApiError {
    match why {
        BodyError::Syntax(error) => error.into(),
        BodyError::Shape(violations) => Refusal::InvalidAnswers(violations).into(),
    }
}

/// Whether checking a body of `bytes` bytes may take longer than a millisecond.
pub(super) fn is_costly(version: &Version, bytes: usize) -> bool {
    const LARGE_BODY: usize = 64 << 10;
    const SEARCHED_BODY: usize = 4 << 10;
    const LARGE_PATTERNS: usize = 16 << 10;
    bytes > LARGE_BODY
        || version.searches && (bytes > SEARCHED_BODY || version.pattern_bytes > LARGE_PATTERNS)
}

/// Validates `body`, unless the form is not `accepting` answers. Returns the answers to store, and the unknown keys to drop.
pub(super) fn validate_body(
    current: &Current,
    body: &str,
    accepting: Result<(), AcceptingReason>,
    limits: &Limits,
    now: Timestamp,
) -> Result<Validated> {
    let sent = submission::read(body, limits).map_err(body_error)?;
    accepting.map_err(|why| Refusal::not_accepting(&current.form, why))?;
    let (sent, dropped) = drop_unknown(current, sent);
    Ok((validate_answers(current, sent, limits, now)?, dropped))
}

/// Returns the submission `id` and its dropped keys as in the first response to `body`: the `original`, or one rebuilt from
/// `body` if it was erased.
fn rebuild(
    current: &Current,
    body: &str,
    original: Option<Submission>,
    id: SubmissionId,
    limits: &Limits,
) -> Result<(Submission, Vec<String>)> {
    let sent = submission::read(body, limits).map_err(body_error)?;
    if let Some(original) = original {
        // Keys that the questions of its version do not have were dropped.
        return Ok((original, current.version.split_unknown(sent.answers).1));
    }
    let (sent, dropped) = drop_unknown(current, sent);
    // If the form has changed and would now refuse the answers, they are returned without its defaults.
    let at = Timestamp::from_millis(id.millis());
    let sent = validate_answers(current, sent.clone(), limits, at).unwrap_or(sent);
    Ok((to_submission(id, current, sent), dropped))
}

/// Drops unknown answers if the form is set to; returns their keys.
fn drop_unknown(current: &Current, sent: SubmittedAnswers) -> (SubmittedAnswers, Vec<String>) {
    match current.form.settings.unknown_answers() {
        UnknownAnswers::Reject => (sent, Vec::new()),
        UnknownAnswers::Drop => {
            let (answers, dropped) = current.version.split_unknown(sent.answers);
            (SubmittedAnswers { answers, ..sent }, dropped)
        }
    }
}

/// Validates `sent` against the questions of the form, and adds their default values.
fn validate_answers(
    Current { form, version, .. }: &Current,
    mut sent: SubmittedAnswers,
    limits: &Limits,
    now: Timestamp,
) -> Result<SubmittedAnswers> {
    let texts = form.settings.language().texts();
    let defaults = version.check(sent.answers.values(), limits, now, texts).unwrap_or_else(|violations| {
        sent.violations.extend(violations);
        Vec::new()
    });
    if !sent.violations.is_empty() {
        return Err(Refusal::InvalidAnswers(sent.violations).into());
    }
    Ok(SubmittedAnswers { answers: sent.answers.with_defaults(defaults), ..sent })
}

fn to_submission(id: SubmissionId, current: &Current, sent: SubmittedAnswers) -> Submission {
    Submission {
        id,
        form: current.form.id,
        form_version: current.form.version,
        status: SubmissionStatus::Completed,
        answers: sent.answers.into_text(),
        metadata: sent.metadata,
        edited: None,
        deleted_at: None,
    }
}
