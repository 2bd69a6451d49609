//! Integrations on the wire. Their settings depend on their type, so the server writes them as the domain shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::schema;
use crate::clock::Timestamp;
use crate::domain::delivery::health::Health;
use crate::domain::integration::Integration;
use crate::domain::integration::definition::GeneratedSecret;
use crate::domain::integration::event::EventType;
use crate::domain::integration::settings::SIGNING_SECRET;
use crate::domain::json::{Object, Value};
use crate::domain::open_enum::{OpenEnum, named_enum};
use crate::id::IntegrationId;
use crate::secret::Secret;

named_enum! {
    /// Whether an integration works.
    HealthState {
        Ok = "ok",
        Failing = "failing",
        /// The server has stopped calling the receiver.
        Paused = "paused",
    }
}

/// An integration, as far as this version knows its settings.
#[derive(Debug, Clone, Deserialize)]
pub struct IntegrationDetail {
    pub id: IntegrationId,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub enabled: bool,
    pub events: Vec<OpenEnum<EventType>>,
    /// The signing secret of a webhook.
    #[serde(default)]
    pub secret: Option<SecretView>,
    pub health: IntegrationHealth,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The other settings.
    #[serde(flatten)]
    pub settings: BTreeMap<String, serde_json::Value>,
}

/// A secret in a response.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum SecretView {
    /// The text of a secret that the server has made for this request.
    Generated(Secret<String>),
    Stored {
        set: bool,
        /// The environment variable that the author's file takes it from.
        #[serde(default)]
        env: Option<String>,
    },
}

/// Whether the receiver accepts deliveries, judged by the last ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntegrationHealth {
    #[schema(value_type = schema::HealthStateOrOther)]
    pub state: OpenEnum<HealthState>,
    /// Why the server has paused the integration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when every attempt failed; left out if the last one succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// When the last attempt succeeded; left out if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<Timestamp>,
    /// The number of deliveries that wait.
    pub pending: u64,
    /// The number of deliveries that failed for good.
    pub dead: u64,
}

/// A signing secret that was made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SecretRotated {
    /// The new secret; left out of a repeated response.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::reveal")]
    #[schema(value_type = Option<String>, example = "whsec_…")]
    pub secret: Option<Secret<String>>,
    /// Until when the old secret signs too.
    pub previous_valid_until: Timestamp,
}

impl IntegrationDetail {
    /// The JSON of `integration`, with the text of the `secret` that the server has made for this request.
    pub fn json(
        integration: &Integration,
        health: &IntegrationHealth,
        secret: Option<&Secret<String>>,
    ) -> Box<RawValue> {
        let Integration { id, created_at, updated_at, .. } = *integration;
        let members = Value::Object(shown_members(integration, secret));
        to_raw(&ShownIntegration { id, members, health, created_at, updated_at })
    }

    /// The text of the secret, if the server has made it for this request.
    pub fn generated_secret(&self) -> Option<&Secret<String>> {
        match &self.secret {
            Some(SecretView::Generated(secret)) => Some(secret),
            Some(SecretView::Stored { .. }) | None => None,
        }
    }
}

/// An integration in a response on its own.
#[derive(Serialize)]
struct ShownIntegration<'a> {
    id: IntegrationId,
    #[serde(flatten)]
    members: Value,
    health: &'a IntegrationHealth,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// The notifications of a form, as they were written.
pub(super) fn form_notifications(integrations: &[Integration]) -> Vec<Box<RawValue>> {
    integrations.iter().filter_map(Integration::short_form).map(|shown| to_raw(&shown)).collect()
}

fn to_raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("members are JSON")
}

/// The integrations of a form but its notifications, as in its body: without ids and health, so that they can be sent back.
/// `secrets` are those that the server has made for this request.
pub(super) fn form_integrations(
    integrations: &[Integration],
    secrets: &[GeneratedSecret],
) -> Vec<Box<RawValue>> {
    let ordinary = integrations.iter().filter(|one| one.notification.is_none());
    let shown = ordinary.map(|one| {
        let secret = secrets.iter().find(|generated| generated.integration == one.name);
        to_raw(&Value::Object(shown_members(one, secret.map(|generated| &generated.secret))))
    });
    shown.collect()
}

/// The members of `integration`, with the text of its signing secret if given.
fn shown_members(integration: &Integration, secret: Option<&Secret<String>>) -> Object {
    let mut members = integration.members();
    let shown = members.iter_mut().find(|(name, _)| name == SIGNING_SECRET);
    if let (Some(secret), Some((_, shown))) = (secret, shown) {
        *shown = secret.reveal().as_str().into();
    }
    members
}

impl IntegrationHealth {
    /// The health of an integration with this many deliveries that wait, and that failed for good.
    pub fn new(health: &Health, pending: u64, dead: u64) -> Self {
        let state = match health {
            Health { paused: Some(_), .. } => HealthState::Paused,
            Health { failing_since: Some(_), .. } => HealthState::Failing,
            Health { .. } => HealthState::Ok,
        };
        let Health { failing_since, last_success_at, paused, .. } = health.clone();
        Self { state: state.into(), reason: paused, failing_since, last_success_at, pending, dead }
    }
}

/// The integrations of a form.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IntegrationList {
    /// The integrations, in the order of the form.
    #[schema(value_type = Vec<schema::Integration>)]
    pub integrations: Vec<Box<RawValue>>,
}
