//! Submissions in the embedded store: load, ask the domain, write.

use std::sync::Arc;

use async_trait::async_trait;

use super::engine::tx::{Direction, Tx};
use super::forms::find_live;
use super::layout::{self, Counters};
use super::{SledStore, retries};
use crate::clock::Timestamp;
use crate::domain::admission::{Remembered, Seen, Verdict, admit};
use crate::domain::submission::Submission;
use crate::id::{FormId, Random, SubmissionId, WorkspaceId};
use crate::store::{NewSubmission, Page, Retry, Step, StoreError, Submissions};

/// A clock that steps back by more than this is followed; less is ridden out on the ids' own time.
const RIDDEN_OUT_MILLIS: i64 = 60_000;

/// Bytes after which a page ends: a thousand of the largest submissions would be a gigabyte.
const PAGE_BYTES: usize = 4 << 20;

#[async_trait]
impl Submissions for SledStore {
    async fn find_remembered(&self, retry: &Retry) -> Result<Option<Remembered>, StoreError> {
        let body = self.engine.get(&layout::remembered(retry))?;
        body.map(|body| layout::decode_remembered(&body)).transpose()
    }

    async fn accept_submission(
        &self,
        workspace: WorkspaceId,
        new: NewSubmission<'_>,
        now: Timestamp,
    ) -> Result<Step<SubmissionId>, StoreError> {
        let checked = Checked {
            form: new.form,
            revision: new.checked_revision,
            row: layout::encode_submission(new.checked_version, new.answers),
            retry: new.retry,
        };
        let random = Arc::clone(&self.random);
        self.engine.write(move |tx| accept(tx, &*random, workspace, checked, now)).await
    }

    async fn count_submissions(&self, workspace: WorkspaceId, form: FormId) -> Result<u64, StoreError> {
        match self.live_form(workspace, form)? {
            Some(form) => Ok(self.counters(form.id)?.responses),
            None => Ok(0),
        }
    }

    async fn find_submission(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        submission: SubmissionId,
    ) -> Result<Option<Submission>, StoreError> {
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        let key = layout::submission(form, submission);
        self.engine.get(&key)?.map(|body| layout::decode_submission(&key, body)).transpose()
    }

    async fn list_submissions(
        &self,
        workspace: WorkspaceId,
        form: FormId,
        before: Option<SubmissionId>,
        limit: usize,
    ) -> Result<Option<Page<Submission>>, StoreError> {
        if self.live_form(workspace, form)?.is_none() {
            return Ok(None);
        }
        self.scan_apart(limit, move |store| {
            let range = layout::submissions(form, before);
            let (mut rows, cut) =
                store.engine.scan_within(range, Direction::Descending, limit + 1, PAGE_BYTES)?;
            let more = cut || rows.len() > limit;
            rows.truncate(limit);
            let decoded = rows.into_iter().map(|(key, body)| layout::decode_submission(&key, body));
            Ok(Page { rows: decoded.collect::<Result<_, _>>()?, more })
        })
        .await
        .map(Some)
    }
}

/// A submission made ready before the writer's turn.
struct Checked {
    form: FormId,
    revision: u64,
    row: Vec<u8>,
    retry: Option<Retry>,
}

fn accept(
    tx: &mut Tx<'_>,
    random: &dyn Random,
    workspace: WorkspaceId,
    new: Checked,
    now: Timestamp,
) -> Result<Step<SubmissionId>, StoreError> {
    let Some(form) = find_live(tx, workspace, new.form)? else { return Ok(Step::Missing) };
    let earlier = match &new.retry {
        Some(retry) => retries::recall(tx, retry)?.map(|earlier| (earlier, retry.body)),
        None => None,
    };
    let seen = Seen { form: &form, checked_revision: new.revision, earlier };
    match admit(&seen, now) {
        Ok(Verdict::Store) => write(tx, random, new, now).map(Step::Done),
        Ok(Verdict::Replay(earlier)) => {
            Ok(Step::Replayed(SubmissionId::from_bytes(earlier.made.to_be_bytes())))
        }
        Ok(Verdict::Recheck) => Ok(Step::Recheck),
        Err(why) => Ok(Step::Refused(why)),
    }
}

fn write(
    tx: &mut Tx<'_>,
    random: &dyn Random,
    new: Checked,
    now: Timestamp,
) -> Result<SubmissionId, StoreError> {
    let counters = tx.get(&layout::counters(new.form))?;
    let counters = counters.map_or(Ok(Counters::default()), |body| Counters::decode(&body))?;
    let id = next_id(tx, random, counters.last, now);
    // Above all ids of the form, so nothing can stand there.
    tx.put_new(layout::submission(new.form, id), new.row);
    let counters = Counters { responses: counters.responses + 1, last: Some(id) };
    tx.put_last(layout::counters(new.form), counters.encode());
    if let Some(retry) = &new.retry {
        retries::remember(tx, retry, u128::from_be_bytes(id.to_bytes()), now)?;
    }
    Ok(id)
}

/// The next id of a form: above the last one given, so that the order of ids is the order of commits. One wrong boot
/// clock must not pin time to the far future, though: a large step back is followed. Positions in lists given out
/// before would then skip what comes after, so a new signing key makes them invalid.
fn next_id(tx: &mut Tx<'_>, random: &dyn Random, last: Option<SubmissionId>, now: Timestamp) -> SubmissionId {
    let stepped_back = last.filter(|last| last.millis() - now.millis() > RIDDEN_OUT_MILLIS);
    let Some(ahead) = stepped_back else { return SubmissionId::after(last, now.millis(), random) };
    tracing::warn!(last = %ahead, now = %now, "the clock was set back; submission times follow it, cursors end");
    let mut signing_key = [0; 32];
    random.fill(&mut signing_key);
    tx.put(layout::SIGNING_KEY.to_vec(), signing_key.to_vec());
    SubmissionId::after(None, now.millis(), random)
}
