//! Binary encoding of a submission's content: in its block, or in an overflow row.
//!
//! ```text
//! form version(4) flags(1) length(4), the answers' text
//! flag 1: then length(4), the metadata's text
//! flag 2: then when it was edited last(8), and how often(4)
//! flag 4: no content, answers included: it is in the overflow row `E`
//! flag 8: quarantined; only in `T`
//! ```

use super::layout::undecodable;
use crate::clock::Timestamp;
use crate::domain::submission::{EditInfo, Submission, SubmissionStatus};
use crate::id::{FormId, SubmissionId};
use crate::store::{Result, StoreError};

const METADATA: u8 = 1;
const EDITED: u8 = 2;
const OVERFLOW: u8 = 4;
const QUARANTINED: u8 = 8;

/// Encodes the content of a submission; the id is not part of it.
pub(super) fn encode(
    form_version: u32,
    status: SubmissionStatus,
    answers: &str,
    metadata: Option<&str>,
    edited: Option<EditInfo>,
) -> Result<Vec<u8>> {
    let is_quarantined = status == SubmissionStatus::Quarantined;
    let flags = [(METADATA, metadata.is_some()), (EDITED, edited.is_some()), (QUARANTINED, is_quarantined)];
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set).fold(0, |all, (flag, _)| all | flag);
    let mut encoded = Vec::with_capacity(4 + 1 + 4 + answers.len());
    encoded.extend_from_slice(&form_version.to_be_bytes());
    encoded.push(flags);
    for text in [Some(answers), metadata].into_iter().flatten() {
        let too_long = |_| StoreError::Io(std::io::ErrorKind::FileTooLarge.into());
        encoded.extend_from_slice(&u32::try_from(text.len()).map_err(too_long)?.to_be_bytes());
        encoded.extend_from_slice(text.as_bytes());
    }
    if let Some(edited) = edited {
        encoded.extend_from_slice(&edited.at.millis().to_be_bytes());
        encoded.extend_from_slice(&edited.count.to_be_bytes());
    }
    Ok(encoded)
}

/// Encodes a stored submission as it is.
pub(super) fn encode_whole(submission: &Submission) -> Result<Vec<u8>> {
    let Submission { form_version, status, answers, metadata, edited, .. } = submission;
    encode(*form_version, *status, answers, metadata.as_deref(), *edited)
}

/// Encodes a stored submission after the time of its deletion or replacement.
pub(super) fn encode_with_timestamp(submission: &Submission, at: Timestamp) -> Result<Vec<u8>> {
    Ok([&at.millis().to_be_bytes()[..], &encode_whole(submission)?].concat())
}

/// Encodes the placeholder of a submission whose content is in an overflow row.
pub(super) fn placeholder(form_version: u32) -> Vec<u8> {
    [&form_version.to_be_bytes()[..], &[OVERFLOW, 0, 0, 0, 0]].concat()
}

/// Decoded view of a submission's content; its texts are borrowed.
pub(super) struct SubmissionView<'a> {
    form_version: u32,
    flags: u8,
    answers: &'a [u8],
    metadata: Option<&'a [u8]>,
    edited: Option<EditInfo>,
}

impl SubmissionView<'_> {
    /// Whether the content is in the overflow row `E`.
    pub(super) fn is_overflow(&self) -> bool {
        self.flags & OVERFLOW != 0
    }

    /// Returns the text of the answers; empty if they are in the overflow row.
    pub(super) fn answers(&self) -> Result<&str> {
        str_of(self.answers)
    }

    /// Builds the submission `id` of `form`, as one outside the trash.
    pub(super) fn to_submission(&self, form: FormId, id: SubmissionId) -> Result<Submission> {
        Ok(Submission {
            id,
            form,
            form_version: self.form_version,
            status: match self.flags & QUARANTINED {
                0 => SubmissionStatus::Completed,
                _ => SubmissionStatus::Quarantined,
            },
            answers: text(self.answers)?,
            metadata: self.metadata.map(text).transpose()?,
            edited: self.edited,
            deleted_at: None,
        })
    }
}

/// Decodes exactly one encoded submission.
pub(super) fn read(bytes: &[u8]) -> Result<SubmissionView<'_>> {
    match split(bytes) {
        Some((view, [])) => Ok(view),
        Some(_) | None => Err(undecodable("a submission")),
    }
}

/// Decodes a timestamp and the encoded submission after it.
pub(super) fn read_with_timestamp(bytes: &[u8]) -> Result<(Timestamp, SubmissionView<'_>)> {
    let (moment, view) = bytes.split_first_chunk().ok_or_else(|| undecodable("a submission"))?;
    Ok((Timestamp::from_millis(i64::from_be_bytes(*moment)), read(view)?))
}

/// Decodes the submission at the start of `bytes`, and returns the remaining bytes.
pub(super) fn split(bytes: &[u8]) -> Option<(SubmissionView<'_>, &[u8])> {
    let (form_version, rest) = bytes.split_first_chunk()?;
    let (&[flags], rest) = rest.split_first_chunk()?;
    if flags & !(METADATA | EDITED | OVERFLOW | QUARANTINED) != 0 {
        return None;
    }
    let (answers, mut rest) = split_text(rest)?;
    let (mut metadata, mut edited) = (None, None);
    if flags & METADATA != 0 {
        let (text, after) = split_text(rest)?;
        (metadata, rest) = (Some(text), after);
    }
    if flags & EDITED != 0 {
        let (at, after) = rest.split_first_chunk()?;
        let (count, after) = after.split_first_chunk()?;
        let at = Timestamp::from_millis(i64::from_be_bytes(*at));
        (edited, rest) = (Some(EditInfo { at, count: u32::from_be_bytes(*count) }), after);
    }
    let form_version = u32::from_be_bytes(*form_version);
    Some((SubmissionView { form_version, flags, answers, metadata, edited }, rest))
}

fn split_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

fn text(bytes: &[u8]) -> Result<Box<str>> {
    str_of(bytes).map(Into::into)
}

fn str_of(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_text| undecodable("a submission"))
}
