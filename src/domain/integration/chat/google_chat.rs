//! Google Chat: webhooks of spaces.

use serde_json::{Value, json};

use super::classify::{classify_answer, member};
use super::text::{MAX_NOTE, Unit, clip, entities, html_link, or_dash, verbatim};
use super::{
    Chat, Classification, HttpAnswer, IntegrationSpec, Message, SPEC, ShownAnswer, post_to_secret_url,
};
use crate::domain::integration::message::MAX_TITLE;

/// Bytes of a message: Google takes 32,000.
const MAX_MESSAGE: usize = 30_000;

/// Bytes of an answer.
const MAX_ANSWER: usize = 4_000;

/// Bytes of the title of a question, which is shown in one line.
const MAX_QUESTION: usize = 300;

pub(in crate::domain::integration) static GOOGLE_CHAT: Chat = Chat {
    spec: IntegrationSpec {
        about: "A message to a space of Google Chat.",
        set_up: "In the menu of the space choose *Apps & integrations*, *Webhooks*, *Add*. Its address is `url`.",
        limits: "One message a second. A message has at most 30,000 bytes, an answer 4,000: long answers are cut, then the last ones are left out.",
        source: "https://developers.google.com/workspace/chat/quickstart/webhooks",
        ..SPEC
    },
    server: None,
    receiver: None,
    body: |_, message| message.fit(MAX_ANSWER, card, |card| card.to_string().len() <= MAX_MESSAGE),
    request: post_to_secret_url,
    classify,
};

fn card(message: &Message, share: usize) -> Value {
    let answer = |field: &ShownAnswer| {
        let title = clip(&field.title, MAX_QUESTION, Unit::Bytes, verbatim);
        json!({ "decoratedText": { "topLabel": title, "text": answer_text(field, share), "wrapText": true } })
    };
    let note = |note: String| json!({ "textParagraph": { "text": marked_up(&note, MAX_NOTE) } });
    let widgets: Vec<_> = message.fields.iter().map(answer).chain(message.notes().map(note)).collect();
    let title = clip(&message.title, 4 * MAX_TITLE, Unit::Bytes, verbatim);
    json!({
        "fallbackText": title,
        "cardsV2": [{
            "cardId": "forms",
            "card": { "header": { "title": title }, "sections": [{ "widgets": widgets }] },
        }],
    })
}

fn answer_text(field: &ShownAnswer, share: usize) -> String {
    let link = field.shown_link().map(|shown| html_link(&shown)).filter(|link| link.len() <= share);
    link.unwrap_or_else(|| marked_up(&field.text, share))
}

/// Texts of widgets know some elements of HTML.
fn marked_up(text: &str, max: usize) -> String {
    or_dash(clip(text, max, Unit::Bytes, entities))
}

/// A webhook that was deleted answers with the status `NOT_FOUND`.
fn classify(answer: &HttpAnswer<'_>) -> Classification {
    let status = member(answer.body, &["error", "status"]);
    let is_gone = status.is_some_and(|status| status == "NOT_FOUND");
    classify_answer(answer, is_gone, None)
}
