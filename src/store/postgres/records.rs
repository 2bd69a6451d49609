//! Records of the database, for copies.

use std::collections::HashMap;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio_postgres::Row;

use super::submission_search::{COLUMNS, submission};
use super::transaction::Tx;
use super::values::{json, number};
use super::{
    PostgresStore, attempts, counters, delivery_rows, events, forms, idempotency, keys, purges, queues,
    submissions,
};
use crate::domain::delivery::Delivery;
use crate::domain::form::Form;
use crate::domain::submission::{Submission, SubmissionStatus};
use crate::domain::workspace::ApiKey;
use crate::id::{FormId, SubmissionId};
use crate::secret::KeyId;
use crate::store::json::{from_json, to_text};
use crate::store::queue::{StoredQueue, decode_delivery};
use crate::store::record::{
    DeliveryRecord, FormRecord, KeyedRecord, Record, RecordKey, RecordKind, Records, StateRecord,
};
use crate::store::{Result, StoreError};

/// Records that are read at once.
const ROWS: i64 = 500;

/// Bytes of answers that are read at once.
const BYTES: i64 = 4 << 20;

#[async_trait]
impl Records for PostgresStore {
    async fn read_records(
        &self,
        kind: RecordKind,
        after: &[u8],
        until: Option<&[u8]>,
    ) -> Result<Vec<KeyedRecord>> {
        // Longer than any key, and above all of them.
        let last = [u8::MAX; 64];
        let until = until.unwrap_or(&last);
        self.read(|tx| async move { read(&tx, kind, after, until).await }).await
    }

    async fn write_records(
        &self,
        kind: RecordKind,
        records: Vec<KeyedRecord>,
        gone: Vec<RecordKey>,
    ) -> Result<()> {
        let (records, gone) = (&records, &gone);
        self.write(|tx| async move {
            for key in gone {
                delete(&tx, kind, key).await?;
            }
            // Sent at once, answered one after the other.
            try_join_all(records.iter().map(|one| write(&tx, one))).await.map(drop)
        })
        .await
    }

    async fn recount(&self, form: FormId) -> Result<()> {
        let count = "SELECT count(*), (SELECT id FROM submissions WHERE form = $1 ORDER BY id DESC LIMIT 1)
                     FROM submissions WHERE form = $1 AND deleted_at IS NULL";
        let row = self.scan(|tx| async move { tx.query_opt(count, &[&form]).await }).await?;
        let Some(row) = row else { return Ok(()) };
        let (responses, last): (i64, Option<SubmissionId>) = (row.get(0), row.get(1));
        let sql = "UPDATE counters SET responses = CASE WHEN shard = 0 THEN $2::BIGINT ELSE 0 END, last_id = $3 WHERE form = $1";
        self.execute(sql, &[&form, &responses, &last]).await.map(drop)
    }
}

async fn read(tx: &Tx, kind: RecordKind, after: &[u8], until: &[u8]) -> Result<Vec<KeyedRecord>> {
    match kind {
        RecordKind::Settings => {
            let sql = "SELECT value FROM settings WHERE name = 'signing_key'";
            let row = tx.query_opt(sql, &[]).await?.filter(|_| after.is_empty());
            let record = |row: Row| Record::Settings { signing_key: row.get(0) };
            Ok(row.map(|row| KeyedRecord { key: vec![0], record: record(row) }).into_iter().collect())
        }
        RecordKind::Workspaces => {
            let sql = "SELECT id, data FROM workspaces WHERE NOT is_deleted AND id > $1 AND id <= $2
                       ORDER BY id LIMIT $3";
            let read = |row: &Row| Ok(Record::Workspace(json("a workspace", row, 1)?));
            keyed(&tx.query(sql, &[&after, &until, &ROWS]).await?, read)
        }
        RecordKind::ApiKeys => read_keys(tx, after, until).await,
        RecordKind::Forms => read_forms(tx, after, until).await,
        RecordKind::Submissions => read_submissions(tx, "IS NULL", after, until).await,
        RecordKind::TrashedSubmissions => read_submissions(tx, "IS NOT NULL", after, until).await,
        RecordKind::Deliveries => read_deliveries(tx, after, until).await,
        RecordKind::Replies => {
            let sql = "SELECT id, body, result, at, extra FROM idempotency_records
                       WHERE form IS NULL AND id > $1 AND id <= $2 ORDER BY id LIMIT $3";
            keyed(&tx.query(sql, &[&after, &until, &ROWS]).await?, |row| {
                let record = idempotency::record(row)?;
                let (body, result, at, extra) = (record.body, record.result, record.at, record.extra);
                Ok(Record::Response { id: row.get(0), body, result, at, extra })
            })
        }
    }
}

