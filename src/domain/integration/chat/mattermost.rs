//! Mattermost: incoming webhooks.

use serde_json::{Value, json};

use super::classify::{Hints, classify_answer};
use super::text::{TextStyle, Unit, markdown};
use super::{AT_LEAST_ONCE, Chat, MAX_FIELDS, TITLE, URL};
use crate::domain::delivery::classify::{Classification, Classify, HttpAnswer};
use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::{HasSpec, kind};
use crate::domain::integration::message::Message;
use crate::domain::integration::spec::IntegrationSpec;

kind! {
    /// A message to a Mattermost channel.
    Mattermost
}

/// Mattermost takes 16,383 characters, and splits what has more than 4,000 on servers that were set up long ago.
const STYLE: TextStyle =
    TextStyle { max: 4_000, unit: Unit::Characters, escape, link, bold: ("**", "**"), line_break: "\n" };

impl HasSpec for Mattermost {
    const SPEC: IntegrationSpec = IntegrationSpec {
        about: "A message to a Mattermost channel.",
        events: &EventType::SUBSCRIBABLE,
        members: &[URL, TITLE, MAX_FIELDS],
        set_up: "In the menu of products choose *Integrations*, *Incoming Webhooks*, *Add*. Its address is `url`.",
        limits: "Two messages a second. A message has at most 4,000 characters: long answers are cut, then the last ones are left out.",
        repeats: AT_LEAST_ONCE,
        source: "https://developers.mattermost.com/integrate/webhooks/incoming/",
    };
}

impl Chat for Mattermost {
    const CLASSIFY: Classify = classify;
    const INTERVAL_MS: i64 = 500;

    fn body(&self, message: &Message) -> Value {
        json!({ "text": STYLE.write(message) })
    }
}

fn link(link: &str) -> String {
    format!("<{link}>")
}

/// Beside Markdown, mentions, `:smile:`, links, entities and headings underlined by `=` are taken apart.
fn escape(character: char, before: Option<char>, text: &mut String) {
    let begins_word = before.is_none_or(char::is_whitespace);
    match character {
        // The `@` of an address, which begins no mention.
        '@' if before.is_some_and(|found| found.is_ascii_alphanumeric()) => text.push('@'),
        // As code: the server would decode an entity, and mention whoever is named behind it. Two of these must not touch.
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
    classify_answer(answer, Hints { is_gone, wait_ms: None })
}
