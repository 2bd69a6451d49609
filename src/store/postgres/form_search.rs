//! Searches in the lists of forms: live ones by time of creation, trashed ones by time of deletion.

use std::sync::Arc;

use tokio_postgres::Row;

use super::PostgresStore;
use super::values::json;
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

impl PostgresStore {
    /// Searches the forms older than `after`, with their numbers of submissions, newest first.
    pub(super) async fn search_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<Position>,
        goal: SearchGoal,
    ) -> Result<Found<(Arc<Form>, u64), Position>> {
        let (time, place) = list(filter.trashed);
        let sql = &format!(
            "SELECT data, (SELECT coalesce(sum(responses), 0)::BIGINT FROM counters WHERE form = forms.id)
             FROM forms WHERE workspace = $1 AND {place} AND ({time}, id) < ($2, $3)
             ORDER BY {time} DESC, id DESC LIMIT $4"
        );
        let read = |after: Option<Position>, limit: usize| async move {
            let (at, id) = after.unwrap_or((Timestamp::from_millis(i64::MAX), FormId::ZERO));
            let rows = self.query(sql, &[&workspace, &at, &id, &(limit as i64)]).await?;
            let is_last = rows.len() < limit;
            Ok((rows, is_last))
        };
        let is_filtered = !filter.matches_all();
        let filter = filter.clone();
        let examine = move |row: &Row| {
            let form: Arc<Form> = Arc::new(json("a form", row, 0)?);
            let responses = row.get::<_, i64>(1).cast_unsigned();
            let position = (form.deleted_at.unwrap_or(form.created_at), form.id);
            let bytes = form.title.len() + form.slug.as_ref().map_or(0, String::len) + ITEM_OVERHEAD;
            let is_match = filter.matches(&form) && filter.matches_reason(&form, responses);
            Ok((position, is_match.then_some(((form, responses), bytes))))
        };
        self.search((goal, after, CHUNK), is_filtered, read, examine).await
    }

    /// Counts the forms of a list.
    pub(super) async fn count_listed(&self, workspace: WorkspaceId, trashed: bool) -> Result<u64> {
        let (_, place) = list(trashed);
        let sql = format!("SELECT count(*) FROM forms WHERE workspace = $1 AND {place}");
        self.count(&sql, &[&workspace]).await
    }
}

/// The column that a list is ordered by, and the condition of its index.
fn list(trashed: bool) -> (&'static str, &'static str) {
    match trashed {
        false => ("created_at", "deleted_at IS NULL"),
        true => ("deleted_at", "deleted_at IS NOT NULL"),
    }
}
