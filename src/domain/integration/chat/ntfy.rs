//! ntfy: notifications of a topic.

use serde_json::{Value, json};

use super::classify::classify_answer;
use super::text::{TextStyle, Unit, clip, or_dash, verbatim};
use super::{
    Chat, HttpRequest, IntegrationSpec, MAX_FIELDS, Member, MemberValue, Message, Need, PlanError, Planned,
    PlannedAttempt, SPEC, Sealer, Settings, TITLE, bearer, check_bearer_token, complete, ensure,
};

/// ntfy makes an attachment of a message with more than 4,096 bytes.
const STYLE: TextStyle = TextStyle {
    max: 4_096,
    unit: Unit::Bytes,
    escape: verbatim,
    link: str::to_owned,
    bold: ("", ""),
    line_break: "\n",
};

/// Bytes of the title.
const MAX_TITLE: usize = 250;

const SERVER: &str = "server";
const TOPIC: &str = "topic";
const ACCESS_TOKEN: &str = "access_token";
const PRIORITY: &str = "priority";
const TAGS: &str = "tags";

pub(in crate::domain::integration) static NTFY: Chat = Chat {
    spec: IntegrationSpec {
        about: "A notification of an ntfy topic, on phones and desktops.",
        members: &[
            Member {
                name: SERVER,
                need: Need::Default(r#""https://ntfy.sh""#),
                value: MemberValue::Url,
                about: "The server.",
                example: r#""https://ntfy.example.com""#,
            },
            Member::secret(
                TOPIC,
                Need::Required,
                check_topic,
                "The topic; a secret, since everybody who knows it can read it.",
            ),
            Member::secret(
                ACCESS_TOKEN,
                Need::Optional,
                check_bearer_token,
                "An access token, if the topic asks for one.",
            ),
            Member {
                name: PRIORITY,
                need: Need::Default("3"),
                value: MemberValue::Number { min: 1, max: 5 },
                about: "From 1, silent, to 5, urgent.",
                example: "4",
            },
            Member {
                name: TAGS,
                need: Need::Optional,
                value: MemberValue::Texts { max_items: 10, max: 50, check: check_tag },
                about: "Tags; the names of emojis are shown as such.",
                example: r#"["memo"]"#,
            },
            TITLE,
            MAX_FIELDS,
        ],
        set_up: "Subscribe to a topic in the app. On a public server choose a name that nobody guesses.",
        limits: "One notification a second, until the server says less: ntfy.sh accepts 60 at once, then one in 5 seconds, and some 250 a day. It has at most 4,096 bytes: long answers are cut, then the last ones are left out.",
        source: "https://docs.ntfy.sh/publish/#publish-as-json",
        ..SPEC
    },
    server: Some(SERVER),
    receiver: None,
    body,
    request,
    classify: |answer| classify_answer(answer, false, None),
};

fn body(settings: &Settings, message: &Message) -> Value {
    json!({
        "title": or_dash(clip(&message.title, MAX_TITLE, Unit::Bytes, verbatim)),
        "message": STYLE.write_body(message),
        "priority": settings.number(PRIORITY),
        "tags": settings.texts(TAGS),
    })
}

fn request(settings: &Settings, attempt: &PlannedAttempt<'_>, sealer: Sealer<'_>) -> Planned {
    let topic = settings.open(TOPIC, sealer)?.ok_or(PlanError::Damaged)?;
    let token = settings.open(ACCESS_TOKEN, sealer)?;
    let body = complete(attempt.body, [(TOPIC, topic.reveal().as_str().into())])?;
    Ok(HttpRequest {
        headers: token.iter().map(bearer).collect(),
        secrets: [Some(topic), token].into_iter().flatten().collect(),
        ..HttpRequest::new("POST", settings.url(SERVER)?, body)
    })
}

fn check_topic(text: &str) -> Result<(), String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_topic = text.len() <= 64 && text.bytes().all(is_part);
    ensure(is_topic, "must be the name of a topic: at most 64 letters, digits, - and _")
}

fn check_tag(text: &str) -> Result<(), String> {
    let is_tag = !text.is_empty() && !text.contains(|found: char| found == ',' || found.is_control());
    ensure(is_tag, "has a tag that is empty or has a comma")
}