/// Makes records of rows, whose first column is the key.
fn keyed(rows: &[Row], read: impl Fn(&Row) -> Result<Record>) -> Result<Vec<KeyedRecord>> {
    rows.iter().map(|row| Ok(KeyedRecord { key: row.get(0), record: read(row)? })).collect()
}

async fn read_keys(tx: &Tx, after: &[u8], until: &[u8]) -> Result<Vec<KeyedRecord>> {
    // There are few, whose order is that of their bytes only in some databases.
    let rows = tx.query("SELECT data, last_used_at FROM api_keys", &[]).await?;
    let mut found = Vec::new();
    for row in &rows {
        let key: ApiKey = json("an API key", row, 0)?;
        let id = key.id.to_bytes().to_vec();
        if id[..] > *after && id[..] <= *until {
            found.push(KeyedRecord { key: id, record: Record::ApiKey { key, last_use: row.get(1) } });
        }
    }
    found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    Ok(found)
}

/// Splits a key at `at`; what is missing is empty.
fn split(key: &[u8], at: usize) -> (&[u8], &[u8]) {
    key.split_at_checked(at).unwrap_or((key, &[]))
}

async fn read_forms(tx: &Tx, after: &[u8], until: &[u8]) -> Result<Vec<KeyedRecord>> {
    let sql = "SELECT workspace || id, data, retired,
                   (SELECT sequence FROM counters WHERE form = forms.id AND shard = 0)
               FROM forms WHERE (workspace, id) > ($1, $2) AND (workspace, id) <= ($3, $4)
                   AND NOT EXISTS (SELECT 1 FROM purges WHERE purges.form = forms.id)
               ORDER BY workspace, id LIMIT 20";
    let ((workspace, id), (last_workspace, last_id)) = (split(after, 8), split(until, 8));
    let rows = tx.query(sql, &[&workspace, &id, &last_workspace, &last_id]).await?;
    let mut found = Vec::new();
    for row in &rows {
        let form: Form = json("a form", row, 1)?;
        let versions = "SELECT data FROM form_versions WHERE form = $1 ORDER BY number";
        let mut states = Vec::new();
        for integration in &form.integrations {
            states.push((integration.id, queues::read(tx, form.reference().queue(integration.id)).await?));
        }
        let retired = row.get::<_, Option<&str>>(2).map(|text| from_json("removed ids", text.as_bytes()));
        let record = FormRecord {
            versions: tx.list_json("a version", versions, &[&form.id]).await?,
            retired: retired.transpose()?.unwrap_or_default(),
            queues: states,
            sequence: u64::try_from(row.get::<_, Option<i64>>(3).unwrap_or(0)).unwrap_or(0),
            form,
        };
        found.push(KeyedRecord { key: row.get(0), record: Record::Form(Box::new(record)) });
    }
    Ok(found)
}

async fn read_submissions(tx: &Tx, deleted: &str, after: &[u8], until: &[u8]) -> Result<Vec<KeyedRecord>> {
    // At least one row, and then those that end within the bytes.
    let sql = format!(
        "SELECT {COLUMNS} FROM (SELECT *, sum(octet_length(answers)) OVER (ORDER BY form, id ROWS UNBOUNDED PRECEDING)
                 - octet_length(answers) AS before
             FROM (SELECT * FROM submissions WHERE deleted_at {deleted} AND (form, id) > ($1, $2)
                 AND (form, id) <= ($3, $4) AND EXISTS (SELECT 1 FROM forms WHERE forms.id = submissions.form)
                 ORDER BY form, id LIMIT $5) rows) submissions
         WHERE before < $6 ORDER BY form, id"
    );
    let ((form, id), (last_form, last_id)) = (split(after, 8), split(until, 8));
    let rows = tx.query(&sql, &[&form, &id, &last_form, &last_id, &ROWS, &BYTES]).await?;
    let mut history = HashMap::<_, Vec<_>>::new();
    let edited: Vec<_> = rows.iter().map(submission).filter(|one| one.edits() > 0).collect();
    for one in edited {
        let sql =
            "SELECT number, form_version, answers, metadata, edited_at, replaced_at FROM replaced_states
                   WHERE form = $1 AND submission = $2 ORDER BY number";
        let states = tx.query(sql, &[&one.form, &one.id]).await?;
        let state = |row: &Row| {
            let state = submissions::replaced_state(&one, row);
            StateRecord { number: number(row, 0), state, replaced_at: row.get(5) }
        };
        history.insert((one.form, one.id), states.iter().map(state).collect());
    }
    let record = |row: &Row| {
        let submission = submission(row);
        let key = [&submission.form.to_bytes()[..], &submission.id.to_bytes()].concat();
        let history = history.remove(&(submission.form, submission.id)).unwrap_or_default();
        KeyedRecord { key, record: Record::Submission { submission, history } }
    };
    Ok(rows.iter().map(record).collect())
}

