//! Renders submissions as rows of a CSV file.

use super::row::cell;
use super::{CsvFile, DELIMITER};
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::integration::event::Subject;
use crate::domain::integration::kind::{HasSpec, Kind, Pace, RenderedBody, Rendering, kind};
use crate::domain::integration::outbound::{CsvRow, Outbound};
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Unsealer};
use crate::domain::integration::row::{RowBody, SCHEDULE};
use crate::domain::integration::settings::PATH;
use crate::id::IntegrationId;

kind! {
    /// A CSV file with a row for each submission.
    CsvExport
}

/// Rows that are written together.
const MAX_ROWS: usize = 100;

impl Kind for CsvExport {
    fn target(&self) -> String {
        self.file().path
    }

    /// Forms and integrations have files of their own, whatever these are called.
    fn destination(&self, id: IntegrationId) -> String {
        format!("{}/{id}", self.file().path)
    }

    fn render(&self, rendering: Rendering<'_>) -> Option<RenderedBody> {
        let Subject::Submission(submission) = &rendering.event.subject else { return None };
        let row = RowBody::new(submission, rendering.version?, rendering.selection, cell);
        Some(serde_json::to_vec(&row).expect("a row is JSON").into())
    }

    fn plan(&self, attempt: PlannedAttempt<'_>, _: Unsealer<'_>) -> Result<Outbound, PlanError> {
        let row = serde_json::from_slice(attempt.body).map_err(|_unreadable| PlanError::Damaged)?;
        let RowBody { id, submitted_at, cells } = row;
        Ok(Outbound::Csv(CsvRow { file: self.file(), head: [id, submitted_at], cells }))
    }

    fn pace(&self) -> Pace {
        Pace { concurrency: 1, batch: MAX_ROWS, interval_ms: 0, schedule: &SCHEDULE }
    }

    /// Each submission is one row.
    fn can_repeat(&self, delivery: &Delivery) -> bool {
        delivery.status != DeliveryStatus::Delivered
    }
}

impl CsvExport {
    fn file(&self) -> CsvFile {
        let settings = self.settings();
        let path = settings.text(PATH).unwrap_or_default().to_owned();
        let delimiter = settings.text(DELIMITER).and_then(|text| text.chars().next()).unwrap_or(',');
        CsvFile { path, delimiter }
    }
}
