//! Appends rows to Google spreadsheets, each submission once.
//!
//! Google has no way to recognize a repeated request. So before a row is appended that an earlier attempt may have appended,
//! column A is searched for its id. Attempts are counted before they are made: whatever a lost answer or the end of the
//! process leaves open is not at its first attempt afterwards. The machine may lose a count when it fails; then the process
//! starts again, and what was submitted before its start is searched for too.
//!
//! ```text
//!  mod      from the rows of a batch to the report of each
//!  sheet    the tab: its first row, its column A, and what is appended
//!  api      requests to the Sheets API v4, and its refusals
//!  token    access tokens, made with the key of the service account
//!  range    A1 notation
//! ```

mod api;
mod range;
mod sheet;
mod token;

use std::collections::HashSet;
use std::ops::Range;

use self::api::{Result, Session};
use self::sheet::Header;
use super::DeliveryService;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::integration::outbound::SheetRow;
use crate::store::BegunAttempt;

pub(super) use self::token::TokenCache;

/// Maximum bytes of the rows in a request; Google recommends 2 MB for a request.
const MAX_CHUNK: usize = 1_900_000;

impl DeliveryService {
    /// Appends rows to the same tab. Returns the report of each, in their order.
    pub(super) async fn append_to_sheet(&self, rows: &[(&BegunAttempt, SheetRow)]) -> Vec<SendReport> {
        let Some((_, first)) = rows.first() else { return Vec::new() };
        let mut session = match Session::new(self, &first.target) {
            Ok(session) => session,
            Err(report) => return vec![*report; rows.len()],
        };
        let mut reports = Vec::with_capacity(rows.len());
        let mut failure = None;
        let texts = match self.prepare(&mut session, rows).await {
            Ok(texts) => texts,
            Err(report) => {
                failure = Some(report);
                vec![Some(String::new()); rows.len()]
            }
        };
        for chunk in chunks(&texts) {
            if failure.is_none() {
                failure = session.append(texts[chunk.clone()].iter().flatten()).await.err();
            }
            let report = |text: &Option<String>| match (text, &failure) {
                (Some(_), Some(report)) => (**report).clone(),
                _ => session.delivered(),
            };
            reports.extend(texts[chunk].iter().map(report));
        }
        reports.into_iter().map(|report| session.finish(report)).collect()
    }

    /// Checks that rows such as `row` can be appended: writes the first row of the tab, and no other.
    pub(super) async fn check_sheet(&self, row: &SheetRow) -> SendReport {
        let mut session = match Session::new(self, &row.target) {
            Ok(session) => session,
            Err(report) => return *report,
        };
        let written = write_header(&mut session, row).await;
        let report = written.map_or_else(|report| *report, |()| session.delivered());
        session.finish(report)
    }

    /// Makes sure that there are columns for all rows. Returns the rows as JSON, `None` for one that is already there.
    async fn prepare(
        &self,
        session: &mut Session<'_>,
        rows: &[(&BegunAttempt, SheetRow)],
    ) -> Result<Vec<Option<String>>> {
        let mut header = session.read_header().await?;
        let written = header.len();
        rows.iter().for_each(|(_, row)| header.add_columns(row));
        if header.len() > written {
            session.write_header(&header, written..header.len()).await?;
        }
        let may_exist = |BegunAttempt { delivery, .. }: &BegunAttempt| {
            delivery.attempts > 1 || delivery.created_at < self.started_at
        };
        let is_unsure = rows.iter().any(|(attempt, _)| may_exist(attempt));
        let ids = if is_unsure { session.read_ids().await? } else { HashSet::new() };
        Ok(rows.iter().map(|(_, row)| render(&header, row, &ids)).collect())
    }
}

/// Writes the names of columns that are missing for `row`, or that of the first one again: whether the account may write shows
/// only then.
async fn write_header(session: &mut Session<'_>, row: &SheetRow) -> Result<()> {
    let mut header = session.read_header().await?;
    let written = header.len();
    header.add_columns(row);
    let places = if header.len() > written { written..header.len() } else { 0..1 };
    session.write_header(&header, places).await
}

/// Returns a row as JSON, `None` if its id is one of `ids`.
fn render(header: &Header, row: &SheetRow, ids: &HashSet<String>) -> Option<String> {
    (!ids.contains(&row.id)).then(|| header.row(row).to_string())
}

/// Divides rows so that each part can be a request.
fn chunks(texts: &[Option<String>]) -> Vec<Range<usize>> {
    let (mut chunks, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (place, text) in texts.iter().enumerate() {
        let length = text.as_ref().map_or(0, String::len);
        if bytes > 0 && bytes + length > MAX_CHUNK {
            chunks.push(start..place);
            (start, bytes) = (place, 0);
        }
        bytes += length;
    }
    chunks.push(start..texts.len());
    chunks
}

#[cfg(test)]
mod tests {
    use super::{MAX_CHUNK, chunks};

    #[test]
    fn rows_are_divided_by_their_size() {
        let sized = |sizes: &[usize]| sizes.iter().map(|size| Some("x".repeat(*size))).collect::<Vec<_>>();
        assert_eq!(chunks(&sized(&[1, 2, 3, MAX_CHUNK])), [0..3, 3..4]);
        assert_eq!(chunks(&sized(&[MAX_CHUNK, 1, MAX_CHUNK - 1, 1])), [0..1, 1..3, 3..4]);
        assert_eq!(chunks(&sized(&[MAX_CHUNK + 1, MAX_CHUNK + 1])), [0..1, 1..2]);
        let with_rows_that_are_there = [None, Some("x".repeat(MAX_CHUNK)), None, Some("x".to_owned())];
        assert_eq!(chunks(&with_rows_that_are_there), [0..3, 3..4]);
    }
}
