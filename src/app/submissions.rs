//! Creating and reading submissions.

use std::sync::Arc;

use super::cursor::Cursors;
use super::{
    App, AppError, Current, IdempotentRequest, ListPage, Resource, into_result, no_form, require_scope,
};
use crate::clock::Timestamp;
use crate::domain::form::admission::{AcceptingReason, Refusal, accepting};
use crate::domain::form::settings::UnknownAnswers;
use crate::domain::form::{Form, Version};
use crate::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{self, BodyError, Submission, SubmissionStatus, SubmittedAnswers};
use crate::domain::validation::limits::Limits;
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, SubmissionId};
use crate::store::{IdempotencyKey, IdempotentOperation, NewSubmission, StepResult, SubmissionRows};

/// A stored submission.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub submission: Submission,
    /// Whether an earlier request stored it.
    pub replayed: bool,
    /// Unknown keys, which were dropped.
    pub dropped: Vec<String>,
}

/// The result of a dry run.
#[derive(Debug, Clone)]
pub struct DryRunSubmission {
    pub form: FormId,
    /// The submission that would be stored.
    pub sent: SubmittedAnswers,
    /// Unknown keys, which would be dropped.
    pub dropped: Vec<String>,
}

/// A request for a page of the list of submissions.
#[derive(Debug, Clone)]
pub struct SubmissionListRequest {
    pub query: SubmissionQuery,
    pub order: Order,
    pub cursor: Option<String>,
    /// Maximum number of items.
    pub limit: usize,
    /// Whether to count all items.
    pub count: bool,
}

