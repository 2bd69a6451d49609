//! Mattermost: incoming webhooks.

use serde_json::json;

use super::classify::classify_answer;
use super::text::{TextStyle, Unit, markdown};
use super::{Chat, Classification, HttpAnswer, IntegrationSpec, Pace, SPEC, post_to_secret_url};

/// Mattermost takes 16,383 characters, and splits what has more than 4,000 on servers that were set up long ago.
const STYLE: TextStyle =
    TextStyle { max: 4_000, unit: Unit::Characters, escape, link, bold: ("**", "**"), line_break: "\n" };

pub(in crate::domain::integration) static MATTERMOST: Chat = Chat {
    spec: IntegrationSpec {
        about: "A message to a Mattermost channel.",
        pace: Pace { interval_ms: 500, ..SPEC.pace },
        set_up: "In the menu of products choose *Integrations*, *Incoming Webhooks*, *Add*. Its address is `url`.",
        limits: "Two messages a second. A message has at most 4,000 characters: long answers are cut, then the last ones are left out.",
        source: "https://developers.mattermost.com/integrate/webhooks/incoming/",
        ..SPEC
    },
    server: None,
    receiver: None,
    body: |_, message| json!({ "text": STYLE.write(message) }),
    request: post_to_secret_url,
    classify,
};

fn link(link: &str) -> String {
    format!("<{link}>")
}

/// Beside Markdown, mentions, `:smile:`, links, entities and headings underlined by `=` are taken apart.
fn escape(character: char, before: Option<char>, text: &mut String) {
    let begins_word = before.is_none_or(char::is_whitespace);
    match character {
        // In an address, it mentions nobody.
        '@' if before.is_some_and(|found| found.is_ascii_alphanumeric()) => text.push('@'),
        // As code: an entity would be decoded, and mention whom the text names. Between two, a space of no width keeps the
        // backticks of each apart.
        '@' => text.push_str(if before == Some('@') { "\u{200b}`@`" } else { "`@`" }),
        '&' => text.push_str("&amp;"),
        '=' if begins_word => text.push_str("&#61;"),
        ':' if !before.is_some_and(|found| found.is_ascii_digit()) => text.push_str("&#58;"),
        _ => markdown(character, before, text),
    }
}

/// A webhook that was deleted answers 400 or 404 with the name of the error.
fn classify(answer: &HttpAnswer<'_>) -> Classification {
    let gone = ["web.incoming_webhook.invalid.app_error", "store.sql_webhooks.get_incoming.app_error"];
    let is_gone = gone.iter().any(|name| answer.body.contains(name));
    classify_answer(answer, is_gone, None)
}
