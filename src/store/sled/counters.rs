//! Counters of a form: its number of submissions, and where the next one is stored. Within a group they become
//! visible to readers last.

use super::engine::tx::Tx;
use super::layout;
use super::row_source::RowSource;
use crate::id::{FormId, SubmissionId};
use crate::store::Result;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Number of submissions outside the trash.
    pub(super) responses: u64,
    /// The id assigned last.
    pub(super) last: Option<SubmissionId>,
    /// The highest id assigned. Differs from `last` only after the clock was set back.
    pub(super) highest: Option<SubmissionId>,
    /// Upper bound of the ids at which blocks begin. If a block begins here, submissions above all existing ids
    /// belong to it.
    pub(super) block: Option<SubmissionId>,
    /// Number of the last event; events are numbered from 1 without gaps.
    pub(super) sequence: u64,
}

impl Counters {
    pub(super) fn of(rows: &impl RowSource, form: FormId) -> Result<Self> {
        Self::decode(rows.get(&layout::counters(form))?)
    }

    pub(super) fn put(self, tx: &mut Tx<'_>, form: FormId) {
        tx.put_last(layout::counters(form), self.encode());
    }

    fn encode(self) -> Vec<u8> {
        let ids = [self.last, self.highest, self.block].map(|id| id.map_or([0; 16], SubmissionId::to_bytes));
        let mut body = [&self.responses.to_be_bytes()[..], ids.as_flattened()].concat();
        if self.sequence > 0 {
            // The second number is zero since deliveries have rows of their own.
            body.extend_from_slice([self.sequence, 0].map(u64::to_be_bytes).as_flattened());
        }
        body
    }

    /// Decodes a counter row; a form without submissions and events has none.
    pub(super) fn decode(body: Option<Vec<u8>>) -> Result<Self> {
        let Some(body) = body else { return Ok(Self::default()) };
        let unknown = || layout::undecodable("a counter");
        let (responses, rest) = body.split_first_chunk().ok_or_else(unknown)?;
        let (ids, events) = rest.split_first_chunk::<48>().ok_or_else(unknown)?;
        let mut ids =
            ids.as_chunks().0.iter().map(|id| (*id != [0; 16]).then(|| SubmissionId::from_bytes(*id)));
        let sequence = match events.as_chunks() {
            ([], []) => 0,
            ([sequence, _], []) => u64::from_be_bytes(*sequence),
            _ => return Err(unknown()),
        };
        let mut next = || ids.next().flatten();
        Ok(Self {
            responses: u64::from_be_bytes(*responses),
            last: next(),
            highest: next(),
            block: next(),
            sequence,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_back_and_those_without_events_keep_their_format() {
        let id = Some(SubmissionId::from_bytes([7; 16]));
        let old = Counters { responses: 3, last: id, block: id, ..Counters::default() };
        let new = Counters { sequence: 9, ..old };
        for (counters, length) in [(Counters::default(), 56), (old, 56), (new, 72)] {
            let body = counters.encode();
            assert_eq!(body.len(), length);
            assert_eq!(Counters::decode(Some(body.clone())).unwrap(), counters);
            assert!(Counters::decode(Some(body[1..].to_vec())).is_err());
        }
        assert_eq!(Counters::decode(None).unwrap(), Counters::default());
    }
}
