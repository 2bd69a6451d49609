//! Webhooks, as specified by Standard Webhooks 1.0.

mod payload;
pub mod signature;

use self::payload::render_body;
use self::signature::sign;
use super::event::EventType;
use super::kind::{Kind, Rendering};
use super::outbound::{HttpRequest, Outbound, bearer};
use super::plan::{PlanError, PlannedAttempt, Sealer};
use super::settings::{SIGNING_SECRET, Settings, check_bearer_token, header_field, host_of};
use super::spec::{HTTP_LIMIT_MS, IntegrationSpec, Member, MemberValue, Need, Pace, WriteMode};
use crate::clock::Timestamp;
use crate::domain::delivery::attempt::DEFAULT_SCHEDULE;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;
use crate::id::IntegrationId;
use crate::secret::Secret;

const URL: &str = "url";
const PAYLOAD: &str = "payload";
const HEADERS: &str = "headers";
const BEARER_TOKEN: &str = "bearer_token";

const USER_AGENT: &str = concat!("forms/", env!("CARGO_PKG_VERSION"));

static SPEC: IntegrationSpec = IntegrationSpec {
    about: "A request to an address for each event, signed as Standard Webhooks 1.0 specifies.",
    events: &EventType::SUBSCRIBABLE,
    members: &[
        Member {
            name: URL,
            need: Need::Required,
            value: MemberValue::Url,
            about: "The address, `https` unless the server allows its network; public, without user, password and fragment. Another host needs all secrets again.",
            example: r#""https://crm.example/hook""#,
        },
        Member {
            name: SIGNING_SECRET,
            need: Need::Optional,
            value: MemberValue::SigningSecret,
            about: "The signing secret: `whsec_` and 24 to 64 bytes in base64. One that is left out is made by the server and shown once.",
            example: "",
        },
        Member {
            name: PAYLOAD,
            need: Need::Default(r#""full""#),
            value: MemberValue::Choice(&["full", "thin"]),
            about: "What the body has of a submission: all of it, or ids only.",
            example: "",
        },
        Member {
            name: HEADERS,
            need: Need::Optional,
            value: MemberValue::Headers,
            about: "Additional headers, by name.",
            example: r#"{"X-Source":"forms"}"#,
        },
        Member::secret(BEARER_TOKEN, Need::Optional, check_bearer_token, "Sent as `Authorization: Bearer`."),
    ],
    pace: Pace {
        mode: WriteMode::Message,
        concurrency: 16,
        batch: 1,
        interval_ms: 0,
        longest_ms: HTTP_LIMIT_MS,
        schedule: &DEFAULT_SCHEDULE,
    },
    set_up: "Give the address of your receiver as `url`. The answer shows the signing secret once; `forms listen` and any Standard Webhooks library verify requests with it.",
    limits: "16 requests at a time to a host; 15 seconds for each. A body over 256 KiB is replaced by a thin one, with `truncated: true`.",
    repeats: "At least once. Every attempt has the same `webhook-id` and the same body: remember the ids.",
    source: "https://www.standardwebhooks.com",
};

/// A request to an address for each event.
pub(super) struct Webhook;

impl Kind for Webhook {
    fn spec(&self) -> &IntegrationSpec {
        &SPEC
    }

    fn check(&self, settings: &Settings, fields: &mut Fields<'_, '_>) {
        let mut headers = settings.headers(HEADERS).iter();
        if settings.secret(BEARER_TOKEN).is_some()
            && headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            let message = "`bearer_token` and the header `Authorization` exclude each other";
            fields.refuse(BEARER_TOKEN, Rule::InvalidRange, message);
        }
    }

    fn target(&self, settings: &Settings) -> String {
        settings.url(URL).as_ref().map(host_of).unwrap_or_default()
    }

    fn destination(&self, settings: &Settings, _: IntegrationId) -> String {
        self.target(settings)
    }

    fn render(&self, settings: &Settings, rendering: Rendering<'_>) -> Option<Vec<u8>> {
        Some(render_body(rendering, settings.text(PAYLOAD) == Some("thin")))
    }

    fn plan(
        &self,
        settings: &Settings,
        attempt: PlannedAttempt<'_>,
        sealer: Sealer<'_>,
    ) -> Result<Outbound, PlanError> {
        let url = settings.url(URL)?;
        let seconds = attempt.now.millis().div_euclid(1_000);
        let id = attempt.event.to_string();
        let mut secrets = signing_secrets(settings, attempt.now, sealer)?;
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
        if let Some(token) = settings.open(BEARER_TOKEN, sealer)? {
            headers.push(bearer(&token));
            secrets.push(token);
        }
        for (name, text) in settings.headers(HEADERS) {
            let value = match text {
                Some(text) => Secret::new(text.clone()),
                None => {
                    let value = settings.open(&header_field(name), sealer)?.ok_or(PlanError::Damaged)?;
                    secrets.push(value.clone());
                    value
                }
            };
            headers.push((name.clone(), value));
        }
        let request = HttpRequest::new("POST", url, attempt.body.to_vec());
        Ok(Outbound::Http(HttpRequest { headers, secrets, ..request }))
    }
}

/// Returns the secret and, during rotation, those before it, newest first.
fn signing_secrets(
    settings: &Settings,
    now: Timestamp,
    sealer: Sealer<'_>,
) -> Result<Vec<Secret<String>>, PlanError> {
    let current = settings.secret(SIGNING_SECRET).ok_or(PlanError::Damaged)?;
    let live = settings.previous().iter().filter(|old| old.valid_until > now);
    let secrets = std::iter::once(current).chain(live.map(|old| &old.secret));
    let opened = secrets.map(|secret| sealer.open(SIGNING_SECRET, &secret.sealed));
    Ok(opened.collect::<Result<_, _>>()?)
}
