//! Decides about due deliveries, and renders the bodies of those to be sent.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{DeliveryService, report};
use crate::domain::delivery::Delivery;
use crate::domain::form::{Form, Version};
use crate::domain::integration::Integration;
use crate::domain::integration::event::{Event, EventType, Subject};
use crate::domain::integration::plan::{Rendered, RenderedBody};
use crate::store::{AttemptDecision, DueDelivery, NewAttempt, Result, StoreError};

/// Compiled versions of one form by number.
type Versions = HashMap<u32, Arc<Version>>;

impl DeliveryService {
    /// Returns the exact body that a delivery sends: the stored one, or the one that its first attempt will send. `None` if
    /// it is skipped or what it is about was erased.
    pub async fn render(&self, form: &Form, due: &DueDelivery) -> Result<Option<Vec<u8>>> {
        let Some(integration) = form.integration(due.delivery.integration) else { return Ok(None) };
        let due = DueDelivery { is_in_trash: false, ..due.clone() };
        let decided = self.decide(&Arc::new(form.clone()), integration, vec![due]).await?;
        match decided.into_iter().next().map(|attempt| attempt.decision) {
            Some(AttemptDecision::Send(body)) => Ok(Some(body)),
            Some(AttemptDecision::Fail(_)) => Err(StoreError::Panicked("rendering a delivery".to_owned())),
            Some(AttemptDecision::Skip | AttemptDecision::Pause | AttemptDecision::Cancel) | None => Ok(None),
        }
    }

    /// Decides about due deliveries of an integration. Those whose version of the form cannot be read, because the form was
    /// trashed in between, are left out.
    pub(super) async fn decide(
        &self,
        form: &Arc<Form>,
        integration: &Integration,
        due: Vec<DueDelivery>,
    ) -> Result<Vec<NewAttempt>> {
        let versions = self.versions_of(form, &due).await?;
        let (form, integration) = (Arc::clone(form), integration.clone());
        let deciding = tokio::task::spawn_blocking(move || {
            let decide = |due: DueDelivery| {
                let decision = decide_one(&form, &integration, &versions, &due)?;
                Some((due.delivery, decision))
            };
            due.into_iter().filter_map(decide).collect::<Vec<_>>()
        });
        let decided = deciding.await.map_err(|panicked| StoreError::Panicked(panicked.to_string()))?;
        let admit = |(delivery, decision): (Delivery, Decided)| {
            let decision = self.admit(&delivery, decision);
            NewAttempt { delivery, decision }
        };
        Ok(decided.into_iter().map(admit).collect())
    }

    /// Skips what a respondent would get too often.
    fn admit(&self, delivery: &Delivery, decided: Decided) -> AttemptDecision {
        match decided {
            Decided::As(decision) => decision,
            Decided::Rendered(RenderedBody { bytes, respondent }) => {
                let now = self.clock.now();
                let admits =
                    |address: &String| self.throttle.admits(delivery.form, address, delivery.id(), now);
                let is_test = delivery.event_type == EventType::IntegrationTest;
                if is_test || respondent.as_ref().is_none_or(admits) {
                    AttemptDecision::Send(bytes)
                } else {
                    AttemptDecision::Skip
                }
            }
        }
    }

    async fn versions_of(&self, form: &Form, due: &[DueDelivery]) -> Result<Versions> {
        let mut versions = Versions::new();
        for event in due.iter().filter(|due| due.body.is_none()).filter_map(|due| due.event.as_ref()) {
            if let Some(number) = version_of(event)
                && !versions.contains_key(&number)
                && let Some(version) = self.versions.find(form.workspace, form.id, number).await?
            {
                versions.insert(number, version);
            }
        }
        Ok(versions)
    }
}

/// What was decided about a due delivery, which may still have to wait.
enum Decided {
    As(AttemptDecision),
    Rendered(RenderedBody),
}

/// The version of the form that the event's submission was checked against.
fn version_of(event: &Event) -> Option<u32> {
    match &event.subject {
        Subject::Submission(submission) => Some(submission.form_version),
        Subject::Form | Subject::DeletedSubmission(_) | Subject::Integration { .. } => None,
    }
}

fn decide_one(
    form: &Form,
    integration: &Integration,
    versions: &Versions,
    due: &DueDelivery,
) -> Option<Decided> {
    let Some(event) = &due.event else { return Some(Decided::As(AttemptDecision::Cancel)) };
    if due.is_in_trash && !event.event_type.is_deletion() {
        return Some(Decided::As(AttemptDecision::Pause));
    }
    if let Some(body) = &due.body {
        return Some(Decided::As(AttemptDecision::Send(body.clone())));
    }
    let version = match version_of(event) {
        Some(number) => Some(&**versions.get(&number)?),
        None => None,
    };
    // Nothing is shared with it that a panic could leave half changed.
    let rendered = catch_unwind(AssertUnwindSafe(|| integration.render(event, form, version)));
    Some(match rendered {
        Ok(Rendered::Body(body)) => Decided::Rendered(body),
        Ok(Rendered::Skipped) => Decided::As(AttemptDecision::Skip),
        Err(_panic) => Decided::As(AttemptDecision::Fail(report::panicked())),
    })
}