impl App {
    /// Stores the answers in the body if the form takes them.
    pub async fn create_submission(
        &self,
        caller: &Caller,
        form: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<Accepted, AppError> {
        require_scope(caller, Scope::Submit)?;
        for _ in 0..3 {
            let current = self.current(caller, form).await?;
            let retry =
                request.idempotency_key(caller, IdempotentOperation::CreateSubmission(current.form.id));
            if let Some(id) = self.replay(retry.as_ref()).await? {
                return self.replayed(caller, id, &current, request.body).await;
            }
            let (sent, dropped) = self.check(caller, &current, request.body).await?;
            let new = NewSubmission {
                form: current.form.id,
                checked_revision: current.form.revision,
                checked_version: current.form.version,
                answers: sent.answers.text(),
                metadata: sent.metadata.as_deref(),
                idempotency_key: retry,
            };
            let step = self.store.accept_submission(caller.workspace, new, self.now()).await?;
            if matches!(step, StepResult::Recheck) {
                continue;
            }
            return match into_result(step, Resource::Form(form.to_owned()))? {
                (id, true) => self.replayed(caller, id, &current, request.body).await,
                (id, false) => {
                    Ok(Accepted { submission: to_submission(id, &current, sent), replayed: false, dropped })
                }
            };
        }
        Err(AppError::Overloaded)
    }

    /// Dry run of [`create_submission`](Self::create_submission).
    pub async fn try_submission(
        &self,
        caller: &Caller,
        form: &str,
        body: &str,
    ) -> Result<DryRunSubmission, AppError> {
        require_scope(caller, Scope::Submit)?;
        let current = self.current(caller, form).await?;
        let (sent, dropped) = self.check(caller, &current, body).await?;
        Ok(DryRunSubmission { form: current.form.id, sent, dropped })
    }

    /// The submission as it would be stored, and the keys that are left out.
    async fn check(
        &self,
        caller: &Caller,
        current: &Current,
        body: &str,
    ) -> Result<(SubmittedAnswers, Vec<String>), AppError> {
        let form = &current.form; // Nearly all forms take as many as come, and need not be counted.
        let responses = match form.settings.max_responses {
            Some(_) => self.store.count_submissions(form.workspace, form.id).await?,
            None => 0,
        };
        let now = self.now();
        let (open, limits) = (accepting(form, responses, now), self.limits);
        if !is_costly(&current.version, body.len()) {
            return evaluate(current, body, open, &limits, now);
        }
        let (current, body) = (current.clone(), body.to_owned());
        self.run_job(caller, move || evaluate(&current, &body, open, &limits, now)).await
    }

    /// The first answer to an earlier attempt: the submission as it was stored, whatever has become of it since. One that
    /// was erased is answered from what was sent.
    async fn replayed(
        &self,
        caller: &Caller,
        id: SubmissionId,
        current: &Current,
        body: &str,
    ) -> Result<Accepted, AppError> {
        let form = current.form.id;
        let original = self.store.find_original(caller.workspace, form, id).await?;
        let version = match &original {
            Some(found) => self.version(caller.workspace, form, found.form_version).await?,
            None => Arc::clone(&current.version),
        };
        let current = Current { version, ..current.clone() };
        let limits = self.limits;
        let (submission, dropped) = if is_costly(&current.version, body.len()) {
            let body = body.to_owned();
            self.run_job(caller, move || rebuild(&current, &body, original, id, &limits)).await?
        } else {
            rebuild(&current, body, original, id, &limits)?
        };
        Ok(Accepted { submission, replayed: true, dropped })
    }

    /// The submission that an earlier attempt made. It is looked up before anything else is asked: the retry of what
    /// was stored must not be refused for what has changed since.
    async fn replay(&self, retry: Option<&IdempotencyKey>) -> Result<Option<SubmissionId>, AppError> {
        let Some(retry) = retry else { return Ok(None) };
        let earlier = self.store.find_idempotency_record(retry).await?;
        match earlier.and_then(|earlier| earlier.replay(retry.body, self.now())) {
            Some(Ok(earlier)) => Ok(Some(SubmissionId::from_bytes(earlier.result.to_be_bytes()))),
            Some(Err(why)) => Err(AppError::Refused(why)),
            None => Ok(None),
        }
    }

    /// One submission.
    pub async fn get_submission(
        &self,
        caller: &Caller,
        form: &str,
        id: &str,
    ) -> Result<Submission, AppError> {
        require_scope(caller, Scope::Read)?;
        let form = self.form(caller, form).await?.id;
        let missing = || AppError::NotFound(Resource::Submission(id.to_owned()));
        let submission = submission_id(id)?;
        self.store.find_submission(caller.workspace, form, submission).await?.ok_or_else(missing)
    }

    /// A page of the form's submissions.
    pub async fn list_submissions(
        &self,
        caller: &Caller,
        form: &str,
        request: SubmissionListRequest,
    ) -> Result<ListPage<Submission>, AppError> {
        require_scope(caller, Scope::Read)?;
        let found = self.form(caller, form).await?;
        let SubmissionListRequest { query, order, cursor, limit, count } = request;
        let (workspace, id) = (caller.workspace, found.id);
        let cursors = self.cursors(format!("submissions {workspace} {id} {query:?} {order:?}")).await?;
        let filter = self.filter(caller, &found, query).await?;
        let _permit = match filter.reads_answers() || count {
            true => Some(self.job_permit(caller).await?),
            false => None,
        };
        let after = cursors.read(cursor.as_deref())?.map(SubmissionId::from_bytes);
        let page = self.store.list_submissions(workspace, id, &filter, order, after, limit).await?;
        let total = match count {
            true => self.store.count_filtered(workspace, id, &filter).await?,
            false => None,
        };
        Ok(list_page(page.ok_or_else(|| no_form(form))?, &cursors, total))
    }

    /// Prepares `query`. To compile its patterns may take 50 ms.
    async fn filter(
        &self,
        caller: &Caller,
        form: &Form,
        query: SubmissionQuery,
    ) -> Result<SubmissionFilter, AppError> {
        if query.answers.is_empty() {
            return SubmissionFilter::new(&query, &[]).map_err(AppError::InvalidQuery);
        }
        let version = self.present_version(form).await?;
        let prepare =
            move || SubmissionFilter::new(&query, &version.questions).map_err(AppError::InvalidQuery);
        self.run_job(caller, prepare).await
    }

    /// A page of those in the trash, newest first: `limit` at most, from `cursor` on.
    pub async fn list_trashed_submissions(
        &self,
        caller: &Caller,
        form: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<Submission>, AppError> {
        require_scope(caller, Scope::Read)?;
        let id = self.form_id(caller, form).await?;
        let cursors = self.cursors(format!("trashed submissions {} {id}", caller.workspace)).await?;
        let before = cursors.read(cursor)?.map(SubmissionId::from_bytes);
        let page = self.store.list_trashed_submissions(caller.workspace, id, before, limit).await?;
        Ok(list_page(page.ok_or_else(|| no_form(form))?, &cursors, None))
    }
}

fn list_page(page: SubmissionRows, cursors: &Cursors, total: Option<u64>) -> ListPage<Submission> {
    let next = page.next.map(|last| cursors.write(&last.to_bytes()));
    ListPage { items: page.rows, next, total }
}

/// The submission that `id` names.
pub(super) fn submission_id(id: &str) -> Result<SubmissionId, AppError> {
    id.parse().map_err(|_unfit| AppError::NotFound(Resource::Submission(id.to_owned())))
}

/// Converts a [`BodyError`].
pub(super) fn body_error(why: BodyError) -> AppError {
    match why {
        BodyError::Syntax(error) => AppError::Malformed(error),
        BodyError::Shape(violations) => AppError::Refused(Refusal::InvalidAnswers(violations)),
    }
}

/// Whether checking a body of `bytes` bytes may take longer than a millisecond.
pub(super) fn is_costly(version: &Version, bytes: usize) -> bool {
    const LARGE_BODY: usize = 64 << 10;
    const SEARCHED_BODY: usize = 4 << 10;
    const LARGE_PATTERNS: usize = 16 << 10;
    bytes > LARGE_BODY
        || version.searches() && (bytes > SEARCHED_BODY || version.pattern_bytes() > LARGE_PATTERNS)
}

/// Returns the submission in `body` as it is stored, and the keys that are left out. Whether the form takes any answers
/// is decided before the answers are checked.
fn evaluate(
    current: &Current,
    body: &str,
    open: Result<(), AcceptingReason>,
    limits: &Limits,
    now: Timestamp,
) -> Result<(SubmittedAnswers, Vec<String>), AppError> {
    let sent = submission::read(body, limits).map_err(body_error)?;
    open.map_err(|why| AppError::Refused(Refusal::not_accepting(&current.form, why)))?;
    let (sent, dropped) = without_unknown(current, sent);
    Ok((validated(&current.version, sent, limits, now)?, dropped))
}

/// The first answer to the body that made the submission `id`, from its `original` if that is still there.
fn rebuild(
    current: &Current,
    body: &str,
    original: Option<Submission>,
    id: SubmissionId,
    limits: &Limits,
) -> Result<(Submission, Vec<String>), AppError> {
    let sent = submission::read(body, limits).map_err(body_error)?;
    if let Some(original) = original {
        // What the questions of then did not have was left out then.
        return Ok((original, current.version.split_unknown(sent.answers).1));
    }
    let (sent, dropped) = without_unknown(current, sent); // The form may have changed since: answers that it would refuse now come back without its defaults.
    let at = Timestamp::from_millis(id.millis());
    let sent = validated(&current.version, sent.clone(), limits, at).unwrap_or(sent);
    Ok((to_submission(id, current, sent), dropped))
}

/// What the form looks at, and the keys of the answers that it leaves out.
fn without_unknown(current: &Current, sent: SubmittedAnswers) -> (SubmittedAnswers, Vec<String>) {
    match current.form.settings.unknown_answers() {
        UnknownAnswers::Reject => (sent, Vec::new()),
        UnknownAnswers::Drop => {
            let (answers, dropped) = current.version.split_unknown(sent.answers);
            (SubmittedAnswers { answers, ..sent }, dropped)
        }
    }
}

/// `sent` with what is kept besides it, if it fits the questions.
fn validated(
    version: &Version,
    mut sent: SubmittedAnswers,
    limits: &Limits,
    now: Timestamp,
) -> Result<SubmittedAnswers, AppError> {
    let defaults = version.check(sent.answers.values(), limits, now).unwrap_or_else(|violations| {
        sent.violations.extend(violations);
        Vec::new()
    });
    if !sent.violations.is_empty() {
        return Err(AppError::Refused(Refusal::InvalidAnswers(sent.violations)));
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
