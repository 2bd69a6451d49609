//! Renders events as JSON, and plans signed requests.

use super::payload::render_body;
use super::signature::sign;
use super::{BEARER_TOKEN, HEADERS, PAYLOAD, Payload, URL, Webhook};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::DEFAULT_SCHEDULE;
use crate::domain::delivery::classify::classify_webhook;
use crate::domain::integration::kind::{HasSpec, Kind, Pace, RenderedBody, Rendering};
use crate::domain::integration::outbound::{HttpRequest, Outbound};
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Unsealer};
use crate::domain::integration::settings::{SIGNING_SECRET, header_field, host_of};
use crate::id::IntegrationId;
use crate::secret::Secret;

/// Requests in progress to one host.
const MAX_PER_HOST: usize = 16;

const USER_AGENT: &str = concat!("forms/", env!("CARGO_PKG_VERSION"));

impl Kind for Webhook {
    fn target(&self) -> String {
        self.settings().url(URL).as_ref().map(host_of).unwrap_or_default()
    }

    fn destination(&self, _: IntegrationId) -> String {
        self.target()
    }

    fn render(&self, rendering: Rendering<'_>) -> Option<RenderedBody> {
        let payload = self.settings().text(PAYLOAD).and_then(Payload::parse).unwrap_or(Payload::Full);
        Some(render_body(rendering, payload).into())
    }

    fn plan(&self, attempt: PlannedAttempt<'_>, unsealer: Unsealer<'_>) -> Result<Outbound, PlanError> {
        self.request(attempt, unsealer).map(Outbound::Http)
    }

    fn pace(&self) -> Pace {
        Pace { concurrency: MAX_PER_HOST, batch: 1, interval_ms: 0, schedule: &DEFAULT_SCHEDULE }
    }
}

impl Webhook {
    fn request(&self, attempt: PlannedAttempt<'_>, unsealer: Unsealer<'_>) -> Result<HttpRequest, PlanError> {
        let settings = self.settings();
        let url = settings.url(URL)?;
        let seconds = attempt.now.millis().div_euclid(1_000);
        let id = attempt.event.to_string();
        let mut secrets = self.signing_secrets(attempt.now, unsealer)?;
        let signatures = secrets.iter().map(|secret| sign(secret.reveal(), &id, seconds, attempt.body));
        let signatures = signatures.collect::<Option<Vec<_>>>().ok_or(PlanError::Damaged)?;
        let plain = [
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", USER_AGENT.to_owned()),
            ("webhook-id", id),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signatures.join(" ")),
            ("forms-delivery", attempt.delivery.to_string()),
            ("forms-attempt", attempt.number.to_string()),
        ];
        let mut headers: Vec<_> =
            plain.into_iter().map(|(name, value)| (name.to_owned(), Secret::new(value))).collect();
        if let Some(token) = settings.open(BEARER_TOKEN, unsealer)? {
            headers.push(("Authorization".to_owned(), Secret::new(format!("Bearer {}", token.reveal()))));
            secrets.push(token);
        }
        for (name, text) in settings.headers(HEADERS) {
            let value = match text {
                Some(text) => Secret::new(text.clone()),
                None => {
                    let value = settings.open(&header_field(name), unsealer)?.ok_or(PlanError::Damaged)?;
                    secrets.push(value.clone());
                    value
                }
            };
            headers.push((name.clone(), value));
        }
        Ok(HttpRequest {
            method: "POST",
            url,
            headers,
            body: attempt.body.to_vec(),
            secrets,
            classify: classify_webhook,
        })
    }

    /// Returns the secret and, during rotation, those before it, newest first.
    fn signing_secrets(
        &self,
        now: Timestamp,
        unsealer: Unsealer<'_>,
    ) -> Result<Vec<Secret<String>>, PlanError> {
        let settings = self.settings();
        let current = settings.secret(SIGNING_SECRET).ok_or(PlanError::Damaged)?;
        let live = settings.previous().iter().filter(|old| old.valid_until > now);
        let secrets = std::iter::once(current).chain(live.map(|old| &old.secret));
        let opened = secrets.map(|secret| unsealer.open(SIGNING_SECRET, &secret.sealed));
        Ok(opened.collect::<Result<_, _>>()?)
    }
}
