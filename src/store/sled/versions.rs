//! The versions of a form's questions in the embedded store: how one is kept, a page of them, and a look at them all.

use super::engine::tx::Direction;
use super::layout::{self, undecodable};
use super::{PAGE_BYTES, SledStore};
use crate::domain::form::{Form, Version, WrittenVersion};
use crate::domain::json::{self, Value};
use crate::domain::limits::Limits;
use crate::domain::past::Past;
use crate::domain::question::{Question, QuestionDraft};
use crate::id::FormId;
use crate::store::{Page, StoreError};

/// Versions that are looked at in one turn, at most, and bytes of them.
const SLICE: usize = 16;
const SLICE_BYTES: usize = 1 << 20;

fn read(body: &[u8]) -> Result<WrittenVersion, StoreError> {
    layout::from_json("a version of a form", body)
}

fn questions(version: &WrittenVersion) -> Result<Vec<Value>, StoreError> {
    match json::parse(version.questions.get()) {
        Ok(Value::Array(items)) => Ok(items),
        _ => Err(unknown()),
    }
}

pub(super) fn encode(version: &Version) -> Result<Vec<u8>, StoreError> {
    let questions = serde_json::value::to_raw_value(&version.questions);
    let questions = questions.map_err(|error| StoreError::Io(error.into()))?;
    layout::to_json(&WrittenVersion { number: version.number, created_at: version.created_at, questions })
}

pub(super) fn decode(body: &[u8]) -> Result<Version, StoreError> {
    let written = read(body)?;
    let items = questions(&written)?;
    let questions = items.iter().enumerate().map(|(place, item)| question(place, item));
    let questions = questions.collect::<Result<_, _>>()?;
    Ok(Version { number: written.number, created_at: written.created_at, questions })
}

/// Reads a question with the same code that read its author's text; what was accepted once is accepted again, however
/// the server's limits have changed since.
fn question(place: usize, item: &Value) -> Result<Question, StoreError> {
    let draft = QuestionDraft::read(item, "", place, &Limits::BOUNDLESS, &mut Vec::new());
    draft.and_then(QuestionDraft::kept).ok_or_else(unknown)
}

fn unknown() -> StoreError {
    undecodable("a version of a form")
}

impl SledStore {
    pub(super) fn read_versions(
        &self,
        form: FormId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Page<WrittenVersion>, StoreError> {
        let range = layout::versions(form, before);
        let (rows, _) = self.engine.scan_within(range, Direction::Descending, limit, PAGE_BYTES)?;
        let rows: Vec<_> = rows.iter().map(|(_, body)| read(body)).collect::<Result<_, _>>()?;
        // Their numbers have no gaps.
        let more = rows.last().is_some_and(|last| last.number > 1);
        Ok(Page { rows, more })
    }

    /// Shows `past` the versions of `form` below `before`, until it has found what it looks for.
    pub(super) async fn look_back(
        &self,
        form: &Form,
        mut before: u32,
        mut past: Past,
    ) -> Result<Past, StoreError> {
        let id = form.id;
        while before > 1 && !past.is_found() && self.live_form(form.workspace, id)?.is_some() {
            let slice = move |store: &Self| Ok((store.look_at_slice(id, before, &mut past)?, past));
            (before, past) = self.in_turn(slice).await?;
        }
        Ok(past)
    }

    /// Shows `past` a few versions below `before`, the last of them one that it wants something of: patterns may take
    /// milliseconds to read. Gives the number of the last, or 1 if there are no more.
    fn look_at_slice(&self, form: FormId, before: u32, past: &mut Past) -> Result<u32, StoreError> {
        let range = layout::versions(form, Some(before));
        let (rows, _) = self.engine.scan_within(range, Direction::Descending, SLICE, SLICE_BYTES)?;
        let mut last = 1;
        for (_, body) in rows {
            let version = read(&body)?;
            last = version.number;
            let mut wanted = questions(&version)?;
            wanted.retain(|written| past.wants(written));
            for (place, written) in wanted.iter().enumerate() {
                past.show(question(place, written)?);
            }
            if !wanted.is_empty() {
                break;
            }
        }
        Ok(last)
    }
}
