//! Renders events as JSON, and plans signed requests.

use url::Url;

use super::payload::render_body;
use super::signature::sign;
use super::{HeaderText, Webhook};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::DEFAULT_SCHEDULE;
use crate::domain::delivery::classify::classify_webhook;
use crate::domain::integration::kind::{Kind, Members, Pace, RenderedBody, Rendering};
use crate::domain::integration::outbound::{HttpRequest, Outbound};
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Unsealer};
use crate::domain::json::Value;
use crate::id::IntegrationId;
use crate::secret::Secret;

/// Requests in progress to one host.
const MAX_PER_HOST: usize = 16;

const USER_AGENT: &str = concat!("forms/", env!("CARGO_PKG_VERSION"));

impl Kind for Webhook {
    fn members(&self) -> Members {
        let Self { url, secret, previous: _, payload, headers, bearer_token } = self;
        let header = |(name, value): &(String, HeaderText)| {
            let shown = match value {
                HeaderText::Text(text) => Value::from(&**text),
                HeaderText::Secret(secret) => secret.shown(),
            };
            (name.clone(), shown)
        };
        let headers = (!headers.is_empty()).then(|| Value::Object(headers.iter().map(header).collect()));
        vec![
            ("url", Some(Value::from(&**url))),
            (Self::SECRET, Some(secret.shown())),
            ("payload", Some(payload.name().into())),
            ("headers", headers),
            (Self::BEARER_TOKEN, bearer_token.as_ref().map(|token| token.shown())),
        ]
    }

    fn target(&self) -> String {
        self.host()
    }

    fn destination(&self, _: IntegrationId) -> String {
        self.host()
    }

    fn render(&self, rendering: Rendering<'_>) -> Option<RenderedBody> {
        Some(render_body(rendering, self.payload).into())
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
        let url = Url::parse(&self.url).map_err(|_invalid| PlanError::Damaged)?;
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
        if let Some(token) = &self.bearer_token {
            let token = unsealer.open(Self::BEARER_TOKEN, &token.sealed)?;
            headers.push(("Authorization".to_owned(), Secret::new(format!("Bearer {}", token.reveal()))));
            secrets.push(token);
        }
        for (name, value) in &self.headers {
            let value = match value {
                HeaderText::Text(text) => Secret::new(text.clone()),
                HeaderText::Secret(secret) => {
                    let value = unsealer.open(&Self::header_field(name), &secret.sealed)?;
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
        let live = self.previous.iter().filter(|old| old.valid_until > now);
        let secrets = std::iter::once(&self.secret).chain(live.map(|old| &old.secret));
        let opened = secrets.map(|secret| unsealer.open(Self::SECRET, &secret.sealed));
        Ok(opened.collect::<Result<_, _>>()?)
    }
}
