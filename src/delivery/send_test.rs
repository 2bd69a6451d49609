//! Test events, sent on request.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::DeliveryService;
use super::csv_file::CsvTarget;
use super::report::{self, retry};
use crate::clock::Timestamp;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::{Attempt, AttemptTrigger, SendReport};
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::domain::integration::event::Event;
use crate::domain::integration::outbound::Outbound;
use crate::id::DeliveryTarget;
use crate::store::{AttemptEnd, LoadedDelivery};

impl DeliveryService {
    /// Sends a test event to `integration` at once. Counts for nothing. Of a file or a spreadsheet, only checks that it can be
    /// written: a row would stay there.
    pub async fn send_test(&self, form: &Arc<Form>, integration: &Integration) -> Attempt {
        let now = self.clock.now();
        let report = self.send_test_event(form, integration, now).await;
        Attempt::new(1, AttemptTrigger::Test, now, &report)
    }

    async fn send_test_event(
        &self,
        form: &Arc<Form>,
        integration: &Integration,
        now: Timestamp,
    ) -> SendReport {
        if let Some(file) = integration.csv_file() {
            if self.settings.policy.forbids_files {
                return report::no_files().into();
            }
            let target = CsvTarget { exports: self.settings.exports.clone(), form: form.id, settings: file };
            return report::of_writing(spawn_blocking(move || target.check()).await);
        }
        let skipped = |reason: &str| retry(ErrorCode::Skipped, reason).into();
        let Ok(Some(version)) = self.versions.find(form.reference(), form.version).await else {
            return retry(ErrorCode::StoreUnavailable, "the questions of the form cannot be read").into();
        };
        let event = Event::test(form, &version, now, &*self.random);
        let target = DeliveryTarget { integration: integration.id, recipient: integration.recipients()[0] };
        let delivery = Delivery { target, ..Delivery::of_event(&event) };
        let loaded = LoadedDelivery { delivery, event: Some(event), is_in_trash: false, body: None };
        let rendered = self.render(form, integration, vec![loaded]).await.unwrap_or_default().pop();
        let Some((delivery, rendered)) = rendered else { return report::panicked().into() };
        match rendered.and_then(|body| self.plan(form, integration, &delivery, &body, now)) {
            Ok(Outbound::Http(request)) => self.sender.send(&request).await,
            // The example of an address is nobody's.
            Ok(Outbound::Mail(message)) if message.is_confirmation => {
                skipped("a confirmation goes to a respondent: submit an answer to get one")
            }
            Ok(Outbound::Mail(message)) => self.mailer.send(&message).await,
            Ok(Outbound::Sheet(row)) => self.check_sheet(&row).await,
            Err(AttemptEnd::Sent { report, .. }) => *report,
            Err(_) => skipped("the integration does not send this event"),
        }
    }
}
