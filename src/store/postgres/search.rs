//! Searches in lists, by chunks of rows.

use tokio_postgres::Row;

use super::Database;
use crate::store::Result;
use crate::store::search::{Found, SearchGoal};

impl Database {
    /// Searches a list after a position until `goal` is reached, or time runs out. `read` reads at most a number of rows after a
    /// position, and returns whether they are the last ones; `examine` returns the position of a row, and its item with its size in
    /// bytes if it matches. The rows of a search that `is_filtered` are examined where time is limited.
    pub(super) async fn search<T, P, F>(
        &self,
        (goal, after, chunk): (SearchGoal, Option<P>, usize),
        is_filtered: bool,
        read: impl Fn(Option<P>, usize) -> F,
        examine: impl Fn(&Row) -> Result<(P, Option<(T, usize)>)> + Clone + Send + 'static,
    ) -> Result<Found<T, P>>
    where
        T: Send + 'static,
        P: Copy + Send + 'static,
        F: Future<Output = Result<(Vec<Row>, bool)>>,
    {
        // Filters take time, which is limited for all requests together.
        let job = is_filtered.then(|| self.context.pool.admit()).transpose()?;
        let mut found = Found::new(goal);
        while !found.is_done() {
            let limit = match (goal, &job) {
                (SearchGoal::Page(limit), None) => (limit + 1 - found.len()).min(chunk),
                _ => chunk,
            };
            let (rows, is_last) = read(found.last().copied().or(after), limit).await?;
            let examine = examine.clone();
            let step = move || -> Result<Found<T, P>> {
                for row in &rows {
                    let (position, matching) = examine(row)?;
                    if !found.take(position, matching) {
                        break;
                    }
                }
                Ok(found)
            };
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
}
