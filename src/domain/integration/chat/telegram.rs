//! Telegram: messages of a bot.

use serde_json::{Value, json};

use super::classify::{classify_answer, member, seconds_to_ms};
use super::text::{TextStyle, Unit};
use super::{
    Chat, Classification, HttpAnswer, HttpRequest, IntegrationSpec, MAX_FIELDS, Member, MemberValue, Message,
    Need, Pace, PlanError, Planned, PlannedAttempt, SPEC, Sealer, Settings, TITLE, check_number, complete,
    ensure, join,
};

/// Telegram takes 4,096 characters, counted as UTF-16.
const STYLE: TextStyle = TextStyle {
    max: 4_096,
    unit: Unit::Utf16,
    escape,
    link: str::to_owned,
    bold: ("", ""),
    line_break: "\n",
};

const BOT_TOKEN: &str = "bot_token";
const CHAT_ID: &str = "chat_id";
const THREAD_ID: &str = "message_thread_id";
const SILENT: &str = "silent";
const SERVER: &str = "server";

pub(in crate::domain::integration) static TELEGRAM: Chat = Chat {
    spec: IntegrationSpec {
        about: "A message of a bot in a Telegram chat.",
        members: &[
            Member::secret(BOT_TOKEN, Need::Required, check_token, "The token of the bot."),
            Member {
                name: CHAT_ID,
                need: Need::Required,
                value: MemberValue::Text { max: 64, check: check_chat },
                about: "The chat: its number, or the `@name` of a public channel.",
                example: r#""-1001234567890""#,
            },
            Member {
                name: THREAD_ID,
                need: Need::Optional,
                value: MemberValue::Text { max: 20, check: check_number },
                about: "The topic of a group that has topics, by its number.",
                example: r#""42""#,
            },
            Member {
                name: SILENT,
                need: Need::Default("false"),
                value: MemberValue::Flag,
                about: "Whether phones stay silent.",
                example: "true",
            },
            Member {
                name: SERVER,
                need: Need::Default(r#""https://api.telegram.org""#),
                value: MemberValue::Url,
                about: "The server of the bot API, if it is your own.",
                example: r#""https://telegram.example.com""#,
            },
            TITLE,
            MAX_FIELDS,
        ],
        pace: Pace { interval_ms: 3_000, ..SPEC.pace },
        set_up: "Ask https://t.me/BotFather for a `/newbot`, whose token is `bot_token`, and add the bot to the chat. Then `https://api.telegram.org/bot<token>/getUpdates` shows the number of the chat, after somebody wrote in it.",
        limits: "One message every 3 seconds: groups accept 20 a minute. A message has at most 4,096 characters: long answers are cut, then the last ones are left out. Telegram makes links of URLs in answers.",
        source: "https://core.telegram.org/bots/api#sendmessage",
        ..SPEC
    },
    server: Some(SERVER),
    receiver: Some(CHAT_ID),
    body,
    request,
    classify,
};

fn body(settings: &Settings, message: &Message) -> Value {
    // Without `parse_mode` the text has no markup.
    json!({
        "text": STYLE.write(message),
        "link_preview_options": { "is_disabled": true },
        "disable_notification": settings.flag(SILENT),
    })
}

fn request(settings: &Settings, attempt: &PlannedAttempt<'_>, sealer: Sealer<'_>) -> Planned {
    let token = settings.open(BOT_TOKEN, sealer)?.ok_or(PlanError::Damaged)?;
    let thread = settings.text(THREAD_ID).and_then(|thread| thread.parse::<i64>().ok());
    let members = [(CHAT_ID, settings.text(CHAT_ID).into()), (THREAD_ID, thread.into())];
    let bot = format!("bot{}", token.reveal());
    let url = join(settings.url(SERVER)?, &[&bot, "sendMessage"])?;
    Ok(HttpRequest {
        secrets: vec![token],
        ..HttpRequest::new("POST", url, complete(attempt.body, members)?)
    })
}

/// Writes an invisible space into what Telegram would make a link of: `@names`, `/commands`, `#tags` and `$TAGS`. It has no other
/// way to say that a text is just a text.
fn escape(character: char, before: Option<char>, text: &mut String) {
    let is_sign = matches!(before, Some('@' | '/' | '#' | '$'));
    if is_sign && (character.is_alphanumeric() || character == '_') && !is_in_word(text) {
        text.push('\u{200b}');
    }
    text.push(character);
}

/// Whether the sign at the end of `text` belongs to a word, an address or a URL.
fn is_in_word(text: &str) -> bool {
    let mut characters = text.chars().rev();
    match (characters.next(), characters.next()) {
        (Some('@'), Some(before)) => before.is_ascii_alphanumeric(),
        (_, Some(before)) => before.is_alphanumeric() || matches!(before, ':' | '/'),
        (_, None) => false,
    }
}

/// A token that was revoked, a bot that was removed from a chat, and a chat that was deleted stay so.
fn classify(answer: &HttpAnswer<'_>) -> Classification {
    let wait = member(answer.body, &["parameters", "retry_after"]);
    let is_gone = matches!(answer.status, 401 | 403 | 404)
        || (answer.status == 400 && answer.body.contains("chat not found"));
    classify_answer(answer, is_gone, wait.and_then(|wait| seconds_to_ms(wait.as_f64()?)))
}

fn check_token(text: &str) -> Result<(), String> {
    let is_token = text.split_once(':').is_some_and(|(id, key)| {
        let is_key = |found: char| found.is_ascii_alphanumeric() || matches!(found, '-' | '_');
        !id.is_empty()
            && id.chars().all(|found| found.is_ascii_digit())
            && key.len() >= 20
            && key.chars().all(is_key)
    });
    ensure(is_token, "must be the token of a bot, such as 123456789:AAF… of 46 characters")
}

fn check_chat(text: &str) -> Result<(), String> {
    let is_name = |found: char| found.is_ascii_alphanumeric() || found == '_';
    let is_chat = match text.strip_prefix('@') {
        Some(name) => !name.is_empty() && name.chars().all(is_name),
        None => text.parse::<i64>().is_ok(),
    };
    ensure(
        is_chat,
        "must be the number of a chat such as \"-1001234567890\", or the @name of a public channel",
    )
}
