//! Searches in the submissions of a form, by chunks of bounded size.

use std::ops::Bound;
use std::sync::Arc;

use tokio_postgres::Row;

use super::PostgresStore;
use super::values::number;
use crate::domain::submission::filter::{Order, SubmissionFilter};
use crate::domain::submission::{EditInfo, Submission, SubmissionStatus};
use crate::id::{FormId, SubmissionId};
use crate::store::search::{Found, SearchGoal};
use crate::store::{ITEM_OVERHEAD, PAGE_BYTES, Result};

/// Most rows of a chunk: those of a page, and one more.
const CHUNK: usize = 1_001;

/// What [`submission`] reads.
pub(super) const COLUMNS: &str = "submissions.form, submissions.id, submissions.form_version, submissions.is_quarantined,
    submissions.answers, submissions.metadata, submissions.edits, submissions.edited_at, submissions.deleted_at";

/// Which submissions of a form are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Live,
    Trash,
    Quarantine,
}

/// A search in the submissions of a form.
pub(super) struct SubmissionSearch {
    pub(super) form: FormId,
    pub(super) place: Place,
    pub(super) filter: SubmissionFilter,
    pub(super) order: Order,
    pub(super) after: Option<SubmissionId>,
    /// Whether names, numbers and metadata count as text.
    pub(super) anywhere: bool,
}

pub(super) fn submission(row: &Row) -> Submission {
    let edited_at: Option<_> = row.get(7);
    let is_quarantined: bool = row.get(3);
    Submission {
        form: row.get(0),
        id: row.get(1),
        form_version: number(row, 2),
        status: if is_quarantined { SubmissionStatus::Quarantined } else { SubmissionStatus::Completed },
        answers: row.get::<_, &str>(4).into(),
        metadata: row.get::<_, Option<&str>>(5).map(Into::into),
        edited: edited_at.map(|at| EditInfo { at, count: number(row, 6) }),
        deleted_at: row.get(8),
    }
}

impl SubmissionSearch {
    pub(super) fn matches(&self, submission: &Submission) -> bool {
        let Submission { answers, metadata, .. } = submission;
        match self.anywhere {
            true => self.filter.matches_anywhere(answers, metadata.as_deref()),
            false => !self.filter.reads_answers() || self.filter.matches(answers),
        }
    }

    /// The least id of the range to read, and the least one after it, as bytes.
    pub(super) fn range(&self, after: Option<SubmissionId>) -> (Vec<u8>, Vec<u8>) {
        let next = |id: SubmissionId| (u128::from_be_bytes(id.to_bytes()) + 1).to_be_bytes().to_vec();
        let (mut from, mut to) = self.filter.id_range();
        if let Some(after) = after {
            match self.order {
                Order::NewestFirst => to = Bound::Excluded(after),
                Order::OldestFirst => from = Bound::Excluded(after),
            }
        }
        let from = match from {
            Bound::Included(id) => id.to_bytes().to_vec(),
            Bound::Excluded(id) => next(id),
            Bound::Unbounded => Vec::new(),
        };
        let to = match to {
            Bound::Included(id) => next(id),
            Bound::Excluded(id) => id.to_bytes().to_vec(),
            // Longer than any id, and above all of them.
            Bound::Unbounded => vec![u8::MAX; 17],
        };
        (from, to)
    }

    fn sql(&self) -> String {
        let order = match self.order {
            Order::NewestFirst => "id DESC",
            Order::OldestFirst => "id",
        };
        let place = match self.place {
            Place::Live => "deleted_at IS NULL",
            Place::Trash => "deleted_at IS NOT NULL AND NOT is_quarantined",
            Place::Quarantine => "deleted_at IS NOT NULL AND is_quarantined",
        };
        // Rows that end within the bytes of a page, or begin there; and how many there would be without this limit.
        format!(
            "SELECT {COLUMNS}, total FROM (SELECT *, octet_length(answers) AS length, count(*) OVER () AS total,
                 sum(octet_length(answers)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS bytes
                 FROM (SELECT * FROM submissions WHERE form = $1 AND {place} AND id >= $2 AND id < $3
                     ORDER BY {order} LIMIT $4) chunk) submissions
             WHERE bytes - length < $5 ORDER BY {order}"
        )
    }
}

impl PostgresStore {
    /// Searches until `goal` is reached, or time runs out.
    pub(super) async fn search_submissions(
        &self,
        search: SubmissionSearch,
        goal: SearchGoal,
    ) -> Result<Found<Submission, SubmissionId>> {
        let (sql, search) = (&search.sql(), &Arc::new(search));
        let read = |after, limit: usize| async move {
            let (from, to) = search.range(after);
            let (limit, bytes) = (limit as i64, PAGE_BYTES as i64);
            let rows = self.query(sql, &[&search.form, &from, &to, &limit, &bytes]).await?;
            let total: i64 = rows.first().map_or(0, |row| row.get(9));
            let is_last = total < limit && rows.len() as i64 == total;
            Ok((rows, is_last))
        };
        let criteria = Arc::clone(search);
        let examine = move |row: &Row| {
            let one = submission(row);
            let (id, bytes) = (one.id, one.size() + ITEM_OVERHEAD);
            Ok((id, criteria.matches(&one).then_some((one, bytes))))
        };
        let is_filtered = search.anywhere || search.filter.reads_answers();
        self.search((goal, search.after, CHUNK), is_filtered, read, examine).await
    }
}
