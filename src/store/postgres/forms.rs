//! Forms in the database: lock, load, ask the domain, write.

use std::sync::Arc;

use async_trait::async_trait;

use super::counters::{self, Lock};
use super::transaction::Tx;
use super::values::json;
use super::{PostgresStore, events, idempotency, purges, queues};
use crate::clock::Timestamp;
use crate::domain::form::admission::{IdempotencyRecord, Refusal};
use crate::domain::form::filter::FormFilter;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::integration::event::{EventType, Subject};
use crate::domain::revision::ExpectedRevision;
use crate::id::{FormId, FormRef, WorkspaceId};
use crate::store::json::{from_json, to_text};
use crate::store::search::SearchGoal;
use crate::store::step::Stop;
use crate::store::{
    FormRows, FormUpdate, Forms, IdempotencyKey, NewForm, PAGE_BYTES, Page, Restored, Result, StepResult,
    StoreError, VersionRows,
};

/// The name of a version in an error.
const VERSION: &str = "a version of a form";

#[async_trait]
impl Forms for PostgresStore {
    async fn insert_form(&self, new: NewForm) -> Result<StepResult<(FormId, Timestamp)>> {
        let NewForm { form, version, idempotency_key } = &new;
        let (version, key) = (&to_text(version)?, idempotency_key.as_ref());
        self.step(|tx| async move {
            let now = form.created_at;
            let made = async |record: IdempotencyRecord| {
                Ok((FormId::from_bytes((record.result as u64).to_be_bytes()), record.at))
            };
            idempotency::replay(&tx, key, now, made).await?;
            if is_deleted(&tx, form.workspace).await? {
                return Err(Stop::Missing);
            }
            let known = "SELECT 1 FROM forms WHERE id = $1 UNION ALL SELECT 1 FROM purges WHERE form = $1";
            if !tx.query(known, &[&form.id]).await?.is_empty() {
                return Err(Stop::Recheck);
            }
            check_slug(&tx, form).await?;
            put(&tx, form, None).await?;
            insert_version(&tx, (form.id, form.version), version, "").await?;
            counters::insert(&tx, form.id, "").await?;
            queues::create(&tx, form, &[]).await?;
            let made = u64::from_be_bytes(form.id.to_bytes()).into();
            idempotency::insert_record(&tx, key, made, &[], now).await?;
            Ok((form.id, now))
        })
        .await
    }

    async fn find_form(&self, form: FormRef) -> Result<Option<Arc<Form>>> {
        self.live_form(form).await
    }

    async fn find_form_workspace(&self, form: FormId) -> Result<Option<WorkspaceId>> {
        let row = self.query_opt("SELECT workspace FROM forms WHERE id = $1", &[&form]).await?;
        Ok(row.map(|row| row.get(0)))
    }

    async fn find_slug(&self, workspace: WorkspaceId, slug: &str) -> Result<Option<FormId>> {
        self.read(|session| async move { find_slug(&session, workspace, slug).await }).await
    }

