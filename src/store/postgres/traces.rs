//! The search for what a form has of someone in the states that edits have replaced.

use super::PostgresStore;
use crate::domain::submission::FoundIn;
use crate::domain::submission::filter::SubmissionFilter;
use crate::id::{FormId, SubmissionId};
use crate::store::Result;

/// Replaced states that are read at once; each may be large.
const STATES: i64 = 16;

impl PostgresStore {
    pub(super) async fn search_history(
        &self,
        form: FormId,
        filter: &SubmissionFilter,
        limit: usize,
        traces: &mut Vec<(SubmissionId, FoundIn)>,
    ) -> Result<()> {
        let sql = "SELECT submission, number, answers, metadata FROM replaced_states
                   WHERE form = $1 AND (submission, number) > ($2, $3) ORDER BY submission, number LIMIT $4";
        let mut after = (SubmissionId::ZERO, i64::MIN);
        while traces.len() <= limit {
            let (submission, number) = after;
            let rows = self.query(sql, &[&form, &submission, &number, &STATES]).await?;
            for row in &rows {
                after = (row.get(0), row.get(1));
                // Of a submission with many replaced states, one counts.
                let found = (after.0, FoundIn::History);
                if filter.matches_anywhere(row.get(2), row.get(3)) && traces.last() != Some(&found) {
                    traces.push(found);
                }
            }
            if (rows.len() as i64) < STATES {
                break;
            }
        }
        Ok(())
    }
}
