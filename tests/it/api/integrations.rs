//! Integrations of a form: creating, changing, testing and deleting them, and what they never show.

use axum::http::Method;
use forms::domain::workspace::Scope;
use serde_json::{Value, json};

use super::logs::LogCapture;
use crate::harness::{Server, TestResponse, header, questions};

const URL: &str = "https://example.com/hook";
const SECRET: &str = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5";

fn webhook() -> Value {
    json!({"type": "webhook", "url": URL})
}

/// A published form, and the path of its integrations.
async fn form(server: &Server) -> (String, String) {
    let form = server.published_form(questions()).await;
    (form.clone(), format!("/api/v1/forms/{form}/integrations"))
}

/// The pointers and codes of the errors of a refused request.
fn errors(response: &TestResponse) -> Vec<(String, String)> {
    let body = response.expect(422);
    let errors = body["errors"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    errors.map(|error| (text(&error["pointer"]), text(&error["code"]))).collect()
}

#[tokio::test]
async fn a_generated_secret_is_shown_in_the_response_that_made_it_and_never_again() {
    let server = Server::start().await;
    let (_, path) = form(&server).await;
    let create = || server.post(&path, webhook()).header("idempotency-key", "one");
    let created = create().send().await;
    let body = created.expect(201);
    assert_eq!(
        created.fields(),
        [
            "id",
            "name",
            "type",
            "enabled",
            "events",
            "url",
            "secret",
            "payload",
            "health",
            "created_at",
            "updated_at"
        ]
    );
    let secret = body["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() > 38, "{secret}");
    assert_eq!(body["name"], "webhook");
    assert_eq!(body["health"], json!({"state": "ok", "pending": 0, "dead": 0}));
    let location = created.header("location").unwrap();
    assert_eq!(location, format!("{path}/{}", body["id"].as_str().unwrap()));
    let shown = server.get(location).send().await;
    assert_eq!(shown.expect(200)["secret"], json!({"set": true}));
    assert_eq!(server.get(format!("{path}/webhook")).send().await.text(), shown.text());
    let replayed = create().send().await;
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    assert_eq!(replayed.header("location"), Some(location));
    assert_eq!((replayed.status.as_u16(), replayed.text()), (201, shown.text()));
    // Whatever has become of it, and with no second integration.
    assert_eq!(server.call(Method::DELETE, location).send().await.status, 204);
    assert_eq!(create().send().await.text(), shown.text());
    assert_eq!(server.get(&path).send().await.expect(200), json!({"integrations": []}));
    let other =
        server.post(&path, json!({"type": "csv_file", "path": "a.csv"})).header("idempotency-key", "one");
    assert_eq!(other.send().await.code(), "idempotency_key_reused");
}

#[tokio::test]
async fn concurrent_requests_with_one_idempotency_key_create_one_integration() {
    let server = Server::start().await;
    let (_, path) = form(&server).await;
    let create = || server.post(&path, webhook()).header("idempotency-key", "one").send();
    let responses = tokio::join!(create(), create(), create());
    let responses = [responses.0, responses.1, responses.2];
    let replays =
        responses.iter().filter(|response| response.header("idempotency-replayed").is_some()).count();
    assert_eq!(replays, 2);
    let ids: Vec<_> = responses.iter().map(|response| response.expect(201)["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test]
async fn what_was_shown_can_be_sent_back_and_changes_nothing() {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
    let full = json!({
        "type": "webhook", "name": "crm", "url": URL, "enabled": false, "payload": "thin", "secret": SECRET,
        "events": ["submission.completed", "form.published"], "when": {"q3": {"gte": 4}},
        "fields": {"except": ["q2"]}, "retry": ["5s", "1m 30s"],
        "headers": {"X-Source": "forms", "X-Key": {"value": "0123456789abcdef", "env": "CRM_KEY"}},
        "bearer_token": {"value": "abcdefghijklmnop", "env": "CRM_TOKEN"},
    });
    server.integrate(&form, full).await;
    server.integrate(&form, json!({"type": "csv_file", "path": "visits.csv"})).await;
    let before = server.get(format!("/api/v1/forms/{form}")).send().await;
    let list = before.expect(200)["integrations"].clone();
    assert_eq!(list[0]["bearer_token"], json!({"set": true, "env": "CRM_TOKEN"}));
    assert_eq!(list[0]["headers"]["X-Source"], "forms");
    assert!(list[0].get("id").is_none() && list[0].get("health").is_none());
    server.clock.set("2026-11-20T10:00:00Z");
    let patched = server.patch(format!("/api/v1/forms/{form}"), json!({"integrations": list})).send().await;
    assert_eq!((patched.text(), patched.header("etag")), (before.text(), before.header("etag")));
    for (name, shown) in [("crm", &list[0]), ("csv_file", &list[1])] {
        let one = format!("{path}/{}", shown["name"].as_str().unwrap());
        let before = server.get(&one).send().await;
        let after = server.patch(&one, shown.clone()).send().await;
        assert_eq!(after.status, 200, "{name}: {}", after.text());
        assert_eq!((after.text(), after.header("etag")), (before.text(), before.header("etag")), "{name}");
    }
}

#[tokio::test]
async fn a_change_moves_the_revision_of_the_form_and_respects_if_match() {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
    let etag = async || {
        let response = server.get(format!("/api/v1/forms/{form}")).send().await;
        response.header("etag").unwrap().to_owned()
    };
    assert_eq!(etag().await, "\"r2\"");
    server.integrate(&form, webhook()).await;
    assert_eq!(etag().await, "\"r3\"");
    let one = format!("{path}/webhook");
    server.clock.set("2026-11-20T10:00:00Z");
    let patched = server.patch(&one, json!({"payload": "thin"})).header("if-match", "\"r3\"").send().await;
    assert_eq!(patched.expect(200)["updated_at"], "2026-11-20T10:00:00.000Z");
    assert_eq!(patched.header("etag"), Some("\"r4\""));
    assert_eq!(server.get(&one).send().await.header("etag"), Some("\"r4\""));
    for call in [server.patch(&one, json!({"payload": "full"})), server.call(Method::DELETE, &one)] {
        assert_eq!(call.header("if-match", "\"r3\"").send().await.code(), "version_mismatch");
    }
    server.patch(&one, json!({"payload": "thin"})).send().await.expect(200);
    assert_eq!(etag().await, "\"r4\"");
    server.call(Method::POST, format!("{one}/rotate-secret")).send().await.expect(200);
    assert_eq!(etag().await, "\"r5\"");
    for call in [
        server.patch(format!("{path}/other"), json!({})),
        server.call(Method::DELETE, format!("{path}/other")),
    ] {
        assert_eq!(call.header("if-match", "\"r3\"").send().await.code(), "integration_not_found");
    }
    let deleted = server.call(Method::DELETE, &one).header("if-match", "\"r5\"").send().await;
    assert_eq!((deleted.status.as_u16(), deleted.text()), (204, ""));
    assert_eq!(etag().await, "\"r6\"");
    assert_eq!(server.get(&one).send().await.code(), "integration_not_found");
}

#[tokio::test]
async fn a_definition_is_refused_with_all_its_errors() {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
    server.integrate(&form, webhook()).await;
    let cases = [
        (json!({"type": "fax", "url": URL}), vec![("/type", "unknown_integration_type")]),
        (json!({"type": "webhook"}), vec![("/url", "missing_field")]),
        (json!({"type": "webhook", "url": "http://127.0.0.1/"}), vec![("/url", "address_not_allowed")]),
        (json!({"type": "webhook", "url": "https://10.0.0.1/"}), vec![("/url", "address_not_allowed")]),
        (json!({"type": "webhook", "url": URL, "name": "webhook"}), vec![("/name", "duplicate_name")]),
        (json!({"type": "webhook", "url": URL, "when": {"q9": 1}}), vec![("/when/q9", "unknown_reference")]),
        (json!({"type": "webhook", "url": URL, "colour": 1}), vec![("/colour", "unknown_field")]),
        (
            json!({"type": "webhook", "url": URL, "name": "A b", "payload": "some"}),
            vec![("/name", "invalid_slug"), ("/payload", "not_an_option")],
        ),
    ];
    for (body, expected) in cases {
        let mut found = errors(&server.post(&path, body.clone()).send().await);
        found.sort();
        let expected: Vec<_> =
            expected.into_iter().map(|(at, code)| (at.to_owned(), code.to_owned())).collect();
        assert_eq!(found, expected, "{body}");
        // In the list of a form, the pointers begin at its item.
        let first = json!({"type": "webhook", "name": "webhook", "url": URL});
        let list = json!({"title": "Visit", "questions": questions(), "integrations": [first, body]});
        let found = errors(&server.post("/api/v1/forms", list).send().await);
        assert!(found.iter().all(|(at, _)| at.starts_with("/integrations/1/")), "{found:?}");
    }
    let moved = json!({"url": "https://example.org/hook"});
    let found = errors(&server.patch(format!("{path}/webhook"), moved).send().await);
    assert_eq!(found, [("/secret".to_owned(), "secret_required".to_owned())]);
    for _ in 1..20 {
        server.integrate(&form, webhook()).await;
    }
    let names = server.get(&path).send().await.expect(200);
    assert_eq!(names["integrations"][19]["name"], "webhook-20");
    let beyond = errors(&server.post(&path, webhook()).send().await);
    assert_eq!(beyond, [(String::new(), "too_many".to_owned())]);
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
        let found = server.get(format!("{form}/integrations")).send().await.expect(200);
        let list = found["integrations"].as_array().unwrap().clone();
        list.iter().map(|one| (one["name"].clone(), one["id"].clone())).collect::<Vec<_>>()
    };
    let before = ids().await;
    let list = json!([{"type": "csv_file", "path": "other.csv", "name": "csv_file"}, {"type": "webhook", "url": URL, "name": "new"}]);
    let tried = server.patch(format!("{form}?dry_run=true"), json!({"integrations": list})).send().await;
    assert_eq!(tried.expect(200)["integrations"][1]["secret"], json!({"set": true}));
    assert_eq!(ids().await, before);
    let changed = server.patch(&form, json!({"integrations": list})).send().await.expect(200);
    assert!(changed["integrations"][1]["secret"].as_str().unwrap().starts_with("whsec_"));
    let after = ids().await;
    assert_eq!((after.len(), &after[0]), (2, &before[1]));
    assert_eq!(after[1].0, "new");
    let hidden = server.key_with(&[Scope::Submit]).await;
    assert!(server.get(&form).key(&hidden).send().await.expect(200).get("integrations").is_none());
    let shown = server.key_with(&[Scope::Read]).await;
    assert_eq!(
        server.get(&form).key(&shown).send().await.expect(200)["integrations"].as_array().unwrap().len(),
        2
    );
    let emptied = server.patch(&form, json!({"integrations": null})).send().await.expect(200);
    assert!(emptied.get("integrations").is_none());
    let removed = json!({"questions": [{"type": "short_text", "title": "Name?"}]});
    let when = json!({"integrations": [{"type": "webhook", "url": URL, "when": {"q3": 5}}]});
    server.patch(&form, when).send().await.expect(200);
    assert_eq!(server.patch(&form, removed).send().await.code(), "validation_failed");
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
    }
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
    let server = Server::start().await;
    let (_, path) = form(&server).await;
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
    let failed = test().header("idempotency-key", "one").send().await;
    assert_eq!(failed.expect(200)["error"]["http_status"], 404);
    let replayed = test().header("idempotency-key", "one").send().await;
    assert_eq!((replayed.header("idempotency-replayed"), replayed.text()), (Some("true"), failed.text()));
    assert_eq!(server.sender.take().len(), 1);
    let shown = server.get(format!("{path}/webhook")).send().await.expect(200);
    assert_eq!(shown["health"], json!({"state": "ok", "pending": 0, "dead": 0}));
    assert_eq!(server.get("/api/v1/deliveries").send().await.expect(200)["deliveries"], json!([]));
    let body = server.post(format!("{path}/webhook/test"), json!({"event": 1})).send().await;
    assert_eq!(body.code(), "validation_failed");
}

#[tokio::test]
async fn a_rotated_secret_is_shown_once_and_the_old_one_signs_for_a_while() {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
    let created = server.integrate(&form, webhook()).await;
    let rotate = || server.call(Method::POST, format!("{path}/webhook/rotate-secret"));
    let rotated = rotate().header("idempotency-key", "one").send().await.expect(200);
    assert_ne!(rotated["secret"], created["secret"]);
    assert_eq!(rotated["previous_valid_until"], "2026-11-21T09:00:00.000Z");
    let replayed = rotate().header("idempotency-key", "one").send().await;
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    assert_eq!(replayed.expect(200), json!({"previous_valid_until": "2026-11-21T09:00:00.000Z"}));
    let signatures = async || {
        rotate_test(&server, &path).await;
        let sent = server.sender.take();
        header(&sent[0], "webhook-signature").unwrap().split(' ').count()
    };
    assert_eq!(signatures().await, 2);
    let short = rotate().json(json!({"grace": "1h"})).send().await.expect(200);
    assert_eq!(short["previous_valid_until"], "2026-11-20T10:00:00.000Z");
    assert_eq!(signatures().await, 3);
    // The shorter grace is that of all earlier secrets.
    server.clock.set("2026-11-20T11:00:00Z");
    assert_eq!(signatures().await, 1);
    for grace in [json!("31 days"), json!("soon"), json!(5)] {
        let refused = errors(&rotate().json(json!({"grace": grace})).send().await);
        assert_eq!(refused[0].0, "/grace");
    }
    server.integrate(&form, json!({"type": "csv_file", "path": "visits.csv"})).await;
    let file = server.call(Method::POST, format!("{path}/csv_file/rotate-secret")).send().await;
    assert_eq!(file.code(), "validation_failed");
}

async fn rotate_test(server: &Server, path: &str) {
    server.call(Method::POST, format!("{path}/webhook/test")).send().await.expect(200);
}

#[tokio::test]
async fn enabling_ends_a_pause_by_the_server_and_revives_what_died() {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
    server.integrate(&form, webhook()).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    server.sender.fail_with(Some(410));
    server.deliver().await;
    let one = format!("{path}/webhook");
    let health = server.get(&one).send().await.expect(200)["health"].clone();
    assert_eq!((&health["state"], &health["dead"]), (&json!("paused"), &json!(1)));
    assert!(health["reason"].is_string() && health["failing_since"].is_string(), "{health}");
    server.sender.fail_with(None);
    server.submit(&form, json!({"q1": "Bob"})).await;
    server.deliver().await;
    assert_eq!(server.sender.take().len(), 1);
    let before = server.get(&one).send().await.header("etag").unwrap().to_owned();
    let enabled = server.patch(&one, json!({"enabled": true})).send().await;
    assert_eq!(enabled.header("etag"), Some(&*before));
    let health = async || server.get(&one).send().await.expect(200)["health"].clone();
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
async fn a_deleted_integration_gets_nothing_more() {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
    server.integrate(&form, webhook()).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    assert_eq!(server.call(Method::DELETE, format!("{path}/webhook")).send().await.status, 204);
    server.submit(&form, json!({"q1": "Bob"})).await;
    server.deliver().await;
    assert_eq!(server.sender.take().len(), 0);
    let again = server.call(Method::DELETE, format!("{path}/webhook")).send().await;
    assert_eq!(again.code(), "integration_not_found");
}

#[tokio::test]
async fn every_change_is_logged_once_without_its_address_or_secrets() {
    let server = Server::start().await;
    let (form, path) = form(&server).await;
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

#[tokio::test]
async fn an_integration_of_another_form_or_workspace_does_not_exist() {
    let server = Server::start().await;
    let (one, _) = form(&server).await;
    let (_, other) = form(&server).await;
    let id = server.integrate(&one, webhook()).await["id"].as_str().unwrap().to_owned();
    let foreign = server.other_workspace().await;
    let mut bodies = Vec::new();
    for name in [&*id, "int_0123456789ab", "webhook"] {
        let response = server.get(format!("{other}/{name}")).header("x-request-id", "same").send().await;
        assert_eq!(response.code(), "integration_not_found");
        bodies.push(response.text().replace(name, "{}"));
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    let path = format!("/api/v1/forms/{one}/integrations/{id}");
    assert_eq!(server.get(&path).key(&foreign).send().await.code(), "form_not_found");
    let limited = server.limited_key(&[Scope::Write], &[&one]).await;
    server.get(&path).key(&limited).send().await.expect(200);
    assert_eq!(server.get(&other).key(&limited).send().await.code(), "form_not_found");
}
