//! The requests of chats: addresses, headers, and no secret where it could be seen.

use forms::domain::integration::outbound::{HttpRequest, Outbound};

use super::*;
use crate::harness::VAULT;

/// A request of `chat` with an empty message.
pub(super) fn request(chat: &str) -> HttpRequest {
    let (_, members) = CHATS.into_iter().find(|(name, _)| *name == chat).unwrap();
    let (form, _, integration) = form(&owned(&["Name"]), &format!(r#"{{"type":"{chat}",{members}}}"#));
    let Outbound::Http(request) =
        integration.plan(attempt(&integration, 1, b"{}", at(0)), &form, &VAULT).unwrap()
    else {
        panic!("no request")
    };
    request
}

#[test]
fn each_chat_is_called_as_its_service_documents() {
    let delivery = "dlv_";
    for (chat, method, start) in [
        ("slack", "POST", "https://hooks.slack.com/services/T/B/secretpart"),
        ("discord", "POST", "https://discord.com/api/webhooks/1/secretpart?wait=true&thread_id=7"),
        ("teams", "POST", "https://prod-1.westeurope.logic.azure.com/workflows/1?sig=secretpart"),
        ("mattermost", "POST", "https://chat.example.com/hooks/secretpart"),
        ("google_chat", "POST", "https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=secretpart"),
        (
            "telegram",
            "POST",
            "https://api.telegram.org/bot123456:secretpart-AAAAAAAAAAAAAAAAAAAAAAAA/sendMessage",
        ),
        (
            "matrix",
            "PUT",
            "https://matrix.example.org/_matrix/client/v3/rooms/!room%2Fa:example.org/send/m.room.message/dlv_",
        ),
        ("ntfy", "POST", "https://ntfy.example.com/"),
    ] {
        let request = request(chat);
        let url = request.url.as_str();
        assert!(request.method == method && url.starts_with(start), "{} {url}", request.method);
        assert!(url == start || (chat == "matrix" && start.ends_with(delivery)), "{url}");
        let mut names: Vec<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let has_token = matches!(chat, "matrix" | "ntfy");
        assert_eq!(
            names,
            if has_token { vec!["Authorization", "Content-Type"] } else { vec!["Content-Type"] }
        );
        assert!(request.secrets.iter().any(|secret| secret.reveal().contains("secretpart")), "{chat}");
        assert!(!format!("{request:?}").contains("secretpart"), "{request:?}");
    }
    let body: Value = serde_json::from_slice(&request("ntfy").body).unwrap();
    assert_eq!(body["topic"], "secretpart");
}

#[test]
fn no_secret_of_a_chat_is_shown_or_stored_as_text() {
    for (chat, members) in CHATS {
        let (_, _, integration) = form(&owned(&["Name"]), &format!(r#"{{"type":"{chat}",{members}}}"#));
        let shown = json::Value::Object(integration.members()).to_string();
        let stored = serde_json::to_string(&integration).unwrap();
        for text in
            [&shown, &stored, &format!("{integration:?}"), &integration.target(), &integration.destination()]
        {
            assert!(!text.contains("secretpart"), "{text}");
        }
        assert!(shown.contains(r#""set":true"#), "{shown}");
        assert!(integration.target().contains('.'), "{}", integration.target());
    }
}

fn create(text: &str) -> Result<Integration, Vec<Violation>> {
    let body = json::parse(text).unwrap();
    Integration::create(&body, &[], &[], definition_context(at(0))).map(|(made, _)| made)
}

#[test]
fn what_a_service_would_never_take_is_refused_with_its_place() {
    for (text, expected) in [
        (r#"{"type":"slack"}"#, &[("missing_field", "/url")][..]),
        (r#"{"type":"slack","url":"http://127.0.0.1/x"}"#, &[("address_not_allowed", "/url")]),
        (r#"{"type":"teams","url":"https://x.webhook.office.com/webhookb2/1"}"#, &[("invalid_url", "/url")]),
        (r#"{"type":"teams","url":"https://notwebhook.office.com.example/1"}"#, &[]),
        (
            r#"{"type":"discord","url":"https://discord.com/x","thread_id":"a&b"}"#,
            &[("invalid_range", "/thread_id")],
        ),
        (
            r#"{"type":"discord","url":"https://discord.com/x","max_fields":41}"#,
            &[("invalid_range", "/max_fields")],
        ),
        (
            r#"{"type":"discord","url":"https://discord.com/x","title":"{{"}"#,
            &[("invalid_template", "/title")],
        ),
        (
            r#"{"type":"discord","url":"https://discord.com/x","title":"{{ form.titel }} {{ answers.q9 }} {{ form.title }}"}"#,
            &[("invalid_template", "/title"), ("invalid_template", "/title")],
        ),
        (
            r#"{"type":"email","to_question":"q1","subject":"{{ form.title }}","body":"{% for f in fields %}{% endfor %}"}"#,
            &[("unknown_reference", "/to_question"), ("invalid_template", "/body")],
        ),
        (
            r#"{"type":"telegram","bot_token":"secret","chat_id":"general"}"#,
            &[("invalid_range", "/chat_id"), ("invalid_range", "/bot_token")],
        ),
        (
            r##"{"type":"matrix","homeserver":"matrix.org","room_id":"#room:x.org","access_token":"a b"}"##,
            &[
                ("invalid_url", "/homeserver"),
                ("invalid_range", "/room_id"),
                ("invalid_range", "/access_token"),
            ],
        ),
        (
            r#"{"type":"ntfy","topic":"a/b","priority":6,"tags":["a","a","b,c"]}"#,
            &[
                ("invalid_range", "/priority"),
                ("duplicate_option", "/tags/1"),
                ("invalid_range", "/tags/2"),
                ("invalid_range", "/topic"),
            ],
        ),
    ] {
        let violations = create(text).err().unwrap_or_default();
        assert_eq!(pointers(&violations), expected, "{text}");
        assert!(violations.iter().all(|found| !found.message.contains("secret\"")), "{violations:?}");
    }
}

#[test]
fn secrets_do_not_follow_to_another_server() {
    let ntfy = r#"{"type":"ntfy","topic":"t","access_token":"a"}"#;
    let with_server = r#"{"type":"ntfy","server":"https://n.example","topic":"t"}"#;
    let matrix =
        r#"{"type":"matrix","homeserver":"https://m.example","room_id":"!a:m.example","access_token":"a"}"#;
    for (text, patch, secrets) in [
        (ntfy, r#"{"server":"https://evil.example"}"#, &["/topic", "/access_token"][..]),
        (with_server, r#"{"server":null}"#, &["/topic"]),
        (matrix, r#"{"homeserver":"https://evil.example"}"#, &["/access_token"]),
        (matrix, r#"{"homeserver":"https://m.example/sub"}"#, &[]),
    ] {
        let updated =
            create(text).unwrap().update(&json::parse(patch).unwrap(), &[], &[], definition_context(at(1)));
        let expected: Vec<_> = secrets.iter().map(|pointer| ("secret_required", *pointer)).collect();
        assert_eq!(pointers(&updated.err().unwrap_or_default()), expected, "{text}");
    }
}
