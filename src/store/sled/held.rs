//! A submission where it is held: in its run, or apart from it. For readers, and for the writer, who moves it.

use super::engine::tx::Tx;
use super::entry::{self, Entry};
use super::layout;
use super::run::{self, Kept};
use crate::domain::submission::Submission;
use crate::id::{FormId, SubmissionId};
use crate::store::StoreError;

/// The submission that stands in a run of `form` as `kept`; `get` reads other rows. `None` if it has gone since.
pub(super) fn read(
    form: FormId,
    kept: &Kept<'_>,
    get: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, StoreError>,
) -> Result<Option<Submission>, StoreError> {
    if !kept.state.is_apart() {
        return kept.state.of(form, kept.id).map(Some);
    }
    let Some(body) = get(&layout::apart(form, kept.id))? else { return Ok(None) };
    entry::read(&body)?.of(form, kept.id).map(Some)
}

/// A live submission as the writer finds it.
pub(super) struct Found {
    pub(super) submission: Submission,
    is_apart: bool,
    /// The row of its run.
    key: Vec<u8>,
    run: Vec<u8>,
}

/// The submission `id` of `form`, unless it is in the trash.
pub(super) fn find(tx: &Tx<'_>, form: FormId, id: SubmissionId) -> Result<Option<Found>, StoreError> {
    let Some((key, run)) = tx.last(layout::submissions_up_to(form, id))? else { return Ok(None) };
    let Some(kept) = run::read(&run)?.into_iter().find(|kept| kept.id == id) else { return Ok(None) };
    let submission = read(form, &kept, |key| tx.get(key))?;
    let submission = submission.ok_or_else(|| StoreError::Missing(format!("what {id} holds")))?;
    let is_apart = kept.state.is_apart();
    Ok(Some(Found { submission, is_apart, key, run }))
}

impl Found {
    /// Writes `edited` in its place.
    pub(super) fn replace(self, tx: &mut Tx<'_>, edited: &Submission) -> Result<(), StoreError> {
        if !self.is_apart {
            let run = run::with(&self.run, edited.id, Some(&Entry::apart(edited.form_version)))?;
            put_or_delete(tx, self.key, run);
        }
        put_apart(tx, edited)
    }

    /// Takes it out of sight.
    pub(super) fn remove(self, tx: &mut Tx<'_>) -> Result<Submission, StoreError> {
        let Self { submission, is_apart, key, run } = self;
        if is_apart {
            tx.delete(layout::apart(submission.form, submission.id));
        }
        put_or_delete(tx, key, run::with(&run, submission.id, None)?);
        Ok(submission)
    }
}

/// Puts `submission` back among the live ones: into the run within which its id lies, else into one of its own, whose
/// beginning this returns.
pub(super) fn put_back(tx: &mut Tx<'_>, submission: &Submission) -> Result<Option<SubmissionId>, StoreError> {
    put_apart(tx, submission)?;
    let (form, id) = (submission.form, submission.id);
    let entry = Entry::apart(submission.form_version);
    if let Some((key, run)) = tx.last(layout::submissions_up_to(form, id))?
        && run::last(&run)? > id
    {
        put_or_delete(tx, key, run::with(&run, id, Some(&entry))?);
        return Ok(None);
    }
    tx.put(layout::submission(form, id), run::of(id, &entry));
    Ok(Some(id))
}

fn put_apart(tx: &mut Tx<'_>, submission: &Submission) -> Result<(), StoreError> {
    let entry = Entry::of(submission)?;
    tx.put(layout::apart(submission.form, submission.id), entry.bytes().to_vec());
    Ok(())
}

fn put_or_delete(tx: &mut Tx<'_>, key: Vec<u8>, body: Option<Vec<u8>>) {
    match body {
        Some(body) => tx.put(key, body),
        None => tx.delete(key),
    }
}
