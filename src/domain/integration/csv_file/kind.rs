//! A CSV file as a kind of integration, and the rows of its submissions.

use super::row::{cell, raw_cell};
use super::{CsvFile, DELIMITER};
use crate::domain::condition::Condition;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Version;
use crate::domain::integration::event::Subject;
use crate::domain::integration::kind::{HasSpec, Kind, Pace, RenderedBody, Rendering, kind};
use crate::domain::integration::outbound::Outbound;
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Unsealer, holds};
use crate::domain::integration::row::{RowBody, SCHEDULE, VALUES, column_questions};
use crate::domain::integration::settings::PATH;
use crate::domain::integration::{Integration, IntegrationKind};
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::submission::Submission;
use crate::id::IntegrationId;

kind! {
    /// A CSV file with a row for each submission.
    CsvExport
}

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
        let row = RowBody::new(submission, rendering.version?, rendering.selection, cell_of(self.is_raw()));
        Some(serde_json::to_vec(&row).expect("a row is JSON").into())
    }

    /// All its deliveries are carried out together, by writing the file.
    fn plan(&self, _: PlannedAttempt<'_>, _: Unsealer<'_>) -> Result<Outbound, PlanError> {
        Err(PlanError::Damaged)
    }

    fn pace(&self) -> Pace {
        Pace { concurrency: 1, batch: 1, interval_ms: 0, schedule: &SCHEDULE }
    }

    fn is_file(&self) -> bool {
        true
    }

    /// Each submission is one row.
    fn can_repeat(&self, delivery: &Delivery) -> bool {
        delivery.status != DeliveryStatus::Delivered
    }
}

/// What a CSV file has of submissions.
pub struct CsvRows<'a> {
    integration: &'a Integration,
    condition: Option<Condition>,
    is_raw: bool,
}

impl<'a> CsvRows<'a> {
    pub fn new(integration: &'a Integration) -> Self {
        let is_raw =
            if let IntegrationKind::CsvFile(file) = &integration.kind { file.is_raw() } else { false };
        Self { integration, condition: integration.condition(), is_raw }
    }

    /// The ids of the questions of a version that have columns.
    pub fn columns<'v>(&'v self, version: &'v Version) -> impl Iterator<Item = &'v str> {
        column_questions(version, self.integration.fields.as_ref()).map(|(id, _)| id)
    }

    /// Returns the row of a submission; `None` if the integration's condition does not hold.
    pub fn row(&self, submission: &Submission, version: &Version) -> Option<RowBody<String>> {
        if self.integration.when.is_some() {
            let condition = self.condition.as_ref()?;
            holds(condition, version, &submission.answers).then_some(())?;
        }
        Some(RowBody::new(submission, version, self.integration.fields.as_ref(), cell_of(self.is_raw)))
    }
}

/// Returns how cells are written: for programs or for people.
fn cell_of(is_raw: bool) -> fn(&Question, &Value) -> String {
    if is_raw { |_, answer| raw_cell(answer) } else { cell }
}

impl CsvExport {
    /// Whether cells are for programs.
    fn is_raw(&self) -> bool {
        self.settings().text(VALUES.name) == Some("raw")
    }

    fn file(&self) -> CsvFile {
        let settings = self.settings();
        let path = settings.text(PATH).unwrap_or_default().to_owned();
        let delimiter = settings.text(DELIMITER).and_then(|text| text.chars().next()).unwrap_or(',');
        CsvFile { path, delimiter }
    }
}

impl Integration {
    /// The file, if it is a CSV file.
    pub fn csv_file(&self) -> Option<CsvFile> {
        if let IntegrationKind::CsvFile(file) = &self.kind { Some(file.file()) } else { None }
    }
}
