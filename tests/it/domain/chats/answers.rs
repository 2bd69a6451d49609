//! What services answer by their documentation, and what becomes of the message.

use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::classify::HttpAnswer;

use super::requests::request;
use super::*;

/// An answer: of which service, its status, headers and body, and what follows.
type Row = (&'static str, u16, &'static [(&'static str, &'static str)], &'static str, &'static str);

const ROWS: [Row; 37] = [
    ("slack", 400, &[], "invalid_blocks", "permanent"),
    ("slack", 403, &[], "action_prohibited", "permanent"),
    ("slack", 404, &[], "no_service", "gone"),
    ("slack", 404, &[], "channel_not_found", "gone"),
    ("slack", 410, &[], "channel_is_archived", "gone"),
    ("slack", 429, &[("retry-after", "30")], "rate_limited", "paced 30000"),
    ("slack", 302, &[], "", "permanent"),
    (
        "discord",
        200,
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "1.25")],
        "{}",
        "delivered, holds 1250",
    ),
    ("discord", 200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "-9")], "{}", "delivered"),
    ("discord", 429, &[("retry-after", "65")], r#"{"retry_after":64.57,"global":false}"#, "paced 64570"),
    ("discord", 429, &[], r#"{"retry_after":-1e300}"#, "paced 60000"),
    ("discord", 429, &[], r#"{"retry_after":1e300}"#, "paced 3600000"),
    ("discord", 404, &[], r#"{"message":"Unknown Webhook","code":10015}"#, "gone"),
    ("discord", 400, &[], r#"{"code":50035,"message":"Invalid Form Body"}"#, "permanent"),
    ("discord", 401, &[], r#"{"code":50027,"message":"Invalid Webhook Token"}"#, "gone"),
    ("teams", 202, &[], "", "delivered"),
    ("teams", 400, &[], r#"{"error":{"code":"TriggerInputSchemaMismatch"}}"#, "permanent"),
    ("teams", 401, &[], r#"{"error":{"code":"DirectApiAuthorizationRequired"}}"#, "permanent"),
    ("teams", 404, &[], r#"{"error":{"code":"WorkflowNotFound"}}"#, "gone"),
    ("teams", 400, &[], r#"{"error":{"code":"WorkflowTriggerIsNotEnabled"}}"#, "gone"),
    ("slack", 403, &[], "invalid_token", "gone"),
    ("teams", 429, &[], "", "paced 60000"),
    ("teams", 502, &[], "", "retryable"),
    ("mattermost", 400, &[], r#"{"id":"web.incoming_webhook.invalid.app_error"}"#, "gone"),
    ("mattermost", 413, &[], r#"{"id":"api.post.too_long"}"#, "permanent"),
    ("mattermost", 503, &[("retry-after", "2")], "", "paced 2000"),
    ("google_chat", 404, &[], r#"{"error":{"code":404,"status":"NOT_FOUND"}}"#, "gone"),
    ("google_chat", 400, &[], r#"{"error":{"code":400,"status":"INVALID_ARGUMENT"}}"#, "permanent"),
    ("google_chat", 429, &[], r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#, "paced 60000"),
    ("telegram", 429, &[], r#"{"ok":false,"parameters":{"retry_after":35}}"#, "paced 35000"),
    ("telegram", 403, &[], r#"{"ok":false,"description":"Forbidden: bot was kicked"}"#, "gone"),
    ("telegram", 400, &[], r#"{"ok":false,"description":"Bad Request: chat not found"}"#, "gone"),
    ("telegram", 401, &[], r#"{"ok":false,"description":"Unauthorized"}"#, "gone"),
    ("matrix", 429, &[], r#"{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":2345}"#, "paced 2345"),
    ("matrix", 401, &[], r#"{"errcode":"M_UNKNOWN_TOKEN"}"#, "gone"),
    ("matrix", 403, &[], r#"{"errcode":"M_FORBIDDEN"}"#, "permanent"),
    ("ntfy", 507, &[], r#"{"code":50701}"#, "retryable"),
];

fn class(chat: &str, status: u16, headers: &[(&'static str, &str)], body: &str) -> String {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let answer = HttpAnswer { status, headers: &headers, body, now: at(0) };
    let classification = (request(chat).classify)(&answer);
    let class = match classification.outcome {
        Outcome::Delivered => "delivered".to_owned(),
        Outcome::Paced { wait_ms, .. } => format!("paced {wait_ms}"),
        Outcome::Retryable { .. } => "retryable".to_owned(),
        Outcome::Permanent { error } => {
            assert!(error.message.contains(body.trim()), "{}", error.message);
            "permanent".to_owned()
        }
        Outcome::Gone { .. } => "gone".to_owned(),
    };
    if classification.hold_ms > 0 { format!("{class}, holds {}", classification.hold_ms) } else { class }
}

#[test]
fn each_answer_has_its_class() {
    for (chat, status, headers, body, expected) in ROWS {
        assert_eq!(class(chat, status, headers, body), expected, "{chat} {status} {body}");
    }
}

#[test]
fn all_chats_agree_on_plain_answers() {
    for (chat, _) in CHATS {
        for (status, headers, expected) in [
            (200, &[][..], "delivered"),
            (400, &[], "permanent"),
            (413, &[], "permanent"),
            (408, &[], "retryable"),
            (410, &[], "gone"),
            (429, &[("retry-after", "7")], "paced 7000"),
            (500, &[], "retryable"),
        ] {
            assert_eq!(class(chat, status, headers, ""), expected, "{chat} {status}");
        }
        for body in ["[", "null", "[1]", r#"{"error":1,"code":"x","parameters":[],"retry_after":{}}"#] {
            assert_eq!(class(chat, 400, &[], body), "permanent", "{chat} {body}");
        }
    }
}
