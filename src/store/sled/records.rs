//! Records of the embedded store, for copies.

use std::ops::Bound;

use async_trait::async_trait;

use super::counters::Counters;
use super::engine::operation::WriteKind;
use super::engine::tx::{Direction, KeyRange, Tx};
use super::row_source::RowSource;
use super::submission_trash::{self, remove_from_trash};
use super::{
    SledStore, block, delivery_layout, delivery_rows, delivery_upkeep, form_trash, forms, keys, layout,
    locate, slugs, submission_codec, submission_insert,
};
use crate::domain::form::admission::IdempotencyRecord;
use crate::domain::submission::Submission;
use crate::id::{FormId, SubmissionId, WorkspaceId};
use crate::store::Result;
use crate::store::queue::StoredQueue;
use crate::store::record::{
    DeliveryRecord, FormRecord, KeyedRecord, Record, RecordKey, RecordKind, Records, StateRecord,
};

/// Rows that are read at once, and bytes of them.
const ROWS: usize = 500;
const BYTES: usize = 1 << 20;

/// The kind of rows whose keys, without their first byte, are the keys of the records.
fn row_kind(kind: RecordKind) -> u8 {
    match kind {
        RecordKind::Settings => b'M',
        RecordKind::Workspaces => layout::WORKSPACES,
        RecordKind::ApiKeys => layout::API_KEYS,
        RecordKind::Forms => layout::FORMS,
        RecordKind::Submissions => b'S',
        RecordKind::TrashedSubmissions => b'T',
        RecordKind::Deliveries => b'v',
        RecordKind::Responses => b'I',
    }
}

#[async_trait]
impl Records for SledStore {
    async fn read_records(
        &self,
        kind: RecordKind,
        after: &[u8],
        until: Option<&[u8]>,
    ) -> Result<Vec<KeyedRecord>> {
        if kind == RecordKind::Settings {
            let signing_key = self.reader.get(layout::SIGNING_KEY)?.filter(|_| after.is_empty());
            let record = |signing_key| KeyedRecord { key: vec![0], record: Record::Settings { signing_key } };
            return Ok(signing_key.map(record).into_iter().collect());
        }
        let mut range = layout::all(row_kind(kind));
        let prefixed = |key: &[u8]| layout::key(row_kind(kind), &[key]);
        if !after.is_empty() {
            range.0 = Bound::Excluded(prefixed(after));
        }
        if let Some(until) = until {
            range.1 = Bound::Included(prefixed(until));
        }
        if kind == RecordKind::Submissions {
            return self.read_blocks(range, after);
        }
        let mut found = Vec::new();
        // A record may have been erased in part: then others follow, or none.
        while found.is_empty() {
            let (rows, _) = self.reader.scan_page(range.clone(), Direction::Ascending, ROWS, BYTES)?;
            let Some((last, _)) = rows.last() else { break };
            range.0 = Bound::Excluded(last.clone());
            for (key, body) in rows {
                let record = self.read_record(kind, &key, &body)?;
                found.extend(record.map(|record| KeyedRecord { key: key[1..].to_vec(), record }));
            }
        }
        Ok(found)
    }

    async fn write_records(
        &self,
        kind: RecordKind,
        records: Vec<KeyedRecord>,
        gone: Vec<RecordKey>,
    ) -> Result<()> {
        let work = move |tx: &mut Tx<'_>| {
            gone.iter().try_for_each(|key| delete(tx, kind, key))?;
            records.iter().try_for_each(|one| write(tx, one))
        };
        self.engine.write_as(WriteKind::Reclaim, work).await
    }

    async fn recount(&self, _: FormId) -> Result<()> {
        // Each write counts.
        Ok(())
    }
}

impl SledStore {
    /// Reads the submissions of some blocks in `range`, those after `after`.
    fn read_blocks(&self, mut range: KeyRange, after: &[u8]) -> Result<Vec<KeyedRecord>> {
        if !after.is_empty() {
            let (form, id) = layout::listed_submission(&layout::key(b'S', &[after]))?;
            if let Some((key, _)) = locate::block_up_to(&self.reader, form, id)? {
                range.0 = Bound::Included(key);
            }
        }
        let end = range.1.clone();
        let is_within = |key: &[u8]| match &end {
            Bound::Included(last) => key <= &last[1..],
            Bound::Excluded(_) | Bound::Unbounded => true,
        };
        let mut found = Vec::new();
        while found.is_empty() {
            let (rows, _) = self.reader.scan_page(range.clone(), Direction::Ascending, ROWS / 8, BYTES)?;
            let Some((last, _)) = rows.last() else { break };
            range.0 = Bound::Excluded(last.clone());
            for (key, body) in rows {
                let form = layout::listed_submission(&key)?.0;
                if forms::workspace_of(&self.reader, form)?.is_none() {
                    // It is being erased.
                    continue;
                }
                for item in block::read(&body)? {
                    let key = [&form.to_bytes()[..], &item.id.to_bytes()].concat();
                    if key[..] > *after && is_within(&key) {
                        let submission = locate::read(&self.reader, form, &item)?;
                        let record =
                            submission.map(|submission| self.with_history(submission)).transpose()?;
                        found.extend(record.map(|record| KeyedRecord { key, record }));
                    }
                }
            }
        }
        Ok(found)
    }

