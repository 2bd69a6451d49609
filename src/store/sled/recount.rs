//! Counters made anew from what is counted: needed only when a rebuilt index sums up to something else than its journal
//! says, which means that some decision was made on an index with a hole in it.

use super::engine::job::{Jobs, Progress};
use super::engine::tx::{Direction, Tx};
use super::layout::{self, Counters};
use crate::id::FormId;
use crate::store::StoreError;

/// Counts the submissions of every form, one form a slice.
pub(super) fn begin(jobs: &Jobs) {
    let mut forms: Option<Vec<FormId>> = None;
    jobs.begin(move |tx| {
        let forms = match &mut forms {
            Some(forms) => forms,
            None => forms.insert(all_forms(tx)?),
        };
        match forms.pop() {
            Some(form) => count(tx, form).map(|()| Progress::More),
            None => Ok(Progress::Done),
        }
    });
}

fn all_forms(tx: &Tx<'_>) -> Result<Vec<FormId>, StoreError> {
    let rows = tx.scan(layout::form_workspaces(), Direction::Ascending, usize::MAX)?;
    rows.iter().map(|(key, _)| layout::listed_form(key)).collect()
}

fn count(tx: &mut Tx<'_>, form: FormId) -> Result<(), StoreError> {
    let mut counted = Counters::default();
    let mut before = None;
    loop {
        let rows = tx.scan(layout::submissions(form, before), Direction::Descending, 1_000)?;
        let Some((oldest, _)) = rows.last() else { break };
        before = Some(layout::submission_id(oldest)?);
        if counted.last.is_none() {
            counted.last = rows.first().map(|(newest, _)| layout::submission_id(newest)).transpose()?;
        }
        counted.responses += rows.len() as u64;
    }
    tx.put_last(layout::counters(form), counted.encode());
    Ok(())
}
