//! Versions of forms in the embedded store.

use super::SledStore;
use super::engine::tx::Direction;
use super::layout;
use crate::domain::form::StoredVersion;
use crate::id::FormId;
use crate::store::{PAGE_BYTES, Page, Result};

pub(super) fn decode(body: &[u8]) -> Result<StoredVersion> {
    layout::from_json("a version of a form", body)
}

impl SledStore {
    pub(super) fn read_versions(
        &self,
        form: FormId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Page<StoredVersion, u32>> {
        let range = layout::versions(form, before);
        let (rows, _) = self.reader.scan_page(range, Direction::Descending, limit, PAGE_BYTES)?;
        let rows: Vec<_> = rows.iter().map(|(_, body)| decode(body)).collect::<Result<_, _>>()?;
        // Version numbers have no gaps, so the last one on the page shows whether more follow.
        let next = rows.last().map(|last| last.number).filter(|number| *number > 1);
        Ok(Page { rows, next })
    }
}
