//! Appends rows to Google spreadsheets, each submission once.
//!
//! Google has no way to recognize a repeated request. So before a row is appended that an earlier attempt may have appended,
//! column A is searched for its id. Attempts are counted when they end, so one that the end of the process cut off is not.
//! Therefore what may have been submitted before this process started is searched for too: at an earlier time, or at one that
//! is still ahead of the clock, which was set back.
//!
//! ```text
//!  mod      from the rows of a batch to the report of each
//!  sheet    the tab: its first row, its column A, and what is appended
//!  api      requests to the Sheets API v4, and its refusals
//!  token    access tokens, made with the key of the service account
//! ```

mod api;
mod sheet;
mod token;

use std::collections::HashSet;

use tokio::time::Instant;

use self::api::{Result, Spreadsheet};
use super::DeliveryService;
use super::report::millis;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::integration::google_sheets::INTERVAL_MS;
use crate::domain::integration::outbound::SheetRow;

pub(super) use self::token::TokenCache;

/// Maximum bytes of the rows in a request; Google recommends 2 MB for a request.
const MAX_REQUEST: usize = 1_900_000;

impl DeliveryService {
    /// Appends rows to the same tab. Returns the report of each, in their order, up to the last one that the request had space
    /// for.
    pub(super) async fn append_to_sheet(&self, rows: &[(&Delivery, &SheetRow)]) -> Vec<SendReport> {
        let started = Instant::now();
        let reports = self.append_sheet_rows(rows).await.unwrap_or_else(|report| vec![*report; rows.len()]);
        reports.into_iter().map(|report| finish(report, started)).collect()
    }

    /// Checks that rows such as `row` can be appended: writes the names of columns that are missing, or that of the first one
    /// again. Whether the account may write shows only then.
    pub(super) async fn check_sheet(&self, row: &SheetRow) -> SendReport {
        let started = Instant::now();
        let write = async {
            let sheet = Spreadsheet::new(self, &row.target)?;
            let mut header = sheet.read_header().await?;
            header.add_columns(row);
            sheet.write_header(&header).await
        };
        let report = write.await.map_or_else(|report| *report, |()| Outcome::Delivered.into());
        finish(report, started)
    }

    async fn append_sheet_rows(&self, rows: &[(&Delivery, &SheetRow)]) -> Result<Vec<SendReport>> {
        let Some((_, first)) = rows.first() else { return Ok(Vec::new()) };
        let sheet = Spreadsheet::new(self, &first.target)?;
        let mut header = sheet.read_header().await?;
        rows.iter().for_each(|(_, row)| header.add_columns(row));
        if header.has_grown() {
            sheet.write_header(&header).await?;
        }
        let own_time = self.started_at..=self.clock.now();
        let may_exist = |delivery: &Delivery| {
            delivery.attempts > 0 || delivery.may_be_sent || !own_time.contains(&delivery.created_at())
        };
        let is_unsure = rows.iter().any(|(delivery, _)| may_exist(delivery));
        let ids = if is_unsure { sheet.read_ids().await? } else { HashSet::new() };
        let (mut appended, mut bytes, mut done) = (Vec::new(), 0, 0);
        for (_, row) in rows {
            if !ids.contains(&row.id) {
                let cells = header.row(row);
                bytes += cells.to_string().len();
                if bytes > MAX_REQUEST && !appended.is_empty() {
                    break;
                }
                appended.push(cells);
            }
            done += 1;
        }
        Ok(vec![sheet.append(&appended).await?; done])
    }
}

/// Completes a report with the time that the batch took and the wait before the next one.
fn finish(report: SendReport, started: Instant) -> SendReport {
    SendReport { duration_ms: millis(started), hold_ms: report.hold_ms.max(INTERVAL_MS), ..report }
}
