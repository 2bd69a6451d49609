//! New submissions: those that wait together are one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::transaction::{Params, Tx};
use super::{Context, Database, cached_rows, events, idempotency};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::admission::{Admission, IdempotencyRecord, Refusal, admit};
use crate::domain::integration::event::EventType;
use crate::domain::submission::SubmissionStatus;
use crate::id::{FormId, FormRef, SubmissionId};
use crate::store::{IdempotencyKey, NewSubmission, Result, StepResult, StoreError};

/// Maximum backward clock step that ids ignore; a larger step is followed.
const TOLERATED_STEP_MILLIS: i64 = 60_000;

/// A submission that waits to be stored.
pub(super) struct QueuedSubmission {
    form: FormRef,
    checked_revision: u64,
    content: NewRow,
    notify: bool,
    idempotency_key: Option<IdempotencyKey>,
    now: Timestamp,
}

/// The content of a new submission.
pub(super) struct NewRow {
    pub(super) form_version: u32,
    pub(super) status: SubmissionStatus,
    pub(super) answers: Box<str>,
    pub(super) metadata: Option<Box<str>>,
}

impl QueuedSubmission {
    pub(super) fn new(new: NewSubmission<'_>, now: Timestamp) -> Self {
        let content = NewRow {
            form_version: new.checked_version,
            status: new.status,
            answers: new.answers.into(),
            metadata: new.metadata.map(Into::into),
        };
        Self {
            form: new.form,
            checked_revision: new.checked_revision,
            content,
            notify: new.notify,
            idempotency_key: new.idempotency_key,
            now,
        }
    }

    /// The bytes of its texts.
    pub(super) fn size(&self) -> usize {
        self.content.answers.len() + self.content.metadata.as_ref().map_or(0, |text| text.len())
    }
}

/// A form that submissions are being added to, with its lock.
pub(super) struct OpenForm {
    form: Arc<Form>,
    /// The row of the counters that is locked.
    shard: i16,
    /// Submissions of all rows.
    pub(super) responses: u64,
    /// The id that was given last, of all rows.
    last: Option<SubmissionId>,
    /// Whether the clock was set back behind an id.
    stepped_back: bool,
    /// Of this row, to be written: submissions added, and the id given last.
    added: i64,
    given: Option<SubmissionId>,
}

impl OpenForm {
    /// Draws the next id, above the last one given, so that ids are in the order of commits. A single wrong clock must not move
    /// all later ids into the far future, so a large step back is followed.
    fn next_id(&mut self, context: &Context, now: Timestamp) -> SubmissionId {
        let is_ahead = |last: &SubmissionId| last.millis() - now.millis() > TOLERATED_STEP_MILLIS;
        self.stepped_back |= self.last.as_ref().is_some_and(is_ahead);
        let random = &*context.random;
        let id = match (self.given, self.last.filter(|last| !is_ahead(last))) {
            (Some(given), _) => SubmissionId::after(Some(given), now.millis(), random),
            // The next one may have been given by another server, or before the clock was set back.
            (None, Some(last)) if last.millis() >= now.millis() => last.beyond(random),
            (None, _) => SubmissionId::after(None, now.millis(), random),
        };
        self.given = Some(id);
        id
    }
}

