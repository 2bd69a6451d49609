//! Searches in the lists of forms: live ones by time of creation, trashed ones by time of deletion.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Row;

use super::transaction::Tx;
use super::{PostgresStore, forms};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::form::filter::FormFilter;
use crate::id::{FormId, WorkspaceId};
use crate::store::{FormRows, ITEM_OVERHEAD, PAGE_BYTES, Page, Result};

/// How long a search may take. It ends after the rows that it reads then.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// Forms read at once.
const CHUNK: usize = 64;

/// When a form was created, or deleted if it is in the trash, and its id.
type Position = (Timestamp, FormId);

impl PostgresStore {
    /// Returns a page of the forms that match `filter`.
    pub(super) async fn search_forms(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<FormRows> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let take = |form: Form, responses| {
            bytes += form.title.len() + form.slug.as_ref().map_or(0, String::len) + ITEM_OVERHEAD;
            let is_full = rows.len() == limit || bytes > PAGE_BYTES && !rows.is_empty();
            if !is_full {
                rows.push((Arc::new(form), responses));
            }
            !is_full
        };
        let next = self.search(workspace, filter, after, take).await?;
        Ok(Page { rows, next })
    }

    /// Counts the forms that match `filter`; `None` if that takes too long.
    pub(super) async fn count_matches(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
    ) -> Result<Option<u64>> {
        if filter.matches_all() {
            let sql = "SELECT count(*) FROM forms WHERE workspace = $1 AND (deleted_at IS NOT NULL) = $2";
            let trashed = filter.trashed;
            let count = |session: Tx| async move { session.query_opt(sql, &[&workspace, &trashed]).await };
            return Ok(self.read(count).await?.and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok()));
        }
        let mut count = 0;
        let take = |_, _| {
            count += 1;
            true
        };
        let next = self.search(workspace, filter, None, take).await?;
        Ok(next.is_none().then_some(count))
    }

    /// Passes the forms that match `filter` to `take` until it returns `false`, with no effect. Returns the position to
    /// continue from; `None` at the end of the list.
    async fn search(
        &self,
        workspace: WorkspaceId,
        filter: &FormFilter,
        mut after: Option<Position>,
        mut take: impl FnMut(Form, u64) -> bool + Send,
    ) -> Result<Option<Position>> {
        let until = Instant::now() + SEARCH_TIME;
        loop {
            let forms = self.read_forms(workspace, filter.trashed, after).await?;
            let is_end = forms.len() < CHUNK;
            for row in &forms {
                let (form, responses) = decode(row)?;
                let position = (form.deleted_at.unwrap_or(form.created_at), form.id);
                let is_match = filter.matches(&form) && filter.matches_reason(&form, responses);
                if is_match && !take(form, responses) {
                    return Ok(after);
                }
                after = Some(position);
            }
            if is_end {
                return Ok(None);
            }
            if Instant::now() >= until {
                return Ok(after);
            }
        }
    }

    /// Reads forms of a list, newest first, from the first one older than `after` on.
    async fn read_forms(
        &self,
        workspace: WorkspaceId,
        trashed: bool,
        after: Option<Position>,
    ) -> Result<Vec<Row>> {
        const RESPONSES: &str =
            "SELECT coalesce(sum(responses), 0)::BIGINT FROM counters WHERE form = forms.id";
        let (time, condition) = match trashed {
            false => ("created_at", "deleted_at IS NULL"),
            true => ("deleted_at", "deleted_at IS NOT NULL"),
        };
        let sql = &format!(
            "SELECT data, ({RESPONSES}) FROM forms WHERE workspace = $1 AND {condition} AND ({time}, id) < ($2, $3)
             ORDER BY {time} DESC, id DESC LIMIT {CHUNK}"
        );
        let (at, id) = after.unwrap_or((Timestamp::from_millis(i64::MAX), FormId::ZERO));
        self.read(|session| async move { session.query(sql, &[&workspace, &at, &id]).await }).await
    }
}

fn decode(row: &Row) -> Result<(Form, u64)> {
    Ok((forms::decode(row)?, u64::try_from(row.get::<_, i64>(1)).unwrap_or(0)))
}
