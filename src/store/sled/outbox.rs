//! The outbox: completed submissions that are owed to integrations and have no deliveries of their own yet.
//!
//! ```text
//! z form(8) sequence(8)    1, count(1), and for each: integration(8); then for each event: submission(16)
//! ```
//! A row holds events with consecutive numbers, beginning with the one in the key, that are owed to the same integrations.
//! Submissions of one group share a row: on the path of a submission it is the only row beside the submission's own.

use super::counters::Counters;
use super::delivery_layout as keys;
use super::engine::tx::{Direction, Tx};
use super::layout::undecodable;
use super::row_source::RowSource;
use crate::domain::form::Form;
use crate::domain::integration::event::EventType;
use crate::id::{FormId, IntegrationId, SubmissionId};
use crate::store::Result;

/// Maximum bytes of a row that is appended to, so that it stays one cell of the index.
const MAX_BYTES: usize = 4_000;

const FORMAT: u8 = 1;

/// Maximum rows read for one batch of entries, so that a long outbox of other integrations is skipped in steps.
const MAX_ROWS: usize = 64;

/// Rows read at once.
const BATCH: usize = 8;

/// Records that `submission` was completed, if that is owed to an integration.
pub(super) fn record_completed(
    tx: &mut Tx<'_>,
    form: &Form,
    counters: Counters,
    submission: SubmissionId,
) -> Counters {
    let subscribers: Vec<_> =
        form.subscribers(EventType::SubmissionCompleted).map(IntegrationId::to_bytes).collect();
    // A form has at most 20 integrations.
    let Some(count) = u8::try_from(subscribers.len()).ok().filter(|count| *count > 0) else {
        return counters;
    };
    let head = [&[FORMAT, count], subscribers.as_flattened()].concat();
    let sequence = counters.sequence + 1;
    let key = keys::outbox_row(form.id, counters.outbox);
    let is_open = |row: &&[u8]| {
        let is_next = (counters.outbox + (row.len().saturating_sub(head.len()) / 16) as u64) == sequence;
        row.starts_with(&head) && row.len() + 16 <= MAX_BYTES && is_next
    };
    if let Some(row) = tx.staged(&key).filter(is_open) {
        let longer = [row, &submission.to_bytes()].concat();
        tx.put(key, longer);
        return Counters { sequence, ..counters };
    }
    // Numbers of events are never assigned twice.
    tx.put_new(keys::outbox_row(form.id, sequence), [&head[..], &submission.to_bytes()].concat());
    Counters { sequence, outbox: sequence, ..counters }
}

/// An event of the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutboxEntry {
    pub(super) sequence: u64,
    pub(super) submission: SubmissionId,
}

/// A decoded row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutboxRow {
    pub(super) form: FormId,
    first: u64,
    pub(super) integrations: Vec<IntegrationId>,
    submissions: Vec<SubmissionId>,
}

impl OutboxRow {
    pub(super) fn decode(key: &[u8], body: &[u8]) -> Result<Self> {
        let unknown = || undecodable("an outbox row");
        let (form, first) = keys::outbox_position(key)?;
        let (&[format, count], rest) = body.split_first_chunk().ok_or_else(unknown)?;
        let (integrations, submissions) =
            rest.split_at_checked(8 * usize::from(count)).filter(|_| format == FORMAT).ok_or_else(unknown)?;
        let (submissions, []) = submissions.as_chunks() else { return Err(unknown()) };
        let integrations =
            integrations.as_chunks().0.iter().map(|id| IntegrationId::from_bytes(*id)).collect();
        let submissions = submissions.iter().map(|id| SubmissionId::from_bytes(*id)).collect();
        Ok(Self { form, first, integrations, submissions })
    }

    pub(super) fn key(&self) -> Vec<u8> {
        keys::outbox_row(self.form, self.first)
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.first + (self.submissions.len() as u64).saturating_sub(1)
    }

    pub(super) fn names(&self, integration: IntegrationId) -> bool {
        self.integrations.contains(&integration)
    }

    /// The entries, in order of their numbers.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = OutboxEntry> + ExactSizeIterator {
        let numbered = self.submissions.iter().enumerate();
        numbered.map(|(place, submission)| OutboxEntry {
            sequence: self.first + place as u64,
            submission: *submission,
        })
    }

    /// The first submission of the row, whose id is the lowest unless the clock was set back.
    pub(super) fn first_submission(&self) -> Option<SubmissionId> {
        self.submissions.first().copied()
    }
}

