//! Batches: many submissions to a form in one write.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::metrics::count_batch;
use super::submissions::{Validated, body_error, validate_body};
use super::{ApiError, Current, IdempotentRequest, MAX_TRIES, ReplayableBody, Result, Session, into_result};
use crate::api::{BatchResult, BatchResults, Code};
use crate::domain::form::admission::{AcceptingReason, Refusal};
use crate::domain::submission::batch::{BatchFormat, split};
use crate::id::SubmissionId;
use crate::store::{IdempotentOperation, NewBatch, StepResult};

/// A request to create the submissions of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchRequest<'a> {
    pub request: IdempotentRequest<'a>,
    pub format: BatchFormat,
    /// Maximum bytes of one submission.
    pub max_submission: usize,
    /// Whether to check everything and store nothing.
    pub dry_run: bool,
    /// Whether the form's integrations are notified; `false` needs the scope `write`.
    pub notify: bool,
}

/// Each submission of a batch, or why it is refused.
type CheckedRows = Vec<Result<Validated>>;

impl Session {
    /// Stores the valid submissions of a batch in one write, and returns a result for each.
    pub async fn create_batch(&self, form: &str, batch: BatchRequest<'_>) -> Result<ReplayableBody> {
        let BatchRequest { request, dry_run, notify, .. } = batch;
        self.require_submit(notify)?;
        for _ in 0..MAX_TRIES {
            let current = self.current(form).await?;
            let accepting = self.accepting(&current.form).await?;
            let operation = IdempotentOperation::CreateBatch(current.form.id);
            let key = request.idempotency_key(&self.caller, operation).filter(|_| !dry_run);
            if let Some(body) = self.find_response(key.as_ref()).await? {
                return Ok((body, true));
            }
            accepting.map_err(|why| Refusal::not_accepting(&current.form, why))?;
            let checked = self.check_batch(&current, batch).await?;
            if dry_run {
                return Ok((self.dry_run_response(&current, checked).await?, false));
            }
            let valid = checked.iter().flatten().map(|(sent, _)| sent);
            let rows = valid.map(|sent| (sent.answers.text().into(), sent.metadata.clone())).collect();
            let full = Refusal::not_accepting(&current.form, AcceptingReason::Full);
            let (rows_sent, stored) = (checked.len(), Arc::new(AtomicUsize::new(0)));
            let counted = Arc::clone(&stored);
            let new = NewBatch {
                form: current.form.reference(),
                checked_revision: current.form.revision,
                checked_version: current.form.version,
                rows,
                notify,
                idempotency_key: key,
                respond: Box::new(move |ids| {
                    counted.store(ids.iter().flatten().count(), Ordering::Relaxed);
                    response(&checked, ids, 201, &full)
                }),
            };
            let step = self.store.accept_batch(new, self.now()).await?;
            if matches!(step, StepResult::Done(_)) {
                count_batch(&self.metrics, rows_sent, stored.load(Ordering::Relaxed));
            }
            if !matches!(step, StepResult::Recheck) {
                return into_result(step, Code::FormNotFound, form);
            }
        }
        Err(ApiError::overloaded())
    }

    /// Checks each submission of a batch, on the pool.
    async fn check_batch(&self, current: &Current, batch: BatchRequest<'_>) -> Result<CheckedRows> {
        let (limits, now) = (self.limits, self.now());
        let (current, body) = (current.clone(), batch.request.body.to_owned());
        let check = move |row: &str| match row.len() > batch.max_submission {
            true => {
                let detail = format!("the submission exceeds the limit of {} bytes", batch.max_submission);
                Err(ApiError::with_detail(Code::BodyTooLarge, detail))
            }
            false => validate_body(&current, row, Ok(()), &limits, now),
        };
        let work =
            move || Ok(split(&body, batch.format).map_err(body_error)?.into_iter().map(check).collect());
        self.run_job(work).await
    }

    /// Returns the response to a dry run: valid submissions have an id of zeros, as far as the form has places for them.
    async fn dry_run_response(&self, current: &Current, checked: CheckedRows) -> Result<String> {
        let places = match current.form.settings.max_responses {
            Some(most) => most.saturating_sub(self.store.count_submissions(current.form.reference()).await?),
            None => u64::MAX,
        };
        let ids: Vec<_> =
            (0..checked.len() as u64).map(|place| (place < places).then_some(SubmissionId::ZERO)).collect();
        let full = Refusal::not_accepting(&current.form, AcceptingReason::Full);
        Ok(response(&checked, &ids, 200, &full))
    }
}

/// Returns the response: a result for each submission. The valid ones have one of `ids` each, in their order, and `status`, or are
/// refused as `full`.
fn response(
    checked: &[Result<Validated>],
    ids: &[Option<SubmissionId>],
    status: u16,
    full: &Refusal,
) -> String {
    let full = ApiError::from(full.clone()).problem;
    let mut ids = ids.iter().copied();
    let result =
        |(index, row): (usize, &Result<Validated>)| match row.as_ref().map(|valid| (valid, ids.next())) {
            Ok(((_, dropped), Some(Some(id)))) => BatchResult::accepted(index, status, id, dropped.clone()),
            Ok(_) => BatchResult::refused(index, (*full).clone()),
            Err(error) => BatchResult::refused(index, (*error.problem).clone()),
        };
    let results = checked.iter().enumerate().map(result).collect();
    serde_json::to_string(&BatchResults { results }).expect("results can be written as JSON")
}
