//! Test events, sent on request.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::csv_file::{self, CsvTarget};
use super::{DeliveryService, report};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::{Attempt, AttemptTrigger, Outcome, SendReport};
use crate::domain::delivery::lifecycle::EventHead;
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::csv_file::CsvFile;
use crate::domain::integration::event::Event;
use crate::domain::integration::outbound::Outbound;
use crate::id::FormId;
use crate::store::{AttemptDecision, BegunAttempt, DueDelivery};

impl DeliveryService {
    /// Sends a test event to `integration` at once. Counts for nothing. Of a file or a spreadsheet, only checks that it can be
    /// written: a row would stay there.
    pub async fn send_test(&self, form: &Form, integration: &Integration) -> Attempt {
        let now = self.clock.now();
        let report = self.send_test_event(form, integration, now).await;
        Attempt::new(1, AttemptTrigger::Test, now, &report)
    }

    async fn send_test_event(&self, form: &Form, integration: &Integration, now: Timestamp) -> SendReport {
        let Ok(Some(version)) = self.versions.find(form.workspace, form.id, form.version).await else {
            return report::retryable("store_unavailable", "the questions of the form cannot be read");
        };
        let event = Event::test(form, &version, now, &*self.random);
        let Event { id, event_type, .. } = event;
        let head = EventHead { id, event_type, at: now, form: form.id, submission: None };
        let delivery = Delivery::new(head, integration.id).begin_attempt(now);
        let due = DueDelivery { delivery, event: Some(event), is_in_trash: false, body: None };
        let decided = self.decide(&Arc::new(form.clone()), integration, vec![due]).await;
        let Some(attempt) = decided.ok().and_then(|decided| decided.into_iter().next()) else {
            return report::panicked();
        };
        let body = match attempt.decision {
            AttemptDecision::Send(body) => body,
            AttemptDecision::Fail(report) => return report,
            AttemptDecision::Skip | AttemptDecision::Pause | AttemptDecision::Cancel => {
                return report::retryable("skipped", "the integration does not send this event");
            }
        };
        let attempt = BegunAttempt { delivery: attempt.delivery, body };
        match self.plan(form, integration, &attempt, now) {
            Ok(Outbound::Http(request)) => self.sender.send(&request).await,
            // The example of an address is nobody's.
            Ok(Outbound::Mail(message)) if message.is_confirmation => report::retryable(
                "skipped",
                "a confirmation goes to a respondent: submit an answer to get one",
            ),
            Ok(Outbound::Mail(message)) => self.send_mail(form.id, &message, 0).await,
            Ok(Outbound::Sheet(row)) => self.check_sheet(&row).await,
            Ok(Outbound::Csv(row)) => self.check_file(form.id, row.file).await,
            Err(report) => *report,
        }
    }

    async fn check_file(&self, form: FormId, file: CsvFile) -> SendReport {
        let exports = self.settings.exports.clone();
        let checking =
            spawn_blocking(move || csv_file::check(&CsvTarget { exports: &exports, form, settings: &file }));
        match checking.await {
            Ok(Ok(())) => SendReport::new(Outcome::Delivered, 0),
            Ok(Err(error)) => SendReport::new(report::file_error(&error), 0),
            Err(_panic) => report::panicked(),
        }
    }
}
