//! Discord: webhooks of channels.

use serde_json::{Value, json};

use super::classify::{classify_answer, member, seconds_to_ms};
use super::text::{MAX_NOTE, Unit, clip, markdown, or_dash, verbatim};
use super::{
    Chat, Classification, HttpAnswer, IntegrationSpec, MAX_FIELDS, Member, MemberValue, Message, Need, Pace,
    Planned, PlannedAttempt, SPEC, Sealer, Settings, ShownAnswer, TITLE, URL, check_number,
    post_to_secret_url,
};
use crate::domain::delivery::attempt::Outcome;

/// Characters of the title of an embed, and of the name of a field.
const MAX_NAME: usize = 256;

/// Characters of the value of a field.
const MAX_VALUE: usize = 1_024;

const MAX_EMBED_FIELDS: usize = 25;

/// Characters of all texts of the embeds of a message.
const MAX_EMBED: usize = 6_000;

/// Discord's codes of a webhook that does not exist any more, or whose token does not.
const GONE: [i64; 2] = [10_015, 50_027];

const THREAD_ID: Member = Member {
    name: "thread_id",
    need: Need::Optional,
    value: MemberValue::Text { max: 20, check: check_number },
    about: "The thread of the channel that gets the message, by its id.",
    example: r#""1159876543210987654""#,
};

pub(in crate::domain::integration) static DISCORD: Chat = Chat {
    spec: IntegrationSpec {
        about: "A message to a Discord channel.",
        members: &[URL, THREAD_ID, TITLE, MAX_FIELDS],
        pace: Pace { interval_ms: 400, ..SPEC.pace },
        set_up: "In the settings of the channel choose *Integrations*, *Webhooks*, *New Webhook*. Its address is `url`.",
        limits: "As often as Discord says in its answers. A message has 25 answers of 1,024 characters and 6,000 characters in all: long answers are cut, then the last ones are left out.",
        source: "https://docs.discord.com/developers/resources/webhook",
        ..SPEC
    },
    server: None,
    receiver: None,
    body,
    request,
    classify,
};

fn body(_: &Settings, message: &Message) -> Value {
    let embed = message.fit(MAX_VALUE, Embed::new, Embed::is_small_enough);
    // Without this, answers could mention everybody.
    json!({ "embeds": [embed.json()], "allowed_mentions": { "parse": [] } })
}

fn request(settings: &Settings, attempt: &PlannedAttempt<'_>, sealer: Sealer<'_>) -> Planned {
    let mut request = post_to_secret_url(settings, attempt, sealer)?;
    // Without `wait`, Discord answers before it has checked the message.
    request.url.query_pairs_mut().append_pair("wait", "true");
    if let Some(thread) = settings.text(THREAD_ID.name) {
        request.url.query_pairs_mut().append_pair("thread_id", thread);
    }
    Ok(request)
}

struct Embed {
    title: String,
    /// Names and values.
    fields: Vec<(String, String)>,
    footer: String,
}

impl Embed {
    fn new(message: &Message, share: usize) -> Self {
        let field = |field: &ShownAnswer| (escaped(&field.title, MAX_NAME / 2), answer_text(field, share));
        // A footer has no markup.
        let notes: Vec<_> =
            message.notes().map(|note| clip(&note, MAX_NOTE, Unit::Utf16, verbatim)).collect();
        Self {
            title: escaped(&message.title, MAX_NAME),
            fields: message.fields.iter().map(field).collect(),
            footer: notes.join("\n"),
        }
    }

    fn is_small_enough(&self) -> bool {
        let fields = self.fields.iter().flat_map(|(name, value)| [name, value]);
        let size: usize = fields.chain([&self.title, &self.footer]).map(|text| Unit::Utf16.of(text)).sum();
        size <= MAX_EMBED && self.fields.len() <= MAX_EMBED_FIELDS
    }

    fn json(&self) -> Value {
        let field = |(name, value): &(String, String)| json!({ "name": name, "value": value });
        let fields: Vec<_> = self.fields.iter().map(field).collect();
        json!({ "title": self.title, "fields": fields, "footer": { "text": self.footer } })
    }
}

/// A URL is a link to itself. Of an address Discord makes none.
fn answer_text(field: &ShownAnswer, share: usize) -> String {
    let url = field.shown_link().filter(|shown| shown.contains("://")).map(|url| format!("<{url}>"));
    url.filter(|url| url.len() <= share).unwrap_or_else(|| escaped(&field.text, share))
}

/// Titles, names and values are Markdown, in which a backslash works before every sign.
fn escaped(text: &str, max: usize) -> String {
    let escape = |character, before, text: &mut String| {
        if matches!(character, '<' | ':' | '@') {
            text.push('\\');
        }
        markdown(character, before, text);
    };
    or_dash(clip(text, max, Unit::Utf16, escape))
}

/// Discord says in JSON and headers how long to wait.
fn classify(answer: &HttpAnswer<'_>) -> Classification {
    let code = member(answer.body, &["code"]).and_then(|code| code.as_i64());
    let wait_ms = member(answer.body, &["retry_after"]).and_then(|wait| seconds_to_ms(wait.as_f64()?));
    let found = classify_answer(answer, code.is_some_and(|code| GONE.contains(&code)), wait_ms);
    let is_used_up = answer.header("x-ratelimit-remaining") == Some("0");
    let reset = answer.header("x-ratelimit-reset-after").and_then(|text| seconds_to_ms(text.parse().ok()?));
    match (found.outcome == Outcome::Delivered && is_used_up, reset) {
        (true, Some(hold_ms)) => Classification { hold_ms, ..found },
        _ => found,
    }
}
