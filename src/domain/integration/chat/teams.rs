//! Microsoft Teams: webhooks of workflows.

use serde_json::{Value, json};

use super::classify::classify_answer;
use super::text::{MAX_NOTE, Unit, clip, or_dash, verbatim};
use super::{
    Chat, Classification, HttpAnswer, IntegrationSpec, MAX_FIELDS, Member, MemberValue, Message, SPEC,
    ShownAnswer, TITLE, URL, ensure, post_to_secret_url,
};

/// Bytes of a message: Teams takes 28 KB.
const MAX_MESSAGE: usize = 26_000;

/// Bytes of an answer.
const MAX_ANSWER: usize = 4_000;

/// Bytes of the title of a question.
const MAX_QUESTION: usize = 500;

/// Lines of an answer that are shown.
const MAX_LINES: usize = 20;

/// The hosts of connectors, which Microsoft has retired.
const RETIRED_HOSTS: [&str; 2] = ["webhook.office.com", "outlook.office.com"];

pub(in crate::domain::integration) static TEAMS: Chat = Chat {
    spec: IntegrationSpec {
        about: "A message to a channel or chat of Microsoft Teams.",
        members: &[Member { value: MemberValue::SecretUrl(check_host), ..URL }, TITLE, MAX_FIELDS],
        set_up: "In the menu of the channel choose *Workflows* and the template *Send webhook alerts to a channel*, which *Anyone* may call. Its address is `url`. Addresses at webhook.office.com belong to connectors, which Microsoft has retired.",
        limits: "One message a second. A message has at most 26,000 bytes, an answer 4,000 bytes and 20 lines: long answers are cut, then the last ones are left out. Teams accepts a message before it posts it; the workflow's run history shows whether it did.",
        source: "https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using",
        ..SPEC
    },
    server: None,
    receiver: None,
    body: |_, message| message.fit(MAX_ANSWER, card, |card| card.to_string().len() <= MAX_MESSAGE),
    request: post_to_secret_url,
    classify,
};

fn check_host(host: &str) -> Result<(), String> {
    let is_of =
        |domain: &&str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    ensure(
        !RETIRED_HOSTS.iter().any(is_of),
        "belongs to a connector, which Microsoft has retired: make a workflow in Teams and send its address",
    )
}

fn card(message: &Message, share: usize) -> Value {
    let mut body =
        vec![paragraph(&message.title, MAX_QUESTION, &json!({ "size": "Large", "weight": "Bolder" }))];
    for field in &message.fields {
        body.push(paragraph(&field.title, MAX_QUESTION, &json!({ "weight": "Bolder" })));
        body.extend(answer_text(field, share));
    }
    body.extend(message.notes().map(|note| paragraph(&note, MAX_NOTE, &json!({ "isSubtle": true }))));
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": body,
            },
        }],
    })
}

/// A link to itself, if the answer is a URL, and lines otherwise.
fn answer_text(field: &ShownAnswer, share: usize) -> Vec<Value> {
    match field.shown_link().filter(|shown| shown.contains("://") && shown.len() <= share) {
        Some(url) => {
            let open = json!({ "selectAction": { "type": "Action.OpenUrl", "url": url } });
            vec![paragraph(&url, share, &open)]
        }
        None => lines(&field.text, share).collect(),
    }
}

/// A paragraph for each line of an answer: line breaks within one are not shown.
fn lines(text: &str, max: usize) -> impl Iterator<Item = Value> {
    let text = clip(text, max, Unit::Bytes, verbatim);
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.push("…".to_owned());
    }
    let first = [paragraph(lines.first().map_or("", |line| line), max, &json!({}))];
    let rest: Vec<_> = lines.iter().skip(1).map(|line| paragraph(line, max, &json!({}))).collect();
    first.into_iter().chain(rest.into_iter().map(close))
}

/// Returns `paragraph` without space above it.
fn close(mut paragraph: Value) -> Value {
    paragraph["spacing"] = "None".into();
    paragraph
}

/// A text run shows what it has as it is: it knows no Markdown, other than a `TextBlock`.
fn paragraph(text: &str, max: usize, style: &Value) -> Value {
    let mut run = json!({ "type": "TextRun", "text": or_dash(clip(text, max, Unit::Bytes, verbatim)) });
    if let (Some(run), Some(style)) = (run.as_object_mut(), style.as_object()) {
        run.extend(style.clone());
    }
    json!({ "type": "RichTextBlock", "inlines": [run] })
}

/// A workflow that was deleted answers 404, or 400 with a name as one that was turned off does.
fn classify(answer: &HttpAnswer<'_>) -> Classification {
    let is_gone =
        answer.status == 404 || (answer.status == 400 && answer.body.contains("WorkflowTriggerIsNotEnabled"));
    classify_answer(answer, is_gone, None)
}
