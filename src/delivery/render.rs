//! Renders the bodies of claimed deliveries.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{DeliveryService, report};
use crate::domain::delivery::Delivery;
use crate::domain::form::{Form, Version};
use crate::domain::integration::Integration;
use crate::domain::integration::event::{Event, Subject};
use crate::store::{AttemptEnd, ClaimedBatch, LoadedDelivery, Result, StoreError};

/// Compiled versions of one form by number.
pub(super) type Versions = HashMap<u32, Arc<Version>>;

/// The rendered body of a delivery, or why nothing is sent.
pub(super) type Rendered = std::result::Result<Vec<u8>, AttemptEnd>;

impl DeliveryService {
    /// Returns the exact body that a delivery sends: the stored one, or the one that its first attempt will send. `None` if
    /// it is skipped or what it is about was erased.
    pub async fn event_body(&self, form: &Arc<Form>, delivery: &Delivery) -> Result<Option<Vec<u8>>> {
        let Some(integration) = form.integration(delivery.target.integration) else { return Ok(None) };
        let loaded = self.store.load_claimed(delivery).await?;
        let loaded = LoadedDelivery { is_in_trash: false, ..loaded };
        match self.render(form, integration, vec![loaded]).await?.pop() {
            Some((_, Ok(body))) => Ok(Some(body)),
            Some((_, Err(AttemptEnd::Sent { .. }))) => {
                Err(StoreError::Panicked("rendering a delivery".to_owned()))
            }
            Some((_, Err(_))) | None => Ok(None),
        }
    }

    pub(super) async fn render_batch(&self, batch: &ClaimedBatch) -> Result<Vec<(Delivery, Rendered)>> {
        let mut loaded = Vec::with_capacity(batch.deliveries.len());
        for delivery in &batch.deliveries {
            loaded.push(self.store.load_claimed(delivery).await?);
        }
        self.render(&batch.form, &batch.integration, loaded).await
    }

    /// Renders deliveries of an integration, on a blocking thread: templates and conditions take time.
    pub(super) async fn render(
        &self,
        form: &Arc<Form>,
        integration: &Integration,
        loaded: Vec<LoadedDelivery>,
    ) -> Result<Vec<(Delivery, Rendered)>> {
        let events = loaded.iter().filter(|one| one.body.is_none()).filter_map(|one| one.event.as_ref());
        let versions = self.versions_of(form, events.filter_map(version_of)).await?;
        let (form, integration) = (Arc::clone(form), integration.clone());
        let rendering = tokio::task::spawn_blocking(move || {
            let render = |one: LoadedDelivery| {
                // Nothing is shared with it that a panic could leave half changed.
                let render = AssertUnwindSafe(|| render_one(&form, &integration, &versions, &one));
                (catch_unwind(render), one.delivery)
            };
            loaded.into_iter().map(render).collect::<Vec<_>>()
        });
        let rendered = rendering.await.map_err(|panicked| StoreError::Panicked(panicked.to_string()))?;
        let panicked = |_panic| Err(self.sent(self.clock.now(), report::panicked(), Vec::new()));
        let result =
            |(rendered, delivery): (std::thread::Result<_>, _)| (delivery, rendered.unwrap_or_else(panicked));
        Ok(rendered.into_iter().map(result).collect())
    }

    /// Returns versions of a form by number. Those of a form that is not outside the trash any more are left out.
    pub(super) async fn versions_of(
        &self,
        form: &Form,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Versions> {
        let mut versions = Versions::new();
        for number in numbers {
            if !versions.contains_key(&number)
                && let Some(version) = self.versions.find(form.reference(), number).await?
            {
                versions.insert(number, version);
            }
        }
        Ok(versions)
    }
}

/// The version of the form that the event's submission was checked against.
fn version_of(event: &Event) -> Option<u32> {
    match &event.subject {
        Subject::Submission(submission) => Some(submission.form_version),
        Subject::Form | Subject::DeletedSubmission(_) | Subject::Integration { .. } => None,
    }
}

fn render_one(form: &Form, integration: &Integration, versions: &Versions, one: &LoadedDelivery) -> Rendered {
    let Some(event) = &one.event else { return Err(AttemptEnd::Canceled) };
    if one.is_in_trash && !event.event_type.is_deletion() {
        return Err(AttemptEnd::NotSent);
    }
    if let Some(body) = &one.body {
        return Ok(body.clone());
    }
    let version = match version_of(event) {
        // Without it, the form was moved to the trash meanwhile: the delivery waits.
        Some(number) => Some(&**versions.get(&number).ok_or(AttemptEnd::NotSent)?),
        None => None,
    };
    integration.render(event, form, version).ok_or(AttemptEnd::Skipped)
}
