//! Taking in submissions and reading them.

use super::{App, AppError, Attempt, Cursors, What, require};
use crate::domain::admission::{Refusal, accepting};
use crate::domain::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::submission::{self, Answers, Submission, SubmissionStatus, Unreadable};
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, SubmissionId};
use crate::store::{Current, NewSubmission, Operation, Retry, Step};

/// A submission that is stored.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub submission: Submission,
    /// Whether an earlier attempt had stored it.
    pub replayed: bool,
}

/// A page of submissions.
#[derive(Debug, Clone)]
pub struct SubmissionPage {
    pub submissions: Vec<Submission>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
    /// How many submissions all pages have together, if that was asked for.
    pub total: Option<u64>,
}

/// Which part of which list of submissions.
#[derive(Debug, Clone)]
pub struct SubmissionsWanted {
    pub query: SubmissionQuery,
    pub order: Order,
    pub cursor: Option<String>,
    /// How many at most.
    pub limit: usize,
    /// Whether to count all of the list.
    pub count: bool,
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
            let answers = read_answers(attempt.body)?;
            let retry = attempt.retry(caller, Operation::CreateSubmission(current.form.id));
            if let Some(id) = self.replay(retry.as_ref()).await? {
                return self.replayed(caller, id, &current, answers).await;
            }
            let answers = self.check(&current, answers).await?;
            let new = NewSubmission {
                form: current.form.id,
                checked_revision: current.form.revision,
                checked_version: current.form.version,
                answers: answers.text(),
                retry,
            };
            match self.store.accept_submission(caller.workspace, new, self.now()).await? {
                Step::Done(id) => {
                    return Ok(Accepted { submission: completed(id, &current, answers), replayed: false });
                }
                Step::Replayed(id) => return self.replayed(caller, id, &current, answers).await,
                Step::Refused(why) => return Err(AppError::Refused(why)),
                Step::Missing => return Err(AppError::NotFound(What::Form(form.to_owned()))),
                Step::Recheck => {}
            }
        }
        Err(AppError::Contended)
    }

    /// Checks the answers in the body as storing them would, and stores nothing: the answers, and the form's id.
    pub async fn try_submission(
        &self,
        caller: &Caller,
        form: &str,
        body: &str,
    ) -> Result<(FormId, Answers), AppError> {
        require(caller, Scope::Submit)?;
        let current = self.current(caller, form).await?;
        let answers = read_answers(body)?;
        let answers = self.check(&current, answers).await?;
        Ok((current.form.id, answers))
    }

    /// The answers as they are kept. Whether the form takes any comes first: then it does not matter what they are.
    async fn check(&self, current: &Current, answers: Answers) -> Result<Answers, AppError> {
        let form = &current.form;
        // Nearly all forms take as many as come, and need not be counted.
        let responses = match form.settings.max_responses {
            Some(_) => self.store.count_submissions(form.workspace, form.id).await?,
            None => 0,
        };
        let now = self.now();
        let open = accepting(form, responses, now);
        open.map_err(|why| AppError::Refused(Refusal::Shut(why)))?;
        let defaults = current.version.check(answers.values(), &self.limits, now);
        let defaults =
            defaults.map_err(|violations| AppError::Refused(Refusal::InvalidAnswers(violations)))?;
        Ok(answers.with(defaults))
    }

    /// What an earlier attempt stored: as it was kept, or as it was sent if it is gone since.
    async fn replayed(
        &self,
        caller: &Caller,
        id: SubmissionId,
        current: &Current,
        answers: Answers,
    ) -> Result<Accepted, AppError> {
        let kept = self.store.find_submission(caller.workspace, current.form.id, id).await?;
        let submission = kept.unwrap_or_else(|| completed(id, current, answers));
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

    /// A page of the form's submissions.
    pub async fn list_submissions(
        &self,
        caller: &Caller,
        form: &str,
        wanted: SubmissionsWanted,
    ) -> Result<SubmissionPage, AppError> {
        require(caller, Scope::Read)?;
        let missing = || AppError::NotFound(What::Form(form.to_owned()));
        let current = self.current(caller, form).await?;
        let SubmissionsWanted { query, order, cursor, limit, count } = wanted;
        let filter = SubmissionFilter::new(&query, &current.version.questions);
        let filter = filter.map_err(AppError::InvalidQuery)?;
        let (workspace, id) = (caller.workspace, current.form.id);
        let list = format!("submissions {workspace} {id} {query:?} {order:?}");
        let cursors = self.cursors().await?;
        let after = cursor.map(|text| submission_position(&cursors, &list, &text)).transpose()?;
        let page = self.store.list_submissions(workspace, id, &filter, order, after, limit).await?;
        let page = page.ok_or_else(missing)?;
        let total = match count {
            true => Some(self.store.count_filtered(workspace, id, &filter).await?),
            false => None,
        };
        let last = page.rows.last().filter(|_| page.more);
        let next = last.map(|last| cursors.write(&list, &last.id.to_bytes()));
        Ok(SubmissionPage { submissions: page.rows, next, total })
    }
}

fn submission_position(cursors: &Cursors, list: &str, text: &str) -> Result<SubmissionId, AppError> {
    let position = cursors.read(list, text).ok_or(AppError::InvalidCursor)?;
    position.try_into().map(SubmissionId::from_bytes).map_err(|_unfit| AppError::InvalidCursor)
}

fn read_answers(body: &str) -> Result<Answers, AppError> {
    submission::read(body).map_err(|unreadable| match unreadable {
        Unreadable::Syntax(error) => AppError::Malformed(error),
        Unreadable::Shape(violations) => AppError::Refused(Refusal::InvalidAnswers(violations)),
    })
}

fn completed(id: SubmissionId, current: &Current, answers: Answers) -> Submission {
    Submission {
        id,
        form: current.form.id,
        form_version: current.form.version,
        status: SubmissionStatus::Completed,
        answers: answers.into_text(),
    }
}
