//! Chats over HTTP: how often they are called, repeats, and services that send secrets back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use forms::clock::Clock;
use forms::delivery::SendLimits;
use serde_json::{Value, json};

use super::receiver::{Receiver, Reply};
use super::rig::Rig;

/// When a service was called, and when it wants to be called again, in milliseconds of the test's clock.
#[derive(Debug, Default)]
struct Calls {
    at: Vec<i64>,
    not_before: i64,
    too_early: usize,
}

/// The answer of a service that wants a second's pause, by its documentation.
fn slow_down(chat: &str) -> Reply {
    let (headers, body) = match chat {
        "slack" => ("retry-after: 1\r\n", "rate_limited"),
        "discord" => ("retry-after: 1\r\n", r#"{"message":"slow","retry_after":0.987,"global":false}"#),
        "telegram" => ("", r#"{"ok":false,"error_code":429,"parameters":{"retry_after":1}}"#),
        "matrix" => ("", r#"{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":1000}"#),
        other => panic!("{other}"),
    };
    let length = body.len();
    Reply::text(&format!("HTTP/1.1 429 Slow\r\n{headers}content-length: {length}\r\n\r\n{body}"))
}

/// The integration of `chat` at the address `origin`.
fn integration(chat: &str, origin: &str) -> Value {
    match chat {
        "slack" | "discord" => json!({"type": chat, "url": format!("{origin}/services/secretpa")}),
        "telegram" => {
            let token = "123456:secretpart-AAAAAAAAAAAAAAAAAAAAAAAA";
            json!({"type": chat, "bot_token": token, "chat_id": "-1", "server": origin})
        }
        "matrix" => {
            json!({"type": chat, "homeserver": origin, "room_id": "!a:x", "access_token": "secretpart"})
        }
        "ntfy" => json!({"type": chat, "topic": "secretpart", "server": origin}),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_service_is_called_as_often_as_it_allows_and_gets_every_message() {
    for chat in ["slack", "discord", "telegram", "matrix"] {
        let rig = Rig::over_http(SendLimits::default()).await;
        let calls = Arc::new(Mutex::new(Calls::default()));
        let (clock, recorded) = (Arc::clone(&rig.server.clock), Arc::clone(&calls));
        let service = Receiver::start(move |_| {
            let mut calls = recorded.lock().unwrap();
            let now = clock.now().millis();
            calls.too_early += usize::from(now < calls.not_before);
            calls.at.push(now);
            if calls.at.len() % 3 == 0 {
                calls.not_before = now + 1_000;
                return slow_down(chat);
            }
            Reply::Status(200)
        })
        .await;
        rig.server.integrate(&rig.form, integration(chat, &format!("http://{}", service.address))).await;
        for number in 0..20 {
            rig.submit(&format!("Ada {number}")).await;
        }
        for _ in 0..400 {
            rig.server.deliver().await;
            rig.server.clock.advance(250);
        }
        assert_eq!(rig.deliveries("status=delivered").await.len(), 20, "{chat}");
        let calls = calls.lock().unwrap();
        assert_eq!((calls.at.len(), calls.too_early), (29, 0), "{chat}");
        let shortest = calls.at.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
        let interval = match chat {
            "telegram" => 3_000,
            "discord" => 400,
            _ => 1_000,
        };
        assert!(shortest >= interval, "{chat}: {shortest}");
        let distinct: std::collections::HashSet<_> =
            service.requests().into_iter().map(|request| request.body).collect();
        assert_eq!(distinct.len(), 20, "{chat}");
    }
}

#[tokio::test]
async fn discord_is_left_alone_when_it_says_that_a_limit_is_used_up() {
    let rig = Rig::over_http(SendLimits::default()).await;
    let used_up = "HTTP/1.1 200 OK\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset-after: 1.5\r\ncontent-length: 0\r\n\r\n";
    let service = Receiver::start(move |_| Reply::text(used_up)).await;
    rig.server.integrate(&rig.form, integration("discord", &format!("http://{}", service.address))).await;
    rig.submit("Ada").await;
    rig.submit("Bea").await;
    rig.server.deliver().await;
    rig.deliver_after(1_499).await;
    assert_eq!(service.requests().len(), 1);
    rig.deliver_after(1).await;
    assert_eq!(service.requests().len(), 2);
}

#[tokio::test]
async fn matrix_recognizes_a_repeat_by_its_transaction_and_a_redelivery_is_a_message_of_its_own() {
    let rig = Rig::over_http(SendLimits::default()).await;
    let is_first = AtomicBool::new(true);
    let service = Receiver::start(move |_| match is_first.swap(false, Ordering::Relaxed) {
        true => Reply::Cut,
        false => Reply::text("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"),
    });
    let service = service.await;
    rig.server.integrate(&rig.form, integration("matrix", &format!("http://{}", service.address))).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    rig.next_attempt().await.unwrap();
    rig.redeliver(&rig.delivery().await).await.expect(200);
    rig.deliver_after(60_000).await;
    let requests = service.requests();
    let [first, repeat, redelivery] = &requests[..] else { panic!("{requests:?}") };
    let line = |head: &str| head.lines().next().unwrap().to_owned();
    assert!(line(&first.head).starts_with("PUT /_matrix/client/v3/rooms/!a:x/send/m.room.message/dlv_"));
    assert_eq!((line(&first.head), &first.body), (line(&repeat.head), &repeat.body));
    assert_eq!(first.header("authorization"), Some("Bearer secretpart"));
    // The server does not show another message of the same transaction.
    assert_ne!(line(&redelivery.head), line(&first.head));
    assert_eq!(redelivery.body, first.body);
}

#[tokio::test]
async fn a_redelivery_has_the_same_text_and_goes_to_the_address_of_now() {
    let rig = Rig::over_http(SendLimits::default()).await;
    let service =
        Receiver::start(|_| Reply::text("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")).await;
    rig.server.integrate(&rig.form, integration("telegram", &format!("http://{}", service.address))).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    let moved = json!({"chat_id": "@other", "message_thread_id": "7", "title": "Another"});
    rig.change("telegram", moved).await;
    rig.redeliver(&rig.delivery().await).await.expect(200);
    rig.deliver_after(60_000).await;
    let bodies: Vec<Value> =
        service.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let [first, second] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!((&first["chat_id"], &first["message_thread_id"]), (&json!("-1"), &Value::Null));
    assert_eq!((&second["chat_id"], &second["message_thread_id"]), (&json!("@other"), &json!(7)));
    assert_eq!(first["text"], second["text"]);
}

#[tokio::test]
async fn the_secrets_of_a_webhook_are_hidden_in_every_form_in_which_it_sends_them_back() {
    const SIGNING: &str = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const HEADER: &str = r#"a "b/c" <d>&e"#;
    let rig = Rig::over_http(SendLimits::default()).await;
    let json = Value::from(HEADER).to_string();
    let mut echoes = vec![
        format!("whsec_{SIGNING}"),
        SIGNING.to_owned(),
        HEADER.to_owned(),
        json.trim_matches('"').to_owned(),
        json.trim_matches('"').replace('/', r"\/"),
        json.trim_matches('"').replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026"),
        form_urlencoded::byte_serialize(HEADER.as_bytes()).collect(),
        percent_encoding::utf8_percent_encode(HEADER, percent_encoding::NON_ALPHANUMERIC).to_string(),
        percent_encoding::utf8_percent_encode(HEADER, percent_encoding::NON_ALPHANUMERIC)
            .to_string()
            .to_lowercase(),
    ];
    for secret in [HEADER, SIGNING, "secretpart"] {
        echoes.push(STANDARD.encode(secret));
        echoes.push(URL_SAFE_NO_PAD.encode(secret));
    }
    let body = format!("oops {}", echoes.join(" | "));
    let answer = format!("HTTP/1.1 500 Oops\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let service = Receiver::start(move |_| Reply::text(&answer)).await;
    let webhook = json!({
        "type": "webhook", "url": format!("http://{}/hook", service.address), "secret": format!("whsec_{SIGNING}"),
        "bearer_token": "secretpart", "headers": {"X-Key": {"value": HEADER, "env": "KEY"}},
    });
    rig.server.integrate(&rig.form, webhook).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    let attempts = rig.attempts(&rig.delivery().await).await;
    let response = attempts[0]["response"].as_str().unwrap();
    for echo in echoes {
        assert!(!response.contains(&echo), "{echo} is in {response}");
    }
    assert!(response.starts_with("oops (secret) | (secret)"), "{response}");
}

#[tokio::test]
async fn a_service_that_sends_a_secret_back_does_not_make_it_visible() {
    for chat in ["slack", "telegram", "matrix", "ntfy"] {
        let rig = Rig::over_http(SendLimits::default()).await;
        let service = Receiver::start(|request| {
            let body = format!("{}{}", request.head, String::from_utf8_lossy(&request.body));
            let body = format!("{body}{}", body.replace('/', "\\/"));
            let length = body.len();
            Reply::text(&format!("HTTP/1.1 400 Bad\r\ncontent-length: {length}\r\n\r\n{body}"))
        })
        .await;
        rig.server.integrate(&rig.form, integration(chat, &format!("http://{}", service.address))).await;
        rig.submit("Ada").await;
        rig.server.deliver().await;
        let delivery = rig.expect_failure("dead", "refused").await;
        let shown = format!("{delivery} {:?}", rig.attempts(&delivery).await);
        assert!(!shown.contains("secretpa") && shown.contains("the service refused"), "{chat}: {shown}");
    }
}
