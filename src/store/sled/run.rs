//! Runs: submissions of one form that became durable together share a row. A row of its own for each would cost the
//! index more than all the rest of storing it.
//!
//! ```text
//! S form(8) submission(16)    1, and for each: submission(16) form version(4) status(1) length(4), the answers' text
//! ```
//! The key has the first submission's id, those within follow in rising order, and no run begins within another.

use super::layout::damaged;
use crate::domain::submission::{Submission, SubmissionStatus};
use crate::id::{FormId, SubmissionId};
use crate::store::StoreError;

/// Bytes up to which a run takes more in, so that it stays one cell of the index.
const FULL: usize = 4_000;

/// The first byte: the format.
const FORMAT: u8 = 1;

/// Bytes of an entry besides its answers.
const HEAD: usize = 16 + 4 + 1 + 4;

/// A submission made ready for a run before it has its id.
pub(super) struct Entry(Vec<u8>);

impl Entry {
    pub(super) fn new(form_version: u32, answers: &str) -> Result<Self, StoreError> {
        let completed = 0;
        let too_long = |_| StoreError::Io(std::io::ErrorKind::FileTooLarge.into());
        let length = u32::try_from(answers.len()).map_err(too_long)?;
        let mut entry = Vec::with_capacity(HEAD - 16 + answers.len());
        entry.extend_from_slice(&form_version.to_be_bytes());
        entry.push(completed);
        entry.extend_from_slice(&length.to_be_bytes());
        entry.extend_from_slice(answers.as_bytes());
        Ok(Self(entry))
    }

    /// Whether there is room for it behind `run`.
    pub(super) fn fits(&self, run: &[u8]) -> bool {
        run.len() + 16 + self.0.len() <= FULL
    }

    /// `run` with it at the end, as `id`.
    pub(super) fn behind(&self, run: &[u8], id: SubmissionId) -> Vec<u8> {
        let (format, run) = run.split_first().unwrap_or((&FORMAT, &[]));
        // With room for what the engine puts behind it, or it would be copied for that.
        let mut longer = Vec::with_capacity(1 + run.len() + 16 + self.0.len() + 8);
        longer.push(*format);
        longer.extend_from_slice(run);
        longer.extend_from_slice(&id.to_bytes());
        longer.extend_from_slice(&self.0);
        longer
    }
}

/// One submission of a run, its text still where it stands.
pub(super) struct Kept<'a> {
    pub(super) id: SubmissionId,
    form_version: u32,
    answers: &'a [u8],
}

impl Kept<'_> {
    /// The answers' text.
    pub(super) fn answers(&self) -> Result<&str, StoreError> {
        std::str::from_utf8(self.answers).map_err(|_text| damaged("a submission"))
    }

    /// The submission, of `form`.
    pub(super) fn of(&self, form: FormId) -> Result<Submission, StoreError> {
        Ok(Submission {
            id: self.id,
            form,
            form_version: self.form_version,
            status: SubmissionStatus::Completed,
            answers: self.answers()?.into(),
        })
    }
}

/// The submissions of a run, oldest first.
pub(super) fn read(run: &[u8]) -> Result<Vec<Kept<'_>>, StoreError> {
    let mut rest = run.strip_prefix(&[FORMAT]).ok_or_else(|| damaged("a submission"))?;
    let mut submissions = Vec::new();
    while !rest.is_empty() {
        let (kept, after) = split(rest).ok_or_else(|| damaged("a submission"))?;
        submissions.push(kept);
        rest = after;
    }
    Ok(submissions)
}

/// The first and the last submission of a run.
pub(super) fn ends(run: &[u8]) -> Result<(SubmissionId, SubmissionId), StoreError> {
    match read(run)?.as_slice() {
        [first, .., last] => Ok((first.id, last.id)),
        [only] => Ok((only.id, only.id)),
        [] => Err(damaged("a submission")),
    }
}

fn split(run: &[u8]) -> Option<(Kept<'_>, &[u8])> {
    let (id, rest) = run.split_first_chunk()?;
    let (form_version, rest) = rest.split_first_chunk()?;
    let (&[0], rest) = rest.split_first_chunk()? else { return None };
    let (length, rest) = rest.split_first_chunk()?;
    let (answers, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let (id, form_version) = (SubmissionId::from_bytes(*id), u32::from_be_bytes(*form_version));
    Some((Kept { id, form_version, answers }, rest))
}
