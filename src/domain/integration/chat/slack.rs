//! Slack: incoming webhooks.

use serde_json::{Value, json};

use super::classify::classify_answer;
use super::text::{MAX_NOTE, Unit, clip, entities, or_dash, verbatim};
use super::{
    Chat, Classification, HttpAnswer, IntegrationSpec, Message, SPEC, Settings, ShownAnswer,
    post_to_secret_url,
};

/// Characters of a header block.
const MAX_HEADER: usize = 150;

/// Characters of a text in the fields of a section.
const MAX_TEXT: usize = 2_000;

/// Characters of all blocks as JSON: Slack refuses some 13,200 and does not document it (`msg_blocks_too_long`).
const MAX_BLOCKS: usize = 10_000;

pub(in crate::domain::integration) static SLACK: Chat = Chat {
    spec: IntegrationSpec {
        about: "A message to a Slack channel.",
        set_up: "Create an app at https://api.slack.com/apps, turn on *Incoming Webhooks* and add one to a channel. Its address is `url`.",
        limits: "One message a second. A message has at most 10,000 characters: long answers are cut, then the last ones are left out.",
        source: "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks",
        ..SPEC
    },
    server: None,
    receiver: None,
    body,
    request: post_to_secret_url,
    classify,
};

fn body(_: &Settings, message: &Message) -> Value {
    let blocks = message.fit(MAX_TEXT, blocks, |blocks| Unit::Utf16.of(&blocks.to_string()) <= MAX_BLOCKS);
    // Shown in notifications only.
    let text = clip(&message.title, MAX_HEADER, Unit::Utf16, entities);
    json!({ "text": text, "blocks": blocks })
}

fn blocks(message: &Message, share: usize) -> Value {
    let section = |field: &ShownAnswer| {
        let texts = [plain_text(&field.title, MAX_HEADER), answer_text(field, share)];
        json!({ "type": "section", "fields": texts })
    };
    let header = json!({ "type": "header", "text": plain_text(&message.title, MAX_HEADER) });
    let notes: Vec<_> = message.notes().map(|note| plain_text(&note, MAX_NOTE)).collect();
    let context = json!({ "type": "context", "elements": notes });
    [header].into_iter().chain(message.fields.iter().map(section)).chain([context]).collect()
}

/// A link to itself, if the answer is one: `<https://example.com>` or `<mailto:ann@example.com|ann@example.com>`.
fn answer_text(field: &ShownAnswer, share: usize) -> Value {
    let label = field.shown_link().filter(|shown| !shown.contains("://")).map(|shown| format!("|{shown}"));
    let link = field.link().map(|link| format!("<{link}{}>", label.unwrap_or_default()));
    match link.map(|link| link.replace('&', "&amp;")).filter(|link| link.len() <= share) {
        Some(link) => json!({ "type": "mrkdwn", "text": link, "verbatim": true }),
        None => plain_text(&field.text, share),
    }
}

/// Objects of this type show mentions, links and formatting as they are written.
fn plain_text(text: &str, max: usize) -> Value {
    let text = or_dash(clip(text, max, Unit::Utf16, verbatim));
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

/// Slack says what is wrong in a word; a channel or webhook that is gone stays so.
fn classify(answer: &HttpAnswer<'_>) -> Classification {
    let gone = [
        "no_service",
        "no_service_id",
        "no_active_hooks",
        "invalid_token",
        "channel_is_archived",
        "no_team",
        "team_disabled",
        "user_not_found",
        "channel_not_found",
    ];
    let is_gone = answer.status >= 400 && gone.contains(&answer.body.trim());
    classify_answer(answer, is_gone, None)
}