/// Entries of the outbox that are owed to one integration.
pub(super) struct WaitingEntries {
    pub(super) entries: Vec<OutboxEntry>,
    /// Every event up to this number that is owed to the integration is in `entries`, or was before the start.
    pub(super) read_to: u64,
    /// Whether nothing follows.
    pub(super) is_end: bool,
}

/// Reads at most `limit` entries that are owed to `integration`, after the event `after`. May read fewer although more
/// follow, if they are behind many rows of other integrations.
pub(super) fn read_waiting(
    rows: &impl RowSource,
    (form, integration): (FormId, IntegrationId),
    after: u64,
    limit: usize,
) -> Result<WaitingEntries> {
    let mut found = WaitingEntries { entries: Vec::new(), read_to: after, is_end: false };
    let before = rows.scan(keys::outbox_up_to(form, after), Direction::Descending, 1)?;
    let (mut batch, mut count) = (before, BATCH);
    let mut next = after;
    for _ in 0..=MAX_ROWS / BATCH {
        for (key, body) in &batch {
            let row = OutboxRow::decode(key, body)?;
            next = next.max(row.first());
            for entry in row.entries().filter(|entry| entry.sequence > after) {
                if row.names(integration) {
                    if found.entries.len() == limit {
                        return Ok(found);
                    }
                    found.entries.push(entry);
                }
                found.read_to = entry.sequence;
            }
        }
        if count < BATCH {
            found.is_end = true;
            return Ok(found);
        }
        batch = rows.scan(keys::outbox_after(form, next), Direction::Ascending, BATCH)?;
        count = batch.len();
        if count == 0 {
            found.is_end = true;
            return Ok(found);
        }
    }
    Ok(found)
}

/// Returns the row that holds the event `sequence`.
pub(super) fn find_row(rows: &impl RowSource, form: FormId, sequence: u64) -> Result<Option<OutboxRow>> {
    let row = rows.scan(keys::outbox_up_to(form, sequence), Direction::Descending, 1)?.pop();
    let row = row.map(|(key, body)| OutboxRow::decode(&key, &body)).transpose()?;
    Ok(row.filter(|row| row.last() >= sequence))
}

/// Returns the row that holds the event `sequence`, or else the next one.
pub(super) fn row_from(rows: &impl RowSource, form: FormId, sequence: u64) -> Result<Option<OutboxRow>> {
    if let Some(row) = find_row(rows, form, sequence)? {
        return Ok(Some(row));
    }
    let row = rows.scan(keys::outbox_after(form, sequence), Direction::Ascending, 1)?.pop();
    row.map(|(key, body)| OutboxRow::decode(&key, &body)).transpose()
}

/// Returns the last row.
pub(super) fn last_row(rows: &impl RowSource, form: FormId) -> Result<Option<OutboxRow>> {
    let row = rows.scan(keys::outbox(form), Direction::Descending, 1)?.pop();
    row.map(|(key, body)| OutboxRow::decode(&key, &body)).transpose()
}

/// Returns the last row whose first submission is at most `submission`, by binary search: ids rise with the numbers of their
/// events. (After the clock was set back by more than a minute they may not, until the outbox is empty; then the row may be
/// another one.)
pub(super) fn seek(
    rows: &impl RowSource,
    form: FormId,
    submission: SubmissionId,
) -> Result<Option<OutboxRow>> {
    let Some(mut high) = last_row(rows, form)?.map(|row| row.last()) else { return Ok(None) };
    let (mut low, mut found) = (0, None);
    while low < high + 1 {
        let middle = low + (high - low) / 2;
        let row = rows.scan(keys::outbox_up_to(form, middle), Direction::Descending, 1)?.pop();
        let Some((key, body)) = row else {
            low = middle + 1;
            continue;
        };
        let row = OutboxRow::decode(&key, &body)?;
        if row.first_submission().is_some_and(|first| first <= submission) {
            low = row.last().max(middle) + 1;
            found = Some(row);
        } else if row.first() == 0 {
            break;
        } else {
            high = row.first() - 1;
            if high < low {
                break;
            }
        }
    }
    Ok(found)
}