async fn read_deliveries(tx: &Tx, after: &[u8], until: &[u8]) -> Result<Vec<KeyedRecord>> {
    let rest = "deliveries WHERE (workspace, event, target) > ($1, $2, $3) AND (workspace, event, target) <= ($4, $5, $6)
                ORDER BY workspace, event, target LIMIT $7";
    let sql =
        format!("SELECT workspace || event || target, event, target, data, workspace, body FROM {rest}");
    let ((workspace, rest), (last_workspace, last_rest)) = (split(after, 8), split(until, 8));
    let ((event, target), (last_event, last_target)) = (split(rest, 16), split(last_rest, 16));
    let rows = tx
        .query(&sql, &[&workspace, &event, &target, &last_workspace, &last_event, &last_target, &ROWS])
        .await?;
    let mut found = Vec::new();
    for row in &rows {
        let body: &str = row.get(3);
        let delivery = decode_delivery(row.get(1), row.get(2), body.as_bytes())?;
        let record = DeliveryRecord {
            workspace: row.get(4),
            body: row.get(5),
            event: events::read_snapshot(tx, &delivery).await?,
            attempts: match delivery.attempts {
                0 => Vec::new(),
                _ => attempts::list(tx, &delivery).await?,
            },
            delivery,
        };
        found.push(KeyedRecord { key: row.get(0), record: Record::Delivery(Box::new(record)) });
    }
    Ok(found)
}

async fn write(tx: &Tx, one: &KeyedRecord) -> Result<()> {
    match &one.record {
        Record::Settings { signing_key } => tx.put_setting("signing_key", signing_key).await,
        Record::Workspace(workspace) => {
            let sql = "INSERT INTO workspaces (id, data) VALUES ($1, $2)
                       ON CONFLICT (id) DO UPDATE SET data = excluded.data, is_deleted = false";
            tx.execute(sql, &[&workspace.id, &to_text(workspace)?]).await.map(drop)
        }
        Record::ApiKey { key, last_use } => {
            keys::put(tx, key).await?;
            let sql = "UPDATE api_keys SET last_used_at = $2 WHERE id = $1";
            tx.execute(sql, &[&key.id, last_use]).await.map(drop)
        }
        Record::Form(record) => write_form(tx, record).await,
        Record::Submission { submission, history } => write_submission(tx, submission, history).await,
        Record::Delivery(record) => write_delivery(tx, record).await,
        Record::Response { id, body, result, at, extra } => {
            let sql =
                "INSERT INTO idempotency_records (id, body, result, at, extra) VALUES ($1, $2, $3, $4, $5)
                       ON CONFLICT (id) DO UPDATE SET body = excluded.body, result = excluded.result,
                           at = excluded.at, extra = excluded.extra";
            let (body, result) = (body.to_be_bytes().to_vec(), result.to_be_bytes().to_vec());
            tx.execute(sql, &[id, &body, &result, at, extra]).await.map(drop)
        }
    }
}

async fn write_form(tx: &Tx, record: &FormRecord) -> Result<()> {
    let FormRecord { form, versions, retired, queues, sequence } = record;
    let retired = Some(retired).filter(|retired| !retired.is_empty()).map(to_text).transpose()?;
    forms::put(tx, form, retired.as_deref()).await?;
    let (id, workspace) = (&form.id, &form.workspace);
    counters::insert(tx, *id, "ON CONFLICT DO NOTHING").await?;
    let last = i64::try_from(*sequence).unwrap_or(i64::MAX);
    tx.execute("UPDATE counters SET sequence = $2 WHERE form = $1 AND shard = 0", &[id, &last]).await?;
    for version in versions {
        let conflict = "ON CONFLICT (form, number) DO UPDATE SET data = excluded.data";
        forms::insert_version(tx, (*id, version.number), &to_text(version)?, conflict).await?;
    }
    let kept: Vec<_> = queues.iter().map(|(integration, _)| *integration).collect();
    let removed = "UPDATE queues SET removed_at = $3 WHERE form = $1 AND removed_at IS NULL
                   AND NOT (integration = ANY($2::BYTEA[]))";
    tx.execute(removed, &[id, &kept, &form.updated_at]).await?;
    for (integration, queue) in queues {
        let sql = "INSERT INTO queues (form, integration, workspace, data) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (form, integration) DO UPDATE SET data = excluded.data";
        tx.execute(sql, &[id, integration, workspace, &to_text(queue)?]).await?;
    }
    Ok(())
}

