//! What each service refuses, by its public documentation.

use serde_json::Value;

fn utf16(value: &Value) -> usize {
    value.as_str().unwrap().encode_utf16().count()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Asserts that `value` is a text that is not blank and has at most `max` characters.
fn check_text(value: &Value, max: usize) {
    assert!(!value.as_str().unwrap().trim().is_empty() && utf16(value) <= max, "{value}");
}

fn check_members(value: &Value, known: &[&str]) {
    for name in value.as_object().unwrap().keys() {
        assert!(known.contains(&&**name), "{name}");
    }
}

/// Asserts that the service takes `message`.
pub(super) fn check_limits(chat: &str, message: &Value) {
    match chat {
        "slack" => slack(message),
        "discord" => discord(message),
        "teams" => teams(message),
        "mattermost" => mattermost(message),
        "google_chat" => google_chat(message),
        "telegram" => telegram(message),
        "matrix" => matrix(message),
        "ntfy" => ntfy(message),
        other => panic!("{other}"),
    }
}

/// <https://docs.slack.dev/reference/block-kit/blocks>: 50 blocks; a header has 150 characters, a section 10 fields of 2,000, a
/// context 10 elements. Some 13,200 characters of blocks are refused (`msg_blocks_too_long`).
fn slack(message: &Value) {
    check_members(message, &["text", "blocks"]);
    check_text(&message["text"], 40_000);
    let blocks = array(&message["blocks"]);
    assert!(blocks.len() <= 50 && message["blocks"].to_string().chars().count() <= 13_000);
    let plain = |text: &Value, max| {
        assert_eq!(text["type"], "plain_text");
        check_text(&text["text"], max);
    };
    for block in blocks {
        match block["type"].as_str().unwrap() {
            "header" => plain(&block["text"], 150),
            "section" => {
                assert!(array(&block["fields"]).len() <= 10);
                array(&block["fields"]).iter().for_each(|field| plain(field, 2_000));
            }
            "context" => {
                assert!(array(&block["elements"]).len() <= 10);
                array(&block["elements"]).iter().for_each(|element| plain(element, 2_000));
            }
            other => panic!("{other}"),
        }
    }
}

/// <https://docs.discord.com/developers/resources/message#embed-object-embed-limits>.
fn discord(message: &Value) {
    check_members(message, &["embeds", "allowed_mentions"]);
    assert_eq!(message["allowed_mentions"]["parse"], serde_json::json!([]));
    let embeds = array(&message["embeds"]);
    assert!((1..=10).contains(&embeds.len()));
    let mut sum = 0;
    for embed in embeds {
        check_text(&embed["title"], 256);
        check_text(&embed["footer"]["text"], 2_048);
        assert!(array(&embed["fields"]).len() <= 25);
        sum += utf16(&embed["title"]) + utf16(&embed["footer"]["text"]);
        for field in array(&embed["fields"]) {
            check_text(&field["name"], 256);
            check_text(&field["value"], 1_024);
            sum += utf16(&field["name"]) + utf16(&field["value"]);
        }
    }
    assert!(sum <= 6_000, "{sum}");
}

/// <https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using>: 28 KB; one
/// adaptive card, whose version is at most 1.4.
fn teams(message: &Value) {
    assert!(message.to_string().len() <= 28_000);
    assert_eq!(message["type"], "message");
    let [attachment] = array(&message["attachments"]) else { panic!("{message}") };
    assert_eq!(attachment["contentType"], "application/vnd.microsoft.card.adaptive");
    let card = &attachment["content"];
    assert_eq!((&card["type"], &card["version"]), (&"AdaptiveCard".into(), &"1.4".into()));
    for block in array(&card["body"]) {
        assert_eq!(block["type"], "RichTextBlock");
        let [run] = array(&block["inlines"]) else { panic!("{block}") };
        assert_eq!(run["type"], "TextRun");
        check_text(&run["text"], 28_000);
    }
}

/// <https://developers.mattermost.com/integrate/webhooks/incoming/>: a longer text is split into several posts; 4,000 characters
/// fit on servers of any age.
fn mattermost(message: &Value) {
    check_members(message, &["text"]);
    check_text(&message["text"], 16_383);
    assert!(message["text"].as_str().unwrap().chars().count() <= 4_000);
}

/// <https://developers.google.com/workspace/chat/api/reference/rest/v1/cards>: 32,000 bytes, 100 widgets in a section; a header
/// needs a title.
fn google_chat(message: &Value) {
    assert!(message.to_string().len() <= 32_000);
    check_members(message, &["cardsV2", "fallbackText"]);
    let [card] = array(&message["cardsV2"]) else { panic!("{message}") };
    check_text(&card["card"]["header"]["title"], 1_000);
    let [section] = array(&card["card"]["sections"]) else { panic!("{message}") };
    let widgets = array(&section["widgets"]);
    assert!((1..=100).contains(&widgets.len()));
    for widget in widgets {
        let text = if widget["decoratedText"].is_object() {
            &widget["decoratedText"]
        } else {
            &widget["textParagraph"]
        };
        check_text(&text["text"], 32_000);
    }
}

/// <https://core.telegram.org/bots/api#sendmessage>: 1 to 4,096 characters.
fn telegram(message: &Value) {
    check_members(message, &["text", "link_preview_options", "disable_notification"]);
    check_text(&message["text"], 4_096);
}

/// <https://spec.matrix.org/latest/client-server-api/#size-limits>: an event has 65,536 bytes; some 2,000 are for signatures and
/// ids, and text is canonical JSON.
fn matrix(message: &Value) {
    assert!(message.to_string().len() <= 63_000, "{}", message.to_string().len());
    assert_eq!((&message["msgtype"], &message["m.mentions"]), (&"m.text".into(), &serde_json::json!({})));
    check_text(&message["body"], 63_000);
}

/// <https://docs.ntfy.sh/publish/#limitations>: a message has 4,096 bytes, else it becomes an attachment.
fn ntfy(message: &Value) {
    check_members(message, &["title", "message", "priority", "tags"]);
    check_text(&message["title"], 250);
    check_text(&message["message"], 4_096);
    assert!(message["message"].as_str().unwrap().len() <= 4_096);
    assert!((1..=5).contains(&message["priority"].as_i64().unwrap()));
}