    async fn list_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<(Timestamp, FormId)>,
        limit: usize,
    ) -> Result<FormRows> {
        Ok(self.search_forms(workspace, filter, after, SearchGoal::Page(limit)).await?.into_page())
    }

    async fn count_forms(&self, workspace: WorkspaceId, filter: &FormFilter) -> Result<Option<u64>> {
        match filter.matches_all() {
            true => self.count_listed(workspace, filter.trashed).await.map(Some),
            false => Ok(self.search_forms(workspace, filter, None, SearchGoal::Count).await?.into_count()),
        }
    }

    async fn find_version(&self, form: FormRef, number: u32) -> Result<Option<StoredVersion>> {
        let sql = "SELECT form_versions.data FROM forms JOIN form_versions ON form = id
                   WHERE id = $1 AND workspace = $2 AND deleted_at IS NULL AND number = $3";
        let found = self.query_opt(sql, &[&form.id, &form.workspace, &i64::from(number)]).await?;
        found.map(|row| json(VERSION, &row, 0)).transpose()
    }

    async fn find_retired(&self, form: FormRef) -> Result<RetiredIds> {
        let sql = "SELECT retired FROM forms
                   WHERE id = $1 AND workspace = $2 AND deleted_at IS NULL AND retired IS NOT NULL";
        let Some(row) = self.query_opt(sql, &[&form.id, &form.workspace]).await? else {
            return Ok(RetiredIds::new());
        };
        json("the ids of removed questions", &row, 0)
    }

    async fn list_versions(
        &self,
        form: FormRef,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Option<VersionRows>> {
        self.read(|session| async move {
            match find(&session, form).await?.filter(is_live) {
                Some(_) => list_versions(&session, form.id, before, limit).await.map(Some),
                None => Ok(None),
            }
        })
        .await
    }

    async fn replace_form(&self, workspace: WorkspaceId, update: FormUpdate) -> Result<StepResult<()>> {
        let retired = update.retired.as_ref().map(to_text).transpose()?;
        let version = update.version.as_ref().map(to_text).transpose()?;
        let id = workspace.form(update.form.id);
        let (update, retired, version) = (&update, retired.as_deref(), version.as_deref());
        let replaced = self
            .step(|tx| async move {
                let form = &update.form;
                let current = lock(&tx, id).await?.filter(is_live).ok_or(Stop::Missing)?;
                if current.revision != update.seen_revision {
                    return Err(Stop::Recheck);
                }
                if form.slug != current.slug {
                    check_slug(&tx, form).await?;
                }
                put(&tx, form, retired).await?;
                if let Some(version) = version {
                    insert_version(&tx, (form.id, form.version), version, "").await?;
                }
                queues::create(&tx, form, &current.integrations).await?;
                let mut revived = Vec::new();
                for integration in &update.resumed {
                    if queues::resume(&tx, id.queue(*integration), update.now).await? {
                        revived.push(*integration);
                    }
                }
                if let Some(event) = current.status_event(form.status) {
                    let what = (event, Subject::Form);
                    events::record(&tx, form, what, None, form.updated_at).await?;
                }
                if let Some((key, response)) = &update.response {
                    let response = response.as_bytes();
                    idempotency::insert_record(&tx, Some(key), 0, response, form.updated_at).await?;
                }
                let removed = current.integrations.iter().filter(|one| form.integration(one.id).is_none());
                Ok((removed.map(|one| one.id).collect::<Vec<_>>(), revived))
            })
            .await?;
        if let StepResult::Done((removed, revived)) = &replaced {
            removed.iter().for_each(|one| self.drop_queue(id.queue(*one)));
            revived.iter().for_each(|one| self.continue_revival(id.queue(*one)));
            if !update.form.integrations.is_empty() {
                self.context.due.wake();
            }
        }
        Ok(replaced.map(drop))
    }

    async fn trash_form(
        &self,
        form: FormRef,
        expected: ExpectedRevision,
        now: Timestamp,
    ) -> Result<StepResult<()>> {
        let expected = &expected;
        let trashed = self
            .step(|tx| async move {
                let live = lock(&tx, form).await?.filter(is_live).ok_or(Stop::Missing)?;
                expected.check(live.revision)?;
                let what = (EventType::FormDeleted, Subject::Form);
                events::record(&tx, &live, what, None, now).await?;
                Ok(put(&tx, &live.trashed(now), None).await?)
            })
            .await?;
        self.context.due.wake();
        Ok(trashed)
    }

    async fn restore_form(
        &self,
        form: FormRef,
        idempotency_key: Option<IdempotencyKey>,
        now: Timestamp,
    ) -> Result<StepResult<Restored>> {
        let key = idempotency_key.as_ref();
        let restored = self
            .step(|tx| async move {
                let found = lock(&tx, form).await?.ok_or(Stop::Missing)?;
                let replayed = async |record: IdempotencyRecord| {
                    let (form, responses) = from_json("what was restored", &record.extra)?;
                    restored_form(&tx, form, responses, record.at).await
                };
                idempotency::replay(&tx, key, now, replayed).await?;
                let restored = found.restored()?;
                check_slug(&tx, &restored).await?;
                put(&tx, &restored, None).await?;
                let responses = counters::responses(&tx, form.id).await?;
                let shown = to_text(&(&restored, responses))?;
                idempotency::insert_record(&tx, key, 0, shown.as_bytes(), now).await?;
                Ok(restored_form(&tx, restored, responses, now).await?)
            })
            .await?;
        self.context.due.wake();
        Ok(restored)
    }

    async fn purge_form(&self, form: FormRef, expected: ExpectedRevision) -> Result<StepResult<()>> {
        let expected = &expected;
        let begun = self
            .step(|tx| async move {
                let found = lock(&tx, form).await?.ok_or(Stop::Missing)?;
                expected.check(found.revision)?;
                Ok(purges::begin(&tx, form.id).await?)
            })
            .await?;
        if matches!(begun, StepResult::Done(())) {
            self.resume_purges();
        }
        Ok(begun)
    }
}

/// Finds a form, in the trash or not.
async fn find(tx: &Tx, form: FormRef) -> Result<Option<Form>> {
    let sql = "SELECT data FROM forms WHERE id = $1 AND workspace = $2";
    tx.find_json("a form", sql, &[&form.id, &form.workspace]).await
}

/// Locks a form, in the trash or not, to change it.
pub(super) async fn lock(tx: &Tx, form: FormRef) -> Result<Option<Form>> {
    counters::lock(tx, form.id, Lock::Form).await?;
    find(tx, form).await
}

