//! Integrations of a form: creating, changing, testing and deleting them, and what they never show.

use forms::domain::integration::webhook::signature::sign;

use super::logs::LogCapture;
use crate::harness::prelude::*;

const URL: &str = "https://example.com/hook";
const SECRET: &str = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5";

async fn with_path() -> (Server, String, String) {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
    (server, form, path)
}

/// A published form, and the path of its integrations.
async fn form(server: &Server) -> (String, String) {
    let form = server.published_form(questions()).await;
    (form.clone(), format!("/api/v1/forms/{form}/integrations"))
}

#[tokio::test]
async fn a_generated_secret_is_shown_in_the_response_that_made_it_and_never_again() {
    let (server, _, path) = with_path().await;
    let created = server.post(&path, webhook()).send().await;
    let body = created.expect(201);
    let secret = body["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() > 38, "{secret}");
    assert_eq!(body["name"], "webhook");
    assert_eq!(body["health"], json!({"state": "ok", "pending": 0, "dead": 0}));
    let location = created.header("location").unwrap();
    assert_eq!(location, format!("{path}/{}", body["id"].as_str().unwrap()));
    let shown = server.get(location).send().await;
    assert_eq!(shown.expect(200)["secret"], json!({"set": true}));
    assert_eq!(server.get(format!("{path}/webhook")).send().await.text(), shown.text());
}

#[tokio::test]
async fn what_was_shown_can_be_sent_back_and_changes_nothing() {
    let (server, form, path) = with_path().await;
    let mut full = json!({
        "type": "webhook", "name": "crm", "url": "https://example.com:8443/hook?x=1", "enabled": false,
        "payload": "thin", "secret": {"value": SECRET, "env": "HOOK"},
        "events": ["submission.completed", "form.published"], "when": {"q3": {"gte": 4.0}},
        "fields": {"except": ["q2"]}, "retry": ["5s", "1m 30s", "24h"],
        "headers": {"X-Source": "forms", "X-Key": {"value": "0123456789abcdef", "env": "CRM_KEY"}},
        "bearer_token": {"value": "abcdefghijklmnop", "env": "CRM_TOKEN"},
    });
    let sent = server.post(&path, full.clone()).send().await;
    sent.expect(201);
    assert!(sent.text().contains(r#""gte":4.0"#), "{}", sent.text());
    server.integrate(&form, json!({"type": "csv_file", "path": "visits.csv"})).await;
    let before = server.get(format!("/api/v1/forms/{form}")).send().await;
    let list = before.expect(200)["integrations"].clone();
    full["secret"] = json!({"set": true, "env": "HOOK"});
    full["bearer_token"] = json!({"set": true, "env": "CRM_TOKEN"});
    full["headers"]["X-Key"] = json!({"set": true, "env": "CRM_KEY"});
    full["retry"][2] = json!("1day");
    assert_eq!(list[0], full);
    server.clock.set("2026-11-20T10:00:00Z");
    let patched = server.patch(format!("/api/v1/forms/{form}"), json!({"integrations": list})).send().await;
    assert_eq!((patched.text(), patched.header("etag")), (before.text(), before.header("etag")));
    let secret = json!({"secret": {"value": SECRET}});
    for (name, shown) in [("crm", &list[0]), ("csv_file", &list[1]), ("crm", &secret)] {
        let one = format!("{path}/{name}");
        let before = server.get(&one).send().await;
        let after = server.patch(&one, shown.clone()).send().await;
        assert_eq!(after.status, 200, "{name}: {}", after.text());
        assert_eq!((after.text(), after.header("etag")), (before.text(), before.header("etag")), "{name}");
    }
}

#[tokio::test]
async fn a_definition_is_refused_with_all_its_errors() {
    let (server, form, path) = with_path().await;
    server.integrate(&form, webhook()).await;
    let body = json!({"type": "webhook", "url": URL, "name": "A b", "payload": "some", "colour": 1});
    server.post(&path, body.clone()).send().await.expect_errors(&[
        ("/name", "invalid_slug"),
        ("/payload", "not_an_option"),
        ("/colour", "unknown_field"),
    ]);
    // In the list of a form, the pointers begin at its item.
    let list = json!({"title": "Visit", "questions": questions(), "integrations": [webhook(), body]});
    server.post("/api/v1/forms", list).send().await.expect_errors(&[
        ("/integrations/1/name", "invalid_slug"),
        ("/integrations/1/payload", "not_an_option"),
        ("/integrations/1/colour", "unknown_field"),
    ]);
    let taken = json!({"type": "webhook", "url": URL, "name": "webhook"});
    server.post(&path, taken).send().await.expect_errors(&[("/name", "duplicate_name")]);
    let moved = json!({"url": "https://example.org/hook"});
    let moved = server.patch(format!("{path}/webhook"), moved).send().await;
    moved.expect_errors(&[("/secret", "secret_required")]);
    for number in 2..=20 {
        assert_eq!(server.integrate(&form, webhook()).await["name"], format!("webhook-{number}"));
    }
    server.post(&path, webhook()).send().await.expect_errors(&[("", "too_many")]);
}

#[tokio::test]
async fn a_form_is_created_and_changed_with_its_integrations() {
    let server = Server::start().await;
    let list = json!([webhook(), {"type": "csv_file", "path": "visits.csv"}]);
    let definition = json!({"title": "Visit", "questions": questions(), "integrations": list});
    let dry_run = server.post("/api/v1/forms?dry_run=true", definition.clone()).send().await.expect(200);
    assert_eq!(dry_run["integrations"][0]["secret"], json!({"set": true}));
    let create = || server.post("/api/v1/forms", definition.clone()).header("idempotency-key", "one");
    let created = create().send().await.expect(201);
    let secret = created["integrations"][0]["secret"].as_str().unwrap();
    let replayed = create().send().await;
    assert!(!replayed.text().contains(secret), "{}", replayed.text());
    assert_eq!(replayed.expect(201)["integrations"][0]["secret"], json!({"set": true}));
    assert_eq!(replayed.json()["id"], created["id"]);
    let form = format!("/api/v1/forms/{}", created["id"].as_str().unwrap());
    let ids = async || {
        let found = server.read(format!("{form}/integrations")).await;
        let list = found["integrations"].as_array().unwrap().clone();
        list.iter().map(|one| (one["name"].clone(), one["id"].clone())).collect::<Vec<_>>()
    };
    let before = ids().await;
    let list = json!([
        {"type": "csv_file", "path": "other.csv", "name": "csv_file"}, {"type": "webhook", "url": URL, "name": "new"},
        // Another type under the same name is another integration.
        {"type": "csv_file", "path": "third.csv", "name": "webhook"},
    ]);
    let tried = server.patch(format!("{form}?dry_run=true"), json!({"integrations": list})).send().await;
    assert_eq!(tried.expect(200)["integrations"][1]["secret"], json!({"set": true}));
    assert_eq!(ids().await, before);
    let changed = server.patch(&form, json!({"integrations": list})).send().await.expect(200);
    assert!(changed["integrations"][1]["secret"].as_str().unwrap().starts_with("whsec_"));
    let after = ids().await;
    assert_eq!((after.len(), &after[0], &after[1].0), (3, &before[1], &json!("new")));
    assert!(after[2].0 == before[0].0 && after[2].1 != before[0].1, "{after:?}");
    let hidden = server.key_with(&[Scope::Submit]).await;
    assert!(server.get(&form).key(&hidden).send().await.expect(200).get("integrations").is_none());
    let shown = server.key_with(&[Scope::Read]).await;
    let shown = server.get(&form).key(&shown).send().await.expect(200);
    assert_eq!(shown["integrations"].as_array().unwrap().len(), 3);
    let emptied = server.patch(&form, json!({"integrations": null})).send().await.expect(200);
    assert!(emptied.get("integrations").is_none());
}

#[tokio::test]
async fn no_secret_is_in_any_response_or_log_line() {
    let server = Server::start().await;
    let (lines, _guard) = LogCapture::start();
    let (form, path) = form(&server).await;
    let canaries = [SECRET, "canary-token-0123456789", "canary-header-0123456789"];
    let body = json!({
        "type": "webhook", "url": "https://example.com/canary-path", "secret": canaries[0],
        "bearer_token": canaries[1], "headers": {"X-Key": {"value": canaries[2]}},
    });
    let created = server.post(&path, body.clone()).header("idempotency-key", "one").send().await;
    let mut shown = vec![created];
    shown.push(server.post(&path, body).header("idempotency-key", "one").send().await);
    server.submit(&form, json!({"q1": "canary-answer"})).await;
    server.sender.fail_with(Some(500));
    server.deliver().await;
    let deliveries = server.get("/api/v1/deliveries").send().await;
    let delivery = deliveries.expect(200)["deliveries"][0]["id"].as_str().unwrap().to_owned();
    shown.push(deliveries);
    let one = format!("{path}/webhook");
    for get in [
        format!("/api/v1/forms/{form}"),
        format!("/api/v1/forms/{form}/versions"),
        path.clone(),
        one.clone(),
        format!("/api/v1/deliveries/{delivery}"),
        format!("/api/v1/deliveries/{delivery}/attempts"),
        format!("/api/v1/deliveries/{delivery}/event"),
        "/api/v1/deliveries/stats".to_owned(),
    ] {
        shown.push(server.get(get).send().await);
    }
    shown.push(server.patch(&one, json!({"payload": "thin"})).send().await);
    shown.push(server.patch(format!("/api/v1/forms/{form}"), json!({"title": "Other"})).send().await);
    shown.push(server.call(Method::POST, format!("{one}/test")).send().await);
    // What is refused is not repeated either.
    for secret in ["whsec_canary", "canary\u{7}"] {
        shown.push(server.patch(&one, json!({"secret": secret})).send().await);
        shown.push(server.patch(&one, json!({"bearer_token": secret})).send().await);
        shown.push(
            server.patch(&one, json!({"headers": {"X-A": {"value": format!("{secret}\r\n")}}})).send().await,
        );
    }
    shown.push(server.patch(&one, json!({"url": "https://whsec_canary@example.com"})).send().await);
    for response in &shown {
        let text = response.text();
        let is_hidden = canaries
            .iter()
            .chain(&["whsec_", "canary-token", "canary-header"])
            .all(|secret| !text.contains(secret));
        assert!(is_hidden || response.status == 422, "{text}");
        assert!(!text.contains("whsec_canary") && !text.contains(canaries[0]), "{text}");
    }
    let sent = server.sender.take();
    assert_eq!(header(&sent[0], "authorization"), Some(&*format!("Bearer {}", canaries[1])));
    assert_eq!(header(&sent[0], "x-key"), Some(canaries[2]));
    assert!(!lines.text().contains("canary"), "{}", lines.text());
}

#[tokio::test]
async fn a_test_event_is_sent_at_once_and_counts_for_nothing() {
    let (server, _, path) = with_path().await;
    server.post(&path, json!({"type": "webhook", "url": URL, "enabled": false})).send().await.expect(201);
    let test = || server.call(Method::POST, format!("{path}/webhook/test"));
    let attempt = test().send().await.expect(200);
    assert_eq!((&attempt["trigger"], &attempt["result"]), (&json!("test"), &json!("delivered")));
    assert_eq!((&attempt["http_status"], &attempt["duration_ms"]), (&json!(200), &json!(12)));
    let sent = server.sender.take();
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!((sent.len(), sent[0].url.as_str(), &body["type"]), (1, URL, &json!("integration.test")));
    assert!(header(&sent[0], "webhook-signature").unwrap().starts_with("v1,"));
    server.sender.fail_with(Some(404));
    assert_eq!(test().send().await.expect(200)["error"]["http_status"], 404);
    assert_eq!(server.sender.take().len(), 1);
    let shown = server.read(format!("{path}/webhook")).await;
    assert_eq!(shown["health"], json!({"state": "ok", "pending": 0, "dead": 0}));
    assert_eq!(server.read("/api/v1/deliveries").await["deliveries"], json!([]));
    let body = server.post(format!("{path}/webhook/test"), json!({"event": 1})).send().await;
    assert_eq!(body.code(), "validation_failed");
}

#[tokio::test]
async fn a_rotated_secret_is_shown_once_and_the_old_one_signs_for_a_while() {
    let (server, form, path) = with_path().await;
    let created = server.integrate(&form, webhook()).await;
    let rotate = || server.call(Method::POST, format!("{path}/webhook/rotate-secret"));
    let rotated = rotate().send().await.expect(200);
    assert_ne!(rotated["secret"], created["secret"]);
    assert_eq!(rotated["previous_valid_until"], "2026-11-21T09:00:00.000Z");
    let check_signatures = async |secrets: &[&Value]| {
        server.call(Method::POST, format!("{path}/webhook/test")).send().await.expect(200);
        let sent = server.sender.take().remove(0);
        let [id, at] = ["webhook-id", "webhook-timestamp"].map(|name| header(&sent, name).unwrap());
        let sign =
            |secret: &&Value| sign(secret.as_str().unwrap(), id, at.parse().unwrap(), &sent.body).unwrap();
        let expected: Vec<_> = secrets.iter().map(sign).collect();
        assert_eq!(header(&sent, "webhook-signature").unwrap(), expected.join(" "));
    };
    check_signatures(&[&rotated["secret"], &created["secret"]]).await;
    let short = rotate().json(json!({"grace": "1h"})).send().await.expect(200);
    assert_eq!(short["previous_valid_until"], "2026-11-20T10:00:00.000Z");
    check_signatures(&[&short["secret"], &rotated["secret"], &created["secret"]]).await;
    // The shorter grace is that of all earlier secrets.
    server.clock.set("2026-11-20T11:00:00Z");
    check_signatures(&[&short["secret"]]).await;
    for grace in [json!("31 days"), json!("soon"), json!(5)] {
        let refused = rotate().json(json!({"grace": grace})).send().await.expect(422);
        assert_eq!(refused["errors"][0]["pointer"], "/grace");
    }
    server.integrate(&form, json!({"type": "csv_file", "path": "visits.csv"})).await;
    let file = server.call(Method::POST, format!("{path}/csv_file/rotate-secret")).send().await;
    assert_eq!(file.code(), "validation_failed");
}

#[tokio::test]
async fn enabling_ends_a_pause_by_the_server_and_revives_what_died() {
    let (server, form, path) = with_path().await;
    server.integrate(&form, webhook()).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    server.sender.fail_with(Some(410));
    server.deliver().await;
    let one = format!("{path}/webhook");
    let health = server.read(&one).await["health"].clone();
    assert_eq!((&health["state"], &health["dead"]), (&json!("paused"), &json!(1)));
    assert!(health["reason"].is_string() && health["failing_since"].is_string(), "{health}");
    server.sender.fail_with(None);
    server.submit(&form, json!({"q1": "Bob"})).await;
    server.deliver().await;
    assert_eq!(server.sender.take().len(), 1);
    let before = server.get(&one).send().await.header("etag").unwrap().to_owned();
    let enabled = server.patch(&one, json!({"enabled": true})).send().await;
    assert_eq!(enabled.header("etag"), Some(&*before));
    let health = async || server.read(&one).await["health"].clone();
    assert_eq!(health().await["state"], "ok");
    // What died is revived in the background.
    while health().await["dead"] != 0 {
        tokio::task::yield_now().await;
    }
    server.deliver().await;
    assert_eq!(server.sender.take().len(), 2);
    let health = health().await;
    assert_eq!((&health["state"], &health["pending"]), (&json!("ok"), &json!(0)), "{health}");
}

#[tokio::test]
async fn every_change_is_logged_once_without_its_address_or_secrets() {
    let (server, form, path) = with_path().await;
    let (lines, _guard) = LogCapture::start();
    for _ in 0..2 {
        server.post(&path, webhook()).header("idempotency-key", "one").send().await.expect(201);
    }
    for _ in 0..2 {
        server.patch(format!("{path}/webhook"), json!({"payload": "thin"})).send().await.expect(200);
    }
    let list = json!({"integrations": [{"type": "csv_file", "path": "visits.csv"}]});
    server.patch(format!("/api/v1/forms/{form}"), list).send().await.expect(200);
    let text = lines.text();
    let logged: Vec<_> = text.lines().filter(|line| line.contains("an integration was")).collect();
    let by = format!("key_{}", &server.key[3..11]);
    let expected =
        [("created", "webhook"), ("changed", "webhook"), ("created", "csv_file"), ("deleted", "webhook")];
    assert_eq!(logged.len(), expected.len(), "{logged:#?}");
    for (line, (change, name)) in logged.iter().zip(expected) {
        for part in [&format!("an integration was {change}"), name, &by, &form, "INFO", "int_"] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    assert!(!text.contains("example.com") && !text.contains("whsec_"), "{text}");
}