    fn with_history(&self, submission: Submission) -> Result<Record> {
        let (form, id) = (submission.form, submission.id);
        let mut history = Vec::new();
        if submission.edits() > 0 {
            for (key, body) in self.reader.scan_all(layout::history(form, id, None))? {
                let (replaced_at, view) = submission_codec::read_with_timestamp(&body)?;
                let number = layout::last(&key, u32::from_be_bytes)?;
                history.push(StateRecord { number, state: view.to_submission(form, id)?, replaced_at });
            }
        }
        Ok(Record::Submission { submission, history })
    }

    fn read_record(&self, kind: RecordKind, key: &[u8], body: &[u8]) -> Result<Option<Record>> {
        let reader = &self.reader;
        Ok(Some(match kind {
            RecordKind::Settings | RecordKind::Submissions => return Ok(None),
            RecordKind::Workspaces => Record::Workspace(layout::decode_workspace(body)?),
            RecordKind::ApiKeys => {
                let key = layout::decode_api_key(body)?;
                let last_use = reader.read(&layout::key_use(key.id), layout::decode_time)?;
                Record::ApiKey { key, last_use }
            }
            RecordKind::Forms => {
                let form = layout::decode_form(body)?;
                let read_retired = |body: &[u8]| layout::from_json("the ids of removed questions", body);
                let queue = |id| Ok((id, StoredQueue::read(reader, (form.id, id))?));
                let mut versions = Vec::new();
                for (_, body) in reader.scan_all(layout::versions(form.id, None))? {
                    versions.push(layout::decode_version(&body)?);
                }
                Record::Form(Box::new(FormRecord {
                    versions,
                    retired: reader.read(&layout::retired(form.id), read_retired)?.unwrap_or_default(),
                    queues: form.integrations.iter().map(|one| queue(one.id)).collect::<Result<_>>()?,
                    sequence: Counters::of(reader, form.id)?.sequence,
                    form,
                }))
            }
            RecordKind::TrashedSubmissions => {
                let form = layout::listed_submission(key)?.0;
                if forms::workspace_of(reader, form)?.is_none() {
                    return Ok(None);
                }
                self.with_history(submission_trash::decode(key, body)?)?
            }
            RecordKind::Deliveries => {
                let delivery = delivery_rows::decode(key, body)?;
                let workspace = key.get(1..).and_then(<[u8]>::first_chunk);
                let workspace = workspace.ok_or_else(|| layout::undecodable("a delivery"))?;
                let read_event = |body: &[u8]| layout::from_json("an event", body);
                let attempts = reader.scan_all(delivery_layout::attempts(&delivery))?;
                let attempt = |(_, body): &(Vec<u8>, Vec<u8>)| layout::from_json("an attempt", body);
                Record::Delivery(Box::new(DeliveryRecord {
                    workspace: WorkspaceId::from_bytes(*workspace),
                    body: reader.get(&delivery_layout::body(&delivery))?,
                    event: reader.read(&delivery_layout::event(delivery.form, delivery.event), read_event)?,
                    attempts: attempts.iter().map(attempt).collect::<Result<_>>()?,
                    delivery,
                }))
            }
            RecordKind::Responses => {
                let IdempotencyRecord { body, result, at, extra } = layout::decode_idempotency_record(body)?;
                Record::Response { id: key[1..].to_vec(), body, result, at, extra }
            }
        }))
    }
}

fn write(tx: &mut Tx<'_>, one: &KeyedRecord) -> Result<()> {
    match &one.record {
        Record::Settings { signing_key } => tx.put(layout::SIGNING_KEY.to_vec(), signing_key.clone()),
        Record::Workspace(workspace) => {
            tx.put(layout::workspace(workspace.id), layout::to_json(workspace)?);
        }
        Record::ApiKey { key, last_use } => {
            keys::put(tx, key)?;
            if let Some(last_use) = last_use {
                tx.put(layout::key_use(key.id), layout::encode_time(*last_use));
            }
        }
        Record::Form(record) => write_form(tx, record)?,
        Record::Submission { submission, history } => {
            for StateRecord { number, state, replaced_at } in history {
                let state = submission_codec::encode_with_timestamp(state, *replaced_at)?;
                tx.put(layout::replaced_state(submission.form, submission.id, *number), state);
            }
            match submission.deleted_at {
                Some(deleted) => {
                    let (form, id) = (submission.form, submission.id);
                    let body = submission_codec::encode_with_timestamp(submission, deleted)?;
                    tx.put(layout::trashed_submission(form, id), body);
                    tx.put(layout::trash_sweep(deleted, form, id), Vec::new());
                }
                None => submission_insert::insert_copy(tx, submission)?,
            }
        }
        Record::Delivery(record) => write_delivery(tx, record)?,
        Record::Response { id, body, result, at, extra } => {
            let record = IdempotencyRecord { body: *body, result: *result, at: *at, extra: extra.clone() };
            tx.put_last(layout::key(b'I', &[id]), layout::encode_idempotency_record(&record));
            let expiry = layout::sortable(layout::expires_at(*at));
            tx.put(layout::key(layout::EXPIRIES, &[&expiry, id]), Vec::new());
        }
    }
    Ok(())
}

