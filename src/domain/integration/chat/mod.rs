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

use super::kind::{HasSpec, Kind, Pace, RenderedBody, Rendering};
use super::message::Message;
use super::outbound::{HttpRequest, Outbound};
use super::plan::{PlanError, PlannedAttempt, Unsealer};
use super::spec::{Member, MemberValue, Need};
use crate::domain::delivery::classify::Classify;
use crate::id::IntegrationId;
use crate::secret::Secret;

/// The waits between attempts in milliseconds: a message a day late is noise.
const SCHEDULE: [i64; 6] = [5_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000, 6 * 3_600_000];

/// Shortest part of a secret URL that is hidden by itself, in bytes.
const MIN_SECRET_PART: usize = 10;

/// Answers in a message, if its author does not say how many.
const DEFAULT_FIELDS: i64 = 10;

/// The members of every chat.
pub(super) const TITLE: Member = Member {
    name: "title",
    need: Need::Optional,
    value: MemberValue::Template(500),
    about: "The first line, a template.",
    example: r#""New answer to {{ form.title }}""#,
};
pub(super) const MAX_FIELDS: Member = Member {
    name: "max_fields",
    need: Need::Default("10"),
    value: MemberValue::Number { min: 0, max: 40 },
    about: "How many answers the message has at most; the others are counted.",
    example: "5",
};

/// The address of services where it is the only secret.
pub(super) const URL: Member = Member {
    name: "url",
    need: Need::Required,
    value: MemberValue::SecretUrl,
    about: "The address that the service gives to a webhook; secret as a whole.",
    example: "",
};

/// The promise of services that do not recognize repeats.
pub(super) const AT_LEAST_ONCE: &str = "At least once: if the service's response is lost, the message is sent again. Its last line has the submission's id.";

/// A service that shows messages to people.
pub(super) trait Chat: HasSpec {
    /// How the service's answers are understood.
    const CLASSIFY: Classify;

    /// The service takes no second message before this many milliseconds.
    const INTERVAL_MS: i64;

    /// The body of the request, within the limits of the service.
    fn body(&self, message: &Message) -> Value;

    /// How the body is sent: to the secret URL. `attempt` identifies the delivery, for services that recognize repeats.
    fn call(&self, _attempt: &PlannedAttempt<'_>, unsealer: Unsealer<'_>) -> Result<Call, PlanError> {
        Call::to_secret_url(self, unsealer)
    }

    /// The host that it calls; no secret.
    fn host(&self) -> String {
        self.settings().secret_host().to_owned()
    }

    /// Identifies the chat, as far as its settings show it. One message at a time is sent to each.
    fn receiver(&self) -> String {
        self.settings().secret_destination()
    }
}

/// A request without its body.
pub(super) struct Call {
    pub method: &'static str,
    pub url: Url,
    pub headers: Vec<(String, Secret<String>)>,
    /// What must not be shown if the service sends it back.
    pub secrets: Vec<Secret<String>>,
    /// Addresses that the service expects in the body, whose kept copy is without; `null` for none.
    pub members: Vec<(&'static str, Value)>,
}

impl Call {
    /// A `POST` to the secret URL of `chat`.
    pub(super) fn to_secret_url(chat: &impl Chat, unsealer: Unsealer<'_>) -> Result<Self, PlanError> {
        let secret = chat.settings().open(URL.name, unsealer)?.ok_or(PlanError::Damaged)?;
        let url = Url::parse(secret.reveal()).map_err(|_invalid| PlanError::Damaged)?;
        let secrets = [secret].into_iter().chain(secret_parts(&url).map(Secret::new)).collect();
        Ok(Self { method: "POST", url, headers: Vec::new(), secrets, members: Vec::new() })
    }

    /// Returns `server` with `segments` behind its path.
    pub(super) fn join(mut server: Url, segments: &[&str]) -> Result<Url, PlanError> {
        let mut path = server.path_segments_mut().map_err(|()| PlanError::Damaged)?;
        path.pop_if_empty().extend(segments);
        drop(path);
        Ok(server)
    }

    /// The host of `server`, with its port if it is an unusual one.
    pub(super) fn host_of(server: &Result<Url, PlanError>) -> String {
        let Ok(server) = server else { return String::new() };
        let host = server.host_str().unwrap_or_default();
        server.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

impl<T: Chat> Kind for T {
    fn target(&self) -> String {
        self.host()
    }

    fn destination(&self, id: IntegrationId) -> String {
        Some(self.receiver())
            .filter(|receiver| !receiver.is_empty())
            .unwrap_or_else(|| format!("{}/{id}", self.host()))
    }

    fn render(&self, rendering: Rendering<'_>) -> Option<RenderedBody> {
        let settings = self.settings();
        let max_fields = settings.number(MAX_FIELDS.name).unwrap_or(DEFAULT_FIELDS);
        let max_fields = usize::try_from(max_fields).unwrap_or(0);
        let message = Message::new(rendering, settings.text(TITLE.name), max_fields);
        Some(self.body(&message).to_string().into_bytes().into())
    }

    fn plan(&self, attempt: PlannedAttempt<'_>, unsealer: Unsealer<'_>) -> Result<Outbound, PlanError> {
        let Call { method, url, mut headers, secrets, members } = self.call(&attempt, unsealer)?;
        let json = Secret::new("application/json; charset=utf-8".to_owned());
        headers.push(("Content-Type".to_owned(), json));
        let body = if members.is_empty() { attempt.body.to_vec() } else { complete(attempt.body, members)? };
        Ok(Outbound::Http(HttpRequest { method, url, headers, body, secrets, classify: T::CLASSIFY }))
    }

    fn pace(&self) -> Pace {
        Pace { concurrency: 1, batch: 1, interval_ms: T::INTERVAL_MS, schedule: &SCHEDULE }
    }
}

/// Returns `body` with `members`, in place of those that bodies of earlier versions have.
fn complete(body: &[u8], members: Vec<(&'static str, Value)>) -> Result<Vec<u8>, PlanError> {
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
    if is_number { Ok(()) } else { Err("must be a number in quotes, such as \"42\"".to_owned()) }
}