/// The rows of a transaction, to be written together.
#[derive(Default)]
struct NewRows<'a> {
    rows: Vec<(FormId, SubmissionId, Timestamp, &'a NewRow)>,
    records: Vec<(&'a IdempotencyKey, u128, Timestamp)>,
    completed: BTreeMap<FormId, Vec<SubmissionId>>,
}

impl Database {
    /// Stores those of `queued` that the domain admits. Returns what became of each, in their order.
    pub(super) async fn insert_submissions(
        self,
        queued: Vec<QueuedSubmission>,
    ) -> Result<Vec<StepResult<SubmissionId>>> {
        let queued = &queued;
        self.write(|tx| async move { insert_queued(&tx, queued).await }).await
    }
}

async fn insert_queued(tx: &Tx, queued: &[QueuedSubmission]) -> Result<Vec<StepResult<SubmissionId>>> {
    let forms: Vec<FormRef> = queued.iter().map(|one| one.form).collect();
    let mut open = open_forms(tx, &forms).await?;
    let mut earlier = find_records(tx, queued).await?;
    let (mut results, mut new) = (Vec::with_capacity(queued.len()), NewRows::default());
    for one in queued {
        let Some(form) = open.get_mut(&one.form.id).filter(|open| open.form.workspace == one.form.workspace)
        else {
            results.push(StepResult::Missing);
            continue;
        };
        let key = one.idempotency_key.as_ref();
        let record = key.and_then(|key| earlier.get(&key.to_bytes())?.clone().replay(key.body, one.now));
        results.push(match admit(&form.form, form.responses, one.checked_revision, record, one.now) {
            Err(why) => StepResult::Refused(why),
            Ok(Admission::Recheck) => StepResult::Recheck,
            Ok(Admission::Replay(record)) => {
                StepResult::Replayed(SubmissionId::from_bytes(record.result.to_be_bytes()))
            }
            Ok(Admission::Store) => {
                let id = new.add(&tx.context, form, &one.content, one.notify, one.now);
                if let Some(key) = key {
                    let result = u128::from_be_bytes(id.to_bytes());
                    let (body, at) = (key.body, one.now);
                    earlier.insert(key.to_bytes(), IdempotencyRecord { body, result, at, extra: Vec::new() });
                    new.records.push((key, result, at));
                }
                StepResult::Done(id)
            }
        });
    }
    new.write(tx, &open).await?;
    Ok(results)
}

/// Opens one form, to add many submissions at once. `None` if it does not exist outside the trash.
pub(super) async fn open_form(tx: &Tx, form: FormRef) -> Result<Option<OpenForm>> {
    Ok(open_forms(tx, &[form]).await?.remove(&form.id))
}

impl OpenForm {
    pub(super) fn admit(&self, checked_revision: u64, now: Timestamp) -> Result<Admission, Refusal> {
        admit(&self.form, self.responses, checked_revision, None, now)
    }

    /// Stores as many of `rows` as the form has places for. Returns their ids.
    pub(super) async fn insert(
        self,
        tx: &Tx,
        rows: &[NewRow],
        notify: bool,
        now: Timestamp,
    ) -> Result<Vec<Option<SubmissionId>>> {
        let (id, mut new) = (self.form.id, NewRows::default());
        let mut open = self;
        let ids = rows
            .iter()
            .map(|row| {
                let has_place = open.form.check_capacity(open.responses).is_ok();
                has_place.then(|| new.add(&tx.context, &mut open, row, notify, now))
            })
            .collect();
        new.write(tx, &HashMap::from([(id, open)])).await?;
        Ok(ids)
    }
}

/// Locks a row of counters of each form that exists outside the trash, and reads the forms as they are then.
async fn open_forms(tx: &Tx, forms: &[FormRef]) -> Result<HashMap<FormId, OpenForm>> {
    let mut locks = BTreeMap::new();
    for form in forms {
        if let Some(form) = cached_rows::expected_form(tx, *form).await? {
            locks.insert(form.id, shard_of(&form, &tx.context));
        }
    }
    let (ids, shards): (Vec<FormId>, Vec<i16>) = locks.iter().map(|(id, shard)| (*id, *shard)).unzip();
    // In order, so that two servers do not wait for each other.
    let lock = "SELECT 1 FROM counters JOIN (SELECT unnest($1::BYTEA[]) AS form, unnest($2::SMALLINT[]) AS shard) wanted
                    ON counters.form = wanted.form AND counters.shard = wanted.shard
                ORDER BY counters.form, counters.shard FOR UPDATE OF counters";
    tx.query(lock, &[&ids, &shards]).await?;
    let known: BTreeSet<_> = locks.keys().copied().collect();
    let forms: Vec<_> = forms.iter().filter(|form| known.contains(&form.id)).copied().collect();
    let counted = "SELECT form, responses, last_id FROM counters WHERE form = ANY($1::BYTEA[])";
    let params: Params<'_> = &[&ids];
    let (forms, rows) = tokio::try_join!(cached_rows::forms(tx, &forms), tx.query(counted, params))?;
    let mut open = HashMap::new();
    for form in forms.into_iter().flatten().filter(|form| form.deleted_at.is_none()) {
        let shard = shard_of(&form, &tx.context);
        if locks.get(&form.id) != Some(&shard) {
            // It was changed before it was locked.
            return Err(StoreError::Interrupted("a form was changed".to_owned()));
        }
        let mut sum = 0;
        let mut last = None;
        for row in rows.iter().filter(|row| row.get::<_, FormId>(0) == form.id) {
            sum += row.get::<_, i64>(1);
            last = last.max(row.get::<_, Option<SubmissionId>>(2));
        }
        let responses = u64::try_from(sum).unwrap_or(0);
        let (stepped_back, added, given) = (false, 0, None);
        open.insert(form.id, OpenForm { form, shard, responses, last, stepped_back, added, given });
    }
    Ok(open)
}

/// The row of counters to lock: the first one where submissions must be counted or numbered exactly.
fn shard_of(form: &Form, context: &Context) -> i16 {
    let is_numbered = form.subscribers(EventType::SubmissionCompleted).next().is_some();
    if is_numbered || form.settings.max_responses.is_some() { 0 } else { context.shard }
}

/// Finds the records of earlier requests with the same keys.
async fn find_records(tx: &Tx, queued: &[QueuedSubmission]) -> Result<HashMap<Vec<u8>, IdempotencyRecord>> {
    let keys = queued.iter().filter_map(|one| one.idempotency_key.as_ref());
    let keys: Vec<Vec<u8>> = keys.map(|key| key.to_bytes()).collect();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT id, body, result, at, extra FROM idempotency_records WHERE id = ANY($1::BYTEA[])";
    let rows = tx.query(sql, &[&keys]).await?;
    rows.iter().map(|row| Ok((row.get(0), idempotency::record(row)?))).collect()
}

impl<'a> NewRows<'a> {
    fn add(
        &mut self,
        context: &Context,
        open: &mut OpenForm,
        row: &'a NewRow,
        notify: bool,
        now: Timestamp,
    ) -> SubmissionId {
        let id = open.next_id(context, now);
        self.rows.push((open.form.id, id, now, row));
        if row.status == SubmissionStatus::Completed {
            open.responses += 1;
            open.added += 1;
            if notify {
                self.completed.entry(open.form.id).or_default().push(id);
            }
        }
        id
    }

    async fn write(&self, tx: &Tx, open: &HashMap<FormId, OpenForm>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        tokio::try_join!(
            self.insert_submissions(tx),
            update_counters(tx, open),
            idempotency::insert_records(tx, &self.records, &[]),
            record_step_back(tx, open, &self.rows),
        )?;
        for (form, submissions) in &self.completed {
            if let Some(open) = open.get(form) {
                events::record_completed(tx, &open.form, submissions).await?;
            }
        }
        Ok(())
    }

    async fn insert_submissions(&self, tx: &Tx) -> Result<()> {
        let forms: Vec<_> = self.rows.iter().map(|(form, ..)| *form).collect();
        let ids: Vec<_> = self.rows.iter().map(|(_, id, ..)| *id).collect();
        let versions: Vec<_> = self.rows.iter().map(|(.., row)| i64::from(row.form_version)).collect();
        let answers: Vec<_> = self.rows.iter().map(|(.., row)| &*row.answers).collect();
        let metadata: Vec<_> = self.rows.iter().map(|(.., row)| row.metadata.as_deref()).collect();
        let quarantined_at = |(_, _, now, row): &(_, _, Timestamp, &NewRow)| {
            Some(*now).filter(|_| row.status == SubmissionStatus::Quarantined)
        };
        let deleted: Vec<_> = self.rows.iter().map(quarantined_at).collect();
        let sql = "INSERT INTO submissions (form, id, form_version, answers, metadata, deleted_at, is_quarantined)
                   SELECT form, id, form_version, answers, metadata, deleted_at, deleted_at IS NOT NULL
                   FROM (SELECT unnest($1::BYTEA[]) AS form, unnest($2::BYTEA[]) AS id, unnest($3::BIGINT[]) AS form_version,
                       unnest($4::TEXT[]) AS answers, unnest($5::TEXT[]) AS metadata,
                       unnest($6::BIGINT[]) AS deleted_at) new";
        tx.execute(sql, &[&forms, &ids, &versions, &answers, &metadata, &deleted]).await.map(drop)
    }
}

async fn update_counters(tx: &Tx, open: &HashMap<FormId, OpenForm>) -> Result<()> {
    let changed: Vec<_> = open.values().filter(|open| open.given.is_some()).collect();
    let forms: Vec<_> = changed.iter().map(|open| open.form.id).collect();
    let shards: Vec<_> = changed.iter().map(|open| open.shard).collect();
    let added: Vec<_> = changed.iter().map(|open| open.added).collect();
    let given: Vec<_> = changed.iter().map(|open| open.given).collect();
    let sql = "UPDATE counters SET responses = responses + new.added, last_id = new.last_id
               FROM (SELECT unnest($1::BYTEA[]) AS form, unnest($2::SMALLINT[]) AS shard, unnest($3::BIGINT[]) AS added,
                   unnest($4::BYTEA[]) AS last_id) new
               WHERE counters.form = new.form AND counters.shard = new.shard";
    tx.execute(sql, &[&forms, &shards, &added, &given]).await.map(drop)
}

/// Ends all cursors when the clock was set back behind an id: they would skip the submissions that follow. Once for all forms:
/// the time of the latest id, or a little later, is recorded, about once a minute.
async fn record_step_back(
    tx: &Tx,
    open: &HashMap<FormId, OpenForm>,
    rows: &[(FormId, SubmissionId, Timestamp, &NewRow)],
) -> Result<()> {
    let stepped_back = open.values().any(|open| open.stepped_back);
    let Some((id, now)) = rows.iter().map(|(_, id, now, _)| (id.millis(), now.millis())).max() else {
        return Ok(());
    };
    if !stepped_back && id <= tx.context.latest_id.load(Ordering::Relaxed) {
        return Ok(());
    }
    let sql = "SELECT value FROM settings WHERE name = 'latest_id' FOR UPDATE";
    let latest = tx.query_opt(sql, &[]).await?.and_then(|row| row.get::<_, Vec<u8>>(0).try_into().ok());
    let latest = latest.map(i64::from_be_bytes);
    let ends_cursors = stepped_back && latest.is_none_or(|latest| latest - now > TOLERATED_STEP_MILLIS);
    if ends_cursors {
        tracing::warn!("the clock was set back; submission times follow it, cursors end");
        let mut key = vec![0; 32];
        tx.context.random.fill(&mut key);
        tx.execute("UPDATE settings SET value = $1 WHERE name = 'signing_key'", &[&key]).await?;
    }
    let mut recorded = latest.unwrap_or(i64::MIN);
    if ends_cursors || recorded < id {
        recorded = id + TOLERATED_STEP_MILLIS;
        tx.put_setting("latest_id", &recorded.to_be_bytes()).await?;
    }
    // Not what is written here, which may be rolled back.
    tx.context.latest_id.store(latest.unwrap_or(i64::MIN), Ordering::Relaxed);
    Ok(())
}
