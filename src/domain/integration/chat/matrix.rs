//! Matrix: messages in a room.

use serde_json::{Value, json};

use super::classify::{classify_answer, member};
use super::text::{TextStyle, Unit, entities, html_link, verbatim};
use super::{
    Chat, Classification, HttpAnswer, HttpRequest, IntegrationSpec, MAX_FIELDS, Member, MemberValue, Message,
    Need, PlanError, Planned, PlannedAttempt, SPEC, Sealer, Settings, TITLE, bearer, check_bearer_token,
    ensure, join,
};

/// An event has 65,536 bytes, of which the server needs some, and the text is in it twice, in JSON.
const PLAIN: TextStyle = TextStyle {
    max: 12_000,
    unit: Unit::Bytes,
    escape: verbatim,
    link: str::to_owned,
    bold: ("", ""),
    line_break: "\n",
};

const HTML: TextStyle = TextStyle {
    max: 16_000,
    escape: html,
    link: html_link,
    bold: ("<b>", "</b>"),
    line_break: "<br>",
    ..PLAIN
};

const HOMESERVER: &str = "homeserver";
const ROOM_ID: &str = "room_id";
const ACCESS_TOKEN: &str = "access_token";

pub(in crate::domain::integration) static MATRIX: Chat = Chat {
    spec: IntegrationSpec {
        about: "A message in a Matrix room.",
        members: &[
            Member {
                name: HOMESERVER,
                need: Need::Required,
                value: MemberValue::Url,
                about: "The server of the account that writes.",
                example: r#""https://matrix.example.org""#,
            },
            Member {
                name: ROOM_ID,
                need: Need::Required,
                value: MemberValue::Text { max: 255, check: check_room },
                about: "The room, by its internal id. The room is not encrypted.",
                example: r#""!AbCdEfGhIjKlMnOpQr:example.org""#,
            },
            Member::secret(
                ACCESS_TOKEN,
                Need::Required,
                check_bearer_token,
                "The access token of the account.",
            ),
            TITLE,
            MAX_FIELDS,
        ],
        set_up: "Make an account for the messages, invite it to the room and let it join. In Element, *Settings*, *Help & About* has the access token, and *Room settings*, *Advanced* the internal id of the room.",
        limits: "One message a second, or as often as the server says. A message has at most 16,000 bytes: long answers are cut, then the last ones are left out.",
        repeats: "Once, as long as the server remembers the transaction id of the first attempt, which all attempts have. A manual redelivery is a message of its own.",
        source: "https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid",
        ..SPEC
    },
    server: Some(HOMESERVER),
    receiver: Some(ROOM_ID),
    body,
    request,
    classify,
};

fn body(_: &Settings, message: &Message) -> Value {
    json!({
        "msgtype": "m.text",
        "body": PLAIN.write(message),
        "format": "org.matrix.custom.html",
        "formatted_body": HTML.write(message),
        // Nobody is mentioned, whatever the text says.
        "m.mentions": {},
    })
}

fn request(settings: &Settings, attempt: &PlannedAttempt<'_>, sealer: Sealer<'_>) -> Planned {
    let token = settings.open(ACCESS_TOKEN, sealer)?.ok_or(PlanError::Damaged)?;
    let room = settings.text(ROOM_ID).unwrap_or_default();
    // What the server has seen under this id it does not show again: a redelivery is to be shown.
    let transaction = match attempt.redelivery {
        0 => attempt.delivery.to_string(),
        earlier => format!("{}.{earlier}", attempt.delivery),
    };
    let path = ["_matrix", "client", "v3", "rooms", room, "send", "m.room.message", &transaction];
    let request = HttpRequest::new("PUT", join(settings.url(HOMESERVER)?, &path)?, attempt.body.to_vec());
    Ok(HttpRequest { headers: vec![bearer(&token)], secrets: vec![token], ..request })
}

fn html(character: char, before: Option<char>, text: &mut String) {
    if character == '\n' { text.push_str("<br>") } else { entities(character, before, text) }
}

/// Matrix names errors, and says in JSON how long to wait.
fn classify(answer: &HttpAnswer<'_>) -> Classification {
    let code = member(answer.body, &["errcode"]);
    let gone = ["M_UNKNOWN_TOKEN", "M_USER_DEACTIVATED"];
    let is_gone = code.is_some_and(|code| gone.iter().any(|name| code == *name));
    let wait_ms = member(answer.body, &["retry_after_ms"]).and_then(|wait| wait.as_i64());
    classify_answer(answer, is_gone, wait_ms)
}

fn check_room(text: &str) -> Result<(), String> {
    let is_room = text.len() > 1 && text.starts_with('!') && !text.contains(char::is_whitespace);
    ensure(
        is_room,
        "must be the internal id of a room, which begins with `!`: an alias such as #room:example.org can move",
    )
}