async fn write_submission(tx: &Tx, of: &Submission, history: &[StateRecord]) -> Result<()> {
    let sql = "INSERT INTO submissions (form, id, form_version, is_quarantined, answers, metadata, edits, edited_at, deleted_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
               ON CONFLICT (form, id) DO UPDATE SET form_version = excluded.form_version,
                   is_quarantined = excluded.is_quarantined, answers = excluded.answers, metadata = excluded.metadata,
                   edits = excluded.edits, edited_at = excluded.edited_at, deleted_at = excluded.deleted_at";
    let is_quarantined = of.status == SubmissionStatus::Quarantined;
    let (answers, metadata) = (&*of.answers, of.metadata.as_deref());
    let edited_at = of.edited.map(|edited| edited.at);
    let (version, edits) = (i64::from(of.form_version), i64::from(of.edits()));
    let (form, id, deleted_at) = (&of.form, &of.id, &of.deleted_at);
    tx.execute(
        sql,
        &[form, id, &version, &is_quarantined, &answers, &metadata, &edits, &edited_at, deleted_at],
    )
    .await?;
    for StateRecord { number, state, replaced_at } in history {
        submissions::keep_state(tx, (*number, state), *replaced_at, "ON CONFLICT DO NOTHING").await?;
    }
    Ok(())
}

async fn write_delivery(tx: &Tx, record: &DeliveryRecord) -> Result<()> {
    let DeliveryRecord { workspace, delivery, body, event, attempts } = record;
    let Delivery { form, event: id, target, .. } = delivery;
    tx.execute(
        "DELETE FROM deliveries WHERE workspace = $1 AND event = $2 AND target = $3",
        &[workspace, id, target],
    )
    .await?;
    delivery_rows::insert(tx, *workspace, *form, std::slice::from_ref(delivery)).await?;
    // One of an integration that was removed has no other row of its queue.
    let queue =
        "INSERT INTO queues (form, integration, workspace, removed_at, data) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (form, integration) DO NOTHING";
    let state = to_text(&StoredQueue::default())?;
    let (integration, created) = (&target.integration, delivery.created_at());
    tx.execute(queue, &[form, integration, workspace, &created, &state]).await?;
    if let Some(body) = body {
        let sql = "UPDATE deliveries SET body = $4 WHERE workspace = $1 AND event = $2 AND target = $3";
        tx.execute(sql, &[workspace, id, target, body]).await?;
    }
    if let Some(event) = event {
        events::insert(tx, *form, event, "ON CONFLICT DO NOTHING").await?;
    }
    for attempt in attempts {
        let sql = "INSERT INTO attempts (form, event, target, number, data) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (form, event, target, number) DO UPDATE SET data = excluded.data";
        tx.execute(sql, &[form, id, target, &i64::from(attempt.number), &to_text(attempt)?]).await?;
    }
    Ok(())
}

async fn delete(tx: &Tx, kind: RecordKind, key: &[u8]) -> Result<()> {
    let (first, rest) = split(key, 8);
    match kind {
        RecordKind::Settings => Ok(()),
        RecordKind::Workspaces => tx.execute("DELETE FROM workspaces WHERE id = $1", &[&key]).await.map(drop),
        RecordKind::ApiKeys => match key.try_into().ok().and_then(KeyId::from_bytes) {
            Some(id) => keys::delete(tx, id).await,
            None => Ok(()),
        },
        RecordKind::Forms => match rest.try_into() {
            Ok(form) => purges::begin(tx, FormId::from_bytes(form)).await,
            Err(_) => Err(StoreError::Undecodable("the key of a form".to_owned())),
        },
        RecordKind::Submissions | RecordKind::TrashedSubmissions => {
            // It may have moved between the trash and the others, and been written there.
            let deleted = if kind == RecordKind::Submissions { "IS NULL" } else { "IS NOT NULL" };
            let sql = format!("DELETE FROM submissions WHERE form = $1 AND id = $2 AND deleted_at {deleted}");
            if tx.execute(&sql, &[&first, &rest]).await? == 0 {
                return Ok(());
            }
            let history = "DELETE FROM replaced_states WHERE form = $1 AND submission = $2";
            tx.execute(history, &[&first, &rest]).await.map(drop)
        }
        RecordKind::Deliveries => {
            let (event, target) = split(rest, 16);
            let sql =
                "DELETE FROM deliveries WHERE workspace = $1 AND event = $2 AND target = $3 RETURNING form";
            let Some(row) = tx.query_opt(sql, &[&first, &event, &target]).await? else { return Ok(()) };
            let form: FormId = row.get(0);
            let attempts = "DELETE FROM attempts WHERE form = $1 AND event = $2 AND target = $3";
            tx.execute(attempts, &[&form, &event, &target]).await?;
            let events = "DELETE FROM events WHERE form = $1 AND id = $3 AND NOT EXISTS
                          (SELECT 1 FROM deliveries WHERE workspace = $2 AND event = $3)";
            tx.execute(events, &[&form, &first, &event]).await.map(drop)
        }
        RecordKind::Replies => {
            tx.execute("DELETE FROM idempotency_records WHERE id = $1", &[&key]).await.map(drop)
        }
    }
}
