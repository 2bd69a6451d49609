//! Taking in submissions and reading them.

use super::{App, AppError, Attempt, Cursors, What, require};
use crate::domain::admission::{Refusal, accepting};
use crate::domain::submission::{self, Replaced, Sent, Submission, SubmissionStatus, Unreadable};
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, SubmissionId};
use crate::store::{Current, NewSubmission, Operation, Page, Retry, Step};

/// A submission that is stored.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub submission: Submission,
    /// Whether an earlier attempt had stored it.
    pub replayed: bool,
}

/// A page of submissions, newest first.
#[derive(Debug, Clone)]
pub struct SubmissionPage {
    pub submissions: Vec<Submission>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

impl App {
    /// Stores the answers in the body if the form takes them.
    pub async fn create_submission(
        &self,
        caller: &Caller,
        form: &str,
        attempt: Attempt<'_>,
    ) -> Result<Accepted, AppError> {
        require(caller, Scope::Submit)?;
        for _ in 0..3 {
            let current = self.current(caller, form).await?;
            let sent = self.read(attempt.body)?;
            let retry = attempt.retry(caller, Operation::CreateSubmission(current.form.id));
            if let Some(id) = self.replay(retry.as_ref()).await? {
                return self.replayed(caller, id, &current, sent).await;
            }
            let sent = self.check(&current, sent).await?;
            let new = NewSubmission {
                form: current.form.id,
                checked_revision: current.form.revision,
                checked_version: current.form.version,
                answers: sent.answers.text(),
                metadata: sent.metadata.as_deref(),
                retry,
            };
            match self.store.accept_submission(caller.workspace, new, self.now()).await? {
                Step::Done(id) => {
                    return Ok(Accepted { submission: completed(id, &current, sent), replayed: false });
                }
                Step::Replayed(id) => return self.replayed(caller, id, &current, sent).await,
                Step::Refused(why) => return Err(AppError::Refused(why)),
                Step::Missing => return Err(AppError::NotFound(What::Form(form.to_owned()))),
                Step::Recheck => {}
            }
        }
        Err(AppError::Contended)
    }

    /// Checks the body as storing it would, and stores nothing: what would be stored, and the form's id.
    pub async fn try_submission(
        &self,
        caller: &Caller,
        form: &str,
        body: &str,
    ) -> Result<(FormId, Sent), AppError> {
        require(caller, Scope::Submit)?;
        let current = self.current(caller, form).await?;
        let sent = self.read(body)?;
        let sent = self.check(&current, sent).await?;
        Ok((current.form.id, sent))
    }

    fn read(&self, body: &str) -> Result<Sent, AppError> {
        submission::read(body, &self.limits).map_err(unreadable)
    }

    /// What was sent as it is kept. Whether the form takes any comes first: then it does not matter what they are.
    async fn check(&self, current: &Current, sent: Sent) -> Result<Sent, AppError> {
        let form = &current.form;
        // Nearly all forms take as many as come, and need not be counted.
        let responses = match form.settings.max_responses {
            Some(_) => self.store.count_submissions(form.workspace, form.id).await?,
            None => 0,
        };
        let now = self.now();
        let open = accepting(form, responses, now);
        open.map_err(|why| AppError::Refused(Refusal::Shut(why)))?;
        let defaults = current.version.check(sent.answers.values(), &self.limits, now);
        let defaults =
            defaults.map_err(|violations| AppError::Refused(Refusal::InvalidAnswers(violations)))?;
        Ok(Sent { answers: sent.answers.with(defaults), metadata: sent.metadata })
    }