fn write_form(tx: &mut Tx<'_>, record: &FormRecord) -> Result<()> {
    let FormRecord { form, versions, retired, queues, sequence } = record;
    if let Some(old) = forms::find(tx, form.reference())? {
        tx.delete(layout::list_entry(&old));
        if old.deleted_at.is_none() {
            slugs::release(tx, &old);
        }
    }
    tx.put(layout::form(form.reference()), layout::to_json(form)?);
    tx.put(layout::form_workspace(form.id), form.workspace.to_bytes().to_vec());
    tx.put(layout::list_entry(form), Vec::new());
    if let Some(slug) = form.slug.as_ref().filter(|_| form.deleted_at.is_none()) {
        tx.put(layout::slug(form.workspace, slug), form.id.to_bytes().to_vec());
    }
    if !retired.is_empty() {
        tx.put(layout::retired(form.id), layout::to_json(retired)?);
    }
    for version in versions {
        tx.put(layout::version(form.id, version.number), layout::to_json(version)?);
    }
    for (integration, queue) in queues {
        queue.put(tx, (form.id, *integration))?;
    }
    let counters = Counters::of(tx, form.id)?;
    Counters { sequence: *sequence, ..counters }.put(tx, form.id);
    Ok(())
}

fn write_delivery(tx: &mut Tx<'_>, record: &DeliveryRecord) -> Result<()> {
    let DeliveryRecord { workspace, delivery, body, event, attempts } = record;
    match delivery_rows::read(tx, *workspace, delivery.event, delivery.target)? {
        Some(old) => delivery_rows::replace(tx, *workspace, &old, delivery)?,
        None => delivery_rows::insert(tx, *workspace, delivery)?,
    }
    if let Some(body) = body {
        tx.put(delivery_layout::body(delivery), body.clone());
    }
    if let Some(event) = event {
        tx.put(delivery_layout::event(delivery.form, event.id), layout::to_json(event)?);
        if let Some(submission) = event.submission() {
            tx.put(delivery_layout::submission_event(delivery.form, submission, event.id), Vec::new());
        }
    }
    for attempt in attempts {
        tx.put(delivery_layout::attempt(delivery, attempt.number), layout::to_json(attempt)?);
    }
    Ok(())
}

fn delete(tx: &mut Tx<'_>, kind: RecordKind, key: &[u8]) -> Result<()> {
    let row = layout::key(row_kind(kind), &[key]);
    match kind {
        RecordKind::Settings => {}
        RecordKind::Workspaces | RecordKind::Responses => tx.delete(row),
        RecordKind::ApiKeys => {
            if let Some(key) = tx.read(&row, layout::decode_api_key)? {
                keys::delete(tx, key.id, layout::key_entry(&key));
            }
        }
        RecordKind::Forms => {
            if let Some(form) = tx.read(&row, layout::decode_form)? {
                form_trash::remove_form(tx, &form)?;
            }
        }
        RecordKind::Submissions => {
            let (form, id) = layout::listed_submission(&row)?;
            if let Some(found) = locate::find(tx, form, id)? {
                found.remove(tx)?;
                erase_history(tx, form, id)?;
                let counters = Counters::of(tx, form)?;
                Counters { responses: counters.responses.saturating_sub(1), ..counters }.put(tx, form);
            }
        }
        RecordKind::TrashedSubmissions => {
            let (form, id) = layout::listed_submission(&row)?;
            if let Some(found) = submission_trash::read(tx, form, id)? {
                remove_from_trash(tx, &found);
                erase_history(tx, form, id)?;
            }
        }
        RecordKind::Deliveries => {
            let workspace =
                WorkspaceId::from_bytes(*key.first_chunk().ok_or_else(|| layout::undecodable("a delivery"))?);
            let (event, target) = delivery_layout::listed_delivery(&row)?;
            if let Some(old) = delivery_rows::read(tx, workspace, event, target)? {
                for (attempt, _) in tx.scan_all(delivery_layout::attempts(&old))? {
                    tx.delete(attempt);
                }
                delivery_upkeep::erase(tx, workspace, &old)?;
            }
        }
    }
    Ok(())
}

fn erase_history(tx: &mut Tx<'_>, form: FormId, id: SubmissionId) -> Result<()> {
    for (key, _) in tx.scan_all(layout::history(form, id, None))? {
        tx.delete(key);
    }
    Ok(())
}