/// Whether a form is outside the trash.
fn is_live(form: &Form) -> bool {
    form.deleted_at.is_none()
}

/// Whether a workspace was deleted, which cannot happen from then on until the end of the transaction.
async fn is_deleted(tx: &Tx, workspace: WorkspaceId) -> Result<bool> {
    let sql = "SELECT is_deleted FROM workspaces WHERE id = $1 FOR SHARE";
    Ok(tx.query_opt(sql, &[&workspace]).await?.is_some_and(|row| row.get(0)))
}

async fn find_slug(tx: &Tx, workspace: WorkspaceId, slug: &str) -> Result<Option<FormId>> {
    let sql = "SELECT id FROM forms WHERE workspace = $1 AND slug = $2 AND deleted_at IS NULL";
    Ok(tx.query_opt(sql, &[&workspace, &slug]).await?.map(|row| row.get(0)))
}

/// Checks that no other form outside the trash has the slug of `form`. One that gets it meanwhile interrupts the transaction,
/// because slugs are unique.
async fn check_slug<T>(tx: &Tx, form: &Form) -> Result<(), Stop<T>> {
    let Some(slug) = &form.slug else { return Ok(()) };
    match find_slug(tx, form.workspace, slug).await? {
        Some(holder) => Err(Refusal::slug_taken(slug, holder).into()),
        None => Ok(()),
    }
}

/// Writes a new or changed form, and the ids of its removed questions if they have changed.
pub(super) async fn put(tx: &Tx, form: &Form, retired: Option<&str>) -> Result<()> {
    let sql = "INSERT INTO forms (id, workspace, slug, created_at, deleted_at, revision, data, retired)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
               ON CONFLICT (id) DO UPDATE SET slug = excluded.slug, deleted_at = excluded.deleted_at,
                   revision = excluded.revision, data = excluded.data,
                   retired = coalesce(excluded.retired, forms.retired)";
    let Form { id, workspace, slug, created_at, deleted_at, .. } = form;
    let revision = i64::try_from(form.revision).unwrap_or(i64::MAX);
    let data = to_text(form)?;
    tx.execute(sql, &[id, workspace, slug, created_at, deleted_at, &revision, &data, &retired])
        .await
        .map(drop)
}

/// Inserts a version whose JSON is `data`; `conflict` says what to do if there is one with its number.
pub(super) async fn insert_version(
    tx: &Tx,
    (form, number): (FormId, u32),
    data: &str,
    conflict: &str,
) -> Result<()> {
    let sql = format!("INSERT INTO form_versions (form, number, data) VALUES ($1, $2, $3) {conflict}");
    tx.execute(&sql, &[&form, &i64::from(number), &data]).await.map(drop)
}

/// Lists versions, newest first: their sizes, and then those that a page holds.
async fn list_versions(tx: &Tx, form: FormId, before: Option<u32>, limit: usize) -> Result<VersionRows> {
    let sql = "SELECT number, octet_length(data) FROM form_versions WHERE form = $1 AND number < $2
               ORDER BY number DESC LIMIT $3";
    let before = before.map_or(i64::MAX, i64::from);
    let sizes = tx.query(sql, &[&form, &before, &(limit as i64 + 1)]).await?;
    let (mut numbers, mut bytes) = (Vec::new(), 0);
    for row in sizes.iter().take(limit) {
        numbers.push(row.get::<_, i64>(0));
        bytes += row.get::<_, i32>(1) as usize;
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    let has_more = numbers.len() < sizes.len();
    let sql =
        "SELECT data FROM form_versions WHERE form = $1 AND number = ANY($2::BIGINT[]) ORDER BY number DESC";
    let rows: Vec<StoredVersion> = tx.list_json(VERSION, sql, &[&form, &numbers]).await?;
    Ok(Page { next: rows.last().filter(|_| has_more).map(|row| row.number), rows })
}

/// Reads a version of a form that must have it.
pub(super) async fn read_version(tx: &Tx, form: FormId, number: u32) -> Result<StoredVersion> {
    let sql = "SELECT data FROM form_versions WHERE form = $1 AND number = $2";
    let missing = || StoreError::Missing(format!("version {number} of {form}"));
    tx.find_json(VERSION, sql, &[&form, &i64::from(number)]).await?.ok_or_else(missing)
}

/// Builds the result of a restore with the questions as they are in this transaction, so that the caller needs no second
/// read.
async fn restored_form(tx: &Tx, form: Form, responses: u64, at: Timestamp) -> Result<Restored> {
    let version = read_version(tx, form.id, form.version).await?;
    Ok(Restored { version, form: Arc::new(form), responses, at })
}
