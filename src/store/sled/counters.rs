//! Counters of a form: its number of submissions, and where the next one is stored. Within a group they become
//! visible to readers last.

use super::engine::tx::Tx;
use super::layout;
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
}

impl Counters {
    pub(super) fn of(tx: &Tx<'_>, form: FormId) -> Result<Self> {
        Self::decode(tx.get(&layout::counters(form))?)
    }

    pub(super) fn put(self, tx: &mut Tx<'_>, form: FormId) {
        tx.put_last(layout::counters(form), self.encode());
    }

    fn encode(self) -> Vec<u8> {
        let ids = [self.last, self.highest, self.block].map(|id| id.map_or([0; 16], SubmissionId::to_bytes));
        [&self.responses.to_be_bytes()[..], ids.as_flattened()].concat()
    }

    /// Decodes a counter row; a form without submissions has none.
    pub(super) fn decode(body: Option<Vec<u8>>) -> Result<Self> {
        let Some(body) = body else { return Ok(Self::default()) };
        let (responses, ids) = body.split_first_chunk().ok_or_else(|| layout::undecodable("a counter"))?;
        let ([last, highest, block], []) = ids.as_chunks() else {
            return Err(layout::undecodable("a counter"));
        };
        let [last, highest, block] =
            [last, highest, block].map(|id| (*id != [0; 16]).then(|| SubmissionId::from_bytes(*id)));
        Ok(Self { responses: u64::from_be_bytes(*responses), last, highest, block })
    }
}
