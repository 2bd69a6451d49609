//! A CSV file as a kind of integration, and the rows of its submissions.

use super::row::cell;
use super::{CsvFile, DELIMITERS};
use crate::domain::condition::Condition;
use crate::domain::delivery::{Delivery, DeliveryStatus};
use crate::domain::form::Version;
use crate::domain::integration::event::Subject;
use crate::domain::integration::kind::{Kind, Members, Pace, RenderedBody, Rendering};
use crate::domain::integration::outbound::Outbound;
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Unsealer, holds};
use crate::domain::integration::row::{RowBody, SCHEDULE, column_questions};
use crate::domain::integration::{Integration, IntegrationKind};
use crate::domain::json::Value;
use crate::domain::submission::Submission;
use crate::id::IntegrationId;

impl Kind for CsvFile {
    fn members(&self) -> Members {
        let delimiter = DELIMITERS.into_iter().find(|(_, delimiter)| *delimiter == self.delimiter);
        vec![("path", Some(Value::from(&*self.path))), ("delimiter", delimiter.map(|(text, _)| text.into()))]
    }

    fn target(&self) -> String {
        self.path.clone()
    }

    /// Forms and integrations have files of their own, whatever these are called.
    fn destination(&self, id: IntegrationId) -> String {
        format!("{}/{id}", self.path)
    }

    fn render(&self, rendering: Rendering<'_>) -> Option<RenderedBody> {
        let Subject::Submission(submission) = &rendering.event.subject else { return None };
        let row = RowBody::new(submission, rendering.version?, rendering.selection, |_, answer| cell(answer));
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
}

impl<'a> CsvRows<'a> {
    pub fn new(integration: &'a Integration) -> Self {
        Self { integration, condition: integration.condition() }
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
        Some(RowBody::new(submission, version, self.integration.fields.as_ref(), |_, value| cell(value)))
    }
}

impl Integration {
    /// The settings, if it is a CSV file.
    pub fn csv_file(&self) -> Option<&CsvFile> {
        if let IntegrationKind::CsvFile(file) = &self.kind { Some(file) } else { None }
    }
}
