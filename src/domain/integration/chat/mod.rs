//! Messages to the chats of teams. Each service is a file: its members, its form of a message, and its answers.

pub mod discord;
pub mod google_chat;
pub mod matrix;
pub mod mattermost;
pub mod ntfy;
pub mod slack;
pub mod teams;
pub mod telegram;

mod classify;
mod text;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::{Position, Url};

use super::answers::ShownAnswer;
use super::event::EventType;
use super::kind::{Kind, Rendering};
use super::message::Message;
use super::outbound::{HttpRequest, Outbound, bearer};
use super::plan::{PlanError, PlannedAttempt, Sealer};
use super::settings::{Settings, check_bearer_token, host_of};
use super::spec::{HTTP_LIMIT_MS, IntegrationSpec, Member, MemberValue, Need, Pace, WriteMode, ensure};
use crate::domain::delivery::classify::{Classification, Classify, HttpAnswer};
use crate::id::IntegrationId;
use crate::secret::Secret;

/// The waits between attempts in milliseconds: a message a day late is noise.
const SCHEDULE: [i64; 6] = [5_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000, 6 * 3_600_000];

/// Shortest part of a secret URL that is hidden by itself, in bytes.
const MIN_SECRET_PART: usize = 10;

/// Answers in a message, if its author does not say how many.
const DEFAULT_FIELDS: i64 = 10;

/// The members of every chat.
const TITLE: Member = Member {
    name: "title",
    need: Need::Optional,
    value: MemberValue::Template(500),
    about: "The first line, a template.",
    example: r#""New answer to {{ form.title }}""#,
};
const MAX_FIELDS: Member = Member {
    name: "max_fields",
    need: Need::Default("10"),
    value: MemberValue::Number { min: 0, max: 40 },
    about: "How many answers the message has at most; the others are counted.",
    example: "5",
};

/// The address of services where it is the only secret.
const URL: Member = Member {
    name: "url",
    need: Need::Required,
    value: MemberValue::SecretUrl(|_| Ok(())),
    about: "The address that the service gives to a webhook; secret as a whole.",
    example: "",
};

/// The promise of services that do not recognize repeats.
const AT_LEAST_ONCE: &str = "At least once: if the service's response is lost, the message is sent again. Its last line has the submission's id.";

/// The spec of chats, as far as they are alike.
const SPEC: IntegrationSpec = IntegrationSpec {
    about: "",
    events: &EventType::SUBSCRIBABLE,
    members: &[URL, TITLE, MAX_FIELDS],
    pace: Pace {
        mode: WriteMode::Message,
        concurrency: 1,
        batch: 1,
        interval_ms: 1_000,
        longest_ms: HTTP_LIMIT_MS,
        schedule: &SCHEDULE,
    },
    set_up: "",
    limits: "",
    repeats: AT_LEAST_ONCE,
    source: "",
};

/// A service that shows messages to people.
pub(super) struct Chat {
    pub spec: IntegrationSpec,
    /// The member with the URL of the service; `None` if the secret URL leads there.
    pub server: Option<&'static str>,
    /// The member that identifies the chat there, as far as settings show it. One message at a time is sent to each.
    pub receiver: Option<&'static str>,
    /// The body of the request, within the limits of the service.
    pub body: fn(&Settings, &Message) -> Value,
    /// The request of an attempt, without its content type.
    pub request: fn(&Settings, &PlannedAttempt<'_>, Sealer<'_>) -> Planned,
    /// How the service's answers are understood.
    pub classify: Classify,
}

/// A planned request, or why there is none.
type Planned = Result<HttpRequest, PlanError>;

fn post_to_secret_url(settings: &Settings, attempt: &PlannedAttempt<'_>, sealer: Sealer<'_>) -> Planned {
    let secret = settings.open(URL.name, sealer)?.ok_or(PlanError::Damaged)?;
    let url = Url::parse(secret.reveal()).map_err(|_invalid| PlanError::Damaged)?;
    let secrets = [secret].into_iter().chain(secret_parts(&url).map(Secret::new)).collect();
    Ok(HttpRequest { secrets, ..HttpRequest::new("POST", url, attempt.body.to_vec()) })
}

/// Returns `server` with `segments` behind its path.
fn join(mut server: Url, segments: &[&str]) -> Result<Url, PlanError> {
    let mut path = server.path_segments_mut().map_err(|()| PlanError::Damaged)?;
    path.pop_if_empty().extend(segments);
    drop(path);
    Ok(server)
}

impl Kind for Chat {
    fn spec(&self) -> &IntegrationSpec {
        &self.spec
    }

    fn target(&self, settings: &Settings) -> String {
        match self.server {
            Some(name) => settings.url(name).as_ref().map(host_of).unwrap_or_default(),
            None => settings.secret_host().to_owned(),
        }
    }

    fn destination(&self, settings: &Settings, id: IntegrationId) -> String {
        let receiver = match self.receiver {
            Some(name) => settings.text(name).map(|receiver| format!("{}/{receiver}", self.target(settings))),
            None => settings.secret_destination(),
        };
        receiver.unwrap_or_else(|| format!("{}/{id}", self.target(settings)))
    }

    fn render(&self, settings: &Settings, rendering: Rendering<'_>) -> Option<Vec<u8>> {
        let max_fields = settings.number(MAX_FIELDS.name).unwrap_or(DEFAULT_FIELDS);
        let max_fields = usize::try_from(max_fields).unwrap_or(0);
        let message = Message::new(rendering, settings.text(TITLE.name), max_fields);
        Some((self.body)(settings, &message).to_string().into_bytes())
    }

    fn plan(
        &self,
        settings: &Settings,
        attempt: PlannedAttempt<'_>,
        sealer: Sealer<'_>,
    ) -> Result<Outbound, PlanError> {
        let mut request = (self.request)(settings, &attempt, sealer)?;
        let json = Secret::new("application/json; charset=utf-8".to_owned());
        request.headers.push(("Content-Type".to_owned(), json));
        Ok(Outbound::Http(HttpRequest { classify: self.classify, ..request }))
    }
}

/// Returns `body`, which is kept without addresses, with those that the service expects there; `null` for none. They replace
/// those that bodies of earlier versions have.
fn complete<const N: usize>(body: &[u8], members: [(&str, Value); N]) -> Result<Vec<u8>, PlanError> {
    let mut body: Map<String, Value> = serde_json::from_slice(body).map_err(|_error| PlanError::Damaged)?;
    for (name, value) in members {
        body.remove(name);
        body.extend(Some((name.to_owned(), value)).filter(|(_, value)| !value.is_null()));
    }
    Ok(Value::Object(body).to_string().into_bytes())
}

/// The parts of a secret URL that are hidden if a service sends them back: its path with the query, and each long part of
/// these.
fn secret_parts(url: &Url) -> impl Iterator<Item = String> {
    let target = url[Position::BeforePath..Position::AfterQuery].to_owned();
    let parts = target.split(['/', '?', '&', '=']).filter(|part| part.len() >= MIN_SECRET_PART);
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<_> = parts.flat_map(|part| [part.to_owned(), decoded(part)]).collect();
    [target].into_iter().filter(|target| target.len() > 1).chain(parts)
}

/// Checks an id that is a number of a service.
fn check_number(text: &str) -> Result<(), String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    ensure(is_number, "must be a number in quotes, such as \"42\"")
}
