//! Searches in the lists of forms: live ones by time of creation, trashed ones by time of deletion.

use std::sync::Arc;

use tokio_postgres::Row;

use super::{PostgresStore, forms};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::filter::FormFilter;
use crate::id::{FormId, WorkspaceId};
use crate::store::search::{Found, SearchGoal};
use crate::store::{ITEM_OVERHEAD, Result};

/// Most forms of a chunk.
const CHUNK: usize = 64;

/// When a form was created, or deleted if it is in the trash, and its id.
type Position = (Timestamp, FormId);

type FoundForms = Found<(Arc<Form>, u64), Position>;

impl PostgresStore {
    /// Searches the forms older than `after` until `goal` is reached, or time runs out.
    pub(super) async fn search_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<Position>,
        goal: SearchGoal,
    ) -> Result<FoundForms> {
        // Filters take time, which is limited for all requests together.
        let job = (!filter.matches_all()).then(|| self.context.pool.admit()).transpose()?;
        let mut found = Found::new(goal);
        while !found.is_done() {
            let limit = match (goal, &job) {
                (SearchGoal::Page(limit), None) => (limit + 1 - found.len()).min(CHUNK),
                _ => CHUNK,
            };
            let position = found.last().copied().or(after);
            let rows = self.read_forms(workspace, filter.trashed, position, limit).await?;
            let (is_last, filter) = (rows.len() < limit, filter.clone());
            let step = move || examine(&rows, &filter, &mut found).map(|()| found);
            found = match &job {
                Some(job) => job.run(|_| step()).await??,
                None => step()?,
            };
            if is_last {
                found.end();
            }
            // Even a search that is out of time must return a position to continue from.
            if job.as_ref().is_some_and(|job| job.is_overdue()) && found.has_position() {
                break;
            }
        }
        Ok(found)
    }

    /// Counts the forms of a list.
    pub(super) async fn count_listed(&self, workspace: WorkspaceId, trashed: bool) -> Result<u64> {
        let (_, place) = list(trashed);
        let sql = &format!("SELECT count(*) FROM forms WHERE workspace = $1 AND {place}");
        let row = self.read(|tx| async move { tx.query_opt(sql, &[&workspace]).await }).await?;
        Ok(row.and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok()).unwrap_or(0))
    }

    /// Reads forms of a list with their numbers of submissions, newest first.
    async fn read_forms(
        &self,
        workspace: WorkspaceId,
        trashed: bool,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Vec<Row>> {
        let (time, place) = list(trashed);
        let sql = &format!(
            "SELECT data, (SELECT coalesce(sum(responses), 0)::BIGINT FROM counters WHERE form = forms.id)
             FROM forms WHERE workspace = $1 AND {place} AND ({time}, id) < ($2, $3)
             ORDER BY {time} DESC, id DESC LIMIT $4"
        );
        let (at, id) = after.unwrap_or((Timestamp::from_millis(i64::MAX), FormId::ZERO));
        let limit = limit as i64;
        self.read(|tx| async move { tx.query(sql, &[&workspace, &at, &id, &limit]).await }).await
    }
}

/// The column that a list is ordered by, and the condition of its index.
fn list(trashed: bool) -> (&'static str, &'static str) {
    match trashed {
        false => ("created_at", "deleted_at IS NULL"),
        true => ("deleted_at", "deleted_at IS NOT NULL"),
    }
}

/// Passes the forms of `rows` to `found`.
fn examine(rows: &[Row], filter: &FormFilter, found: &mut FoundForms) -> Result<()> {
    for row in rows {
        let form = Arc::new(forms::decode(row)?);
        let responses = row.get::<_, i64>(1).cast_unsigned();
        let position = (form.deleted_at.unwrap_or(form.created_at), form.id);
        let bytes = form.title.len() + form.slug.as_ref().map_or(0, String::len) + ITEM_OVERHEAD;
        let is_match = filter.matches(&form) && filter.matches_reason(&form, responses);
        if !found.take(position, is_match.then_some(((form, responses), bytes))) {
            break;
        }
    }
    Ok(())
}
