//! Taking in submissions and reading them.

use super::{App, AppError, Attempt, Cursors, What, require};
use crate::domain::admission::{Refusal, accepting};
use crate::domain::filter::{Order, SubmissionFilter, SubmissionQuery};
use crate::domain::settings::UnknownAnswers;
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
    /// Keys that are no question of the form, and were left out.
    pub dropped: Vec<String>,
}

/// A submission that would be stored.
#[derive(Debug, Clone)]
pub struct Tried {
    pub form: FormId,
    /// As they would be kept.
    pub answers: Answers,
    /// Keys that are no question of the form, and would be left out.
    pub dropped: Vec<String>,
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
            let (answers, dropped) = self.check(&current, answers).await?;
            let new = NewSubmission {
                form: current.form.id,
                checked_revision: current.form.revision,
                checked_version: current.form.version,
                answers: answers.text(),
                retry,
            };
            match self.store.accept_submission(caller.workspace, new, self.now()).await? {
                Step::Done(id) => {
                    let submission = completed(id, &current, answers);
                    return Ok(Accepted { submission, replayed: false, dropped });
                }
                Step::Replayed(id) => return self.replayed(caller, id, &current, answers).await,
                Step::Refused(why) => return Err(AppError::Refused(why)),
                Step::Missing => return Err(AppError::NotFound(What::Form(form.to_owned()))),
                Step::Recheck => {}
            }
        }
        Err(AppError::Contended)
    }

    /// Checks the answers in the body as storing them would, and stores nothing.
    pub async fn try_submission(&self, caller: &Caller, form: &str, body: &str) -> Result<Tried, AppError> {
        require(caller, Scope::Submit)?;
        let current = self.current(caller, form).await?;
        let answers = read_answers(body)?;
        let (answers, dropped) = self.check(&current, answers).await?;
        Ok(Tried { form: current.form.id, answers, dropped })
    }

    /// The answers as they are kept, and the keys of those that are not. Whether the form takes any comes first: then it
    /// does not matter what they are.
    async fn check(&self, current: &Current, answers: Answers) -> Result<(Answers, Vec<String>), AppError> {
        let form = &current.form;
        // Nearly all forms take as many as come, and need not be counted.
        let responses = match form.settings.max_responses {
            Some(_) => self.store.count_submissions(form.workspace, form.id).await?,
            None => 0,
        };
        let now = self.now();
        let open = accepting(form, responses, now);
        open.map_err(|why| AppError::Refused(Refusal::shut(form, why)))?;
        let (answers, dropped) = kept(current, answers);
        let defaults = current.version.check(answers.values(), &self.limits, now);
        let defaults =
            defaults.map_err(|violations| AppError::Refused(Refusal::InvalidAnswers(violations)))?;
        Ok((answers.with(defaults), dropped))
    }

    /// What an earlier attempt stored: as it was kept, or as it was sent if it is gone since.
    async fn replayed(
        &self,
        caller: &Caller,
        id: SubmissionId,
        current: &Current,
        answers: Answers,
    ) -> Result<Accepted, AppError> {
        let form = current.form.id;
        let Some(submission) = self.store.find_submission(caller.workspace, form, id).await? else {
            let (answers, dropped) = kept(current, answers);
            return Ok(Accepted { submission: completed(id, current, answers), replayed: true, dropped });
        };
        // What the questions of then did not have was left out then.
        let version = self.store.find_version(caller.workspace, form, submission.form_version).await?;
        let dropped = version.map_or_else(Vec::new, |version| version.sort_out(answers).1);
        Ok(Accepted { submission, replayed: true, dropped })
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

/// The answers that the form looks at, and the keys of those that it leaves out.
fn kept(current: &Current, answers: Answers) -> (Answers, Vec<String>) {
    match current.form.settings.unknown_answers {
        UnknownAnswers::Reject => (answers, Vec::new()),
        UnknownAnswers::Drop => current.version.sort_out(answers),
    }
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