    /// What an earlier attempt stored: as it was kept, before any edit; or as it was sent, if it is gone since.
    async fn replayed(
        &self,
        caller: &Caller,
        id: SubmissionId,
        current: &Current,
        sent: Sent,
    ) -> Result<Accepted, AppError> {
        let form = current.form.id;
        let kept = self.store.find_submission(caller.workspace, form, id).await?;
        let mut submission = kept.unwrap_or_else(|| completed(id, current, sent));
        if submission.edits() > 0 {
            let first = self.store.list_history(caller.workspace, form, id, Some(1), 1).await?;
            for Replaced { answers, metadata, .. } in first.into_iter().flat_map(|page| page.rows) {
                (submission.answers, submission.metadata) = (answers, metadata);
            }
        }
        Ok(Accepted { submission, replayed: true })
    }

    /// The submission that an earlier attempt made. It is looked up before anything else is asked: the retry of what
    /// was stored must not be refused for what has changed since.
    async fn replay(&self, retry: Option<&Retry>) -> Result<Option<SubmissionId>, AppError> {
        let Some(retry) = retry else { return Ok(None) };
        let earlier = self.store.find_remembered(retry).await?;
        match earlier.and_then(|earlier| earlier.answer(retry.body, self.now())) {
            Some(Ok(earlier)) => Ok(Some(SubmissionId::from_bytes(earlier.made.to_be_bytes()))),
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
        require(caller, Scope::Read)?;
        let form = self.current(caller, form).await?.form.id;
        let missing = || AppError::NotFound(What::Submission(id.to_owned()));
        let id: SubmissionId = id.parse().map_err(|_unfit| missing())?;
        self.store.find_submission(caller.workspace, form, id).await?.ok_or_else(missing)
    }

    /// A page of the form's submissions, `limit` at most, from `cursor` on.
    pub async fn list_submissions(
        &self,
        caller: &Caller,
        form: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<SubmissionPage, AppError> {
        require(caller, Scope::Read)?;
        let missing = || AppError::NotFound(What::Form(form.to_owned()));
        let id = self.form_id(caller, form).await?;
        let list = format!("submissions {} {id}", caller.workspace);
        let cursors = self.cursors().await?;
        let before = cursor.map(|text| submission_position(&cursors, &list, text)).transpose()?;
        let page =
            self.store.list_submissions(caller.workspace, id, before, limit).await?.ok_or_else(missing)?;
        Ok(SubmissionPage::new(page, &cursors, &list))
    }

    /// The same, of those in the trash.
    pub async fn list_trashed_submissions(
        &self,
        caller: &Caller,
        form: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<SubmissionPage, AppError> {
        require(caller, Scope::Read)?;
        let missing = || AppError::NotFound(What::Form(form.to_owned()));
        let id = self.form_id(caller, form).await?;
        let list = format!("trashed submissions {} {id}", caller.workspace);
        let cursors = self.cursors().await?;
        let before = cursor.map(|text| submission_position(&cursors, &list, text)).transpose()?;
        let page = self.store.list_trashed_submissions(caller.workspace, id, before, limit).await?;
        Ok(SubmissionPage::new(page.ok_or_else(missing)?, &cursors, &list))
    }
}

impl SubmissionPage {
    fn new(page: Page<Submission>, cursors: &Cursors, list: &str) -> Self {
        let last = page.rows.last().filter(|_| page.more);
        let next = last.map(|last| cursors.write(list, &last.id.to_bytes()));
        Self { submissions: page.rows, next }
    }
}

fn submission_position(cursors: &Cursors, list: &str, text: &str) -> Result<SubmissionId, AppError> {
    let position = cursors.read(list, text).ok_or(AppError::InvalidCursor)?;
    position.try_into().map(SubmissionId::from_bytes).map_err(|_unfit| AppError::InvalidCursor)
}

/// Why a body cannot be read.
pub(super) fn unreadable(why: Unreadable) -> AppError {
    match why {
        Unreadable::Syntax(error) => AppError::Malformed(error),
        Unreadable::Shape(violations) => AppError::Refused(Refusal::InvalidAnswers(violations)),
    }
}

fn completed(id: SubmissionId, current: &Current, sent: Sent) -> Submission {
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
