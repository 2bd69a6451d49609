//! Deliveries: listing them, sending them again, canceling them.

use futures_util::future::join_all;

use crate::harness::prelude::*;

const LIST: &str = "/api/v1/deliveries";

async fn with_webhook() -> (Server, String) {
    let server = Server::start().await;
    let form = form(&server).await;
    (server, form)
}

/// Creates a published form with a webhook.
async fn form(server: &Server) -> String {
    let form = server.published_form(questions()).await;
    server.integrate(&form, webhook()).await;
    form
}

async fn list(server: &Server, query: &str) -> Vec<Value> {
    let found = server.read(format!("{LIST}?{query}")).await;
    found["deliveries"].as_array().unwrap().clone()
}

fn id(delivery: &Value) -> String {
    delivery["id"].as_str().unwrap().to_owned()
}

/// Submits answers and returns the path of the delivery.
async fn submitted(server: &Server, form: &str, name: &str) -> String {
    let submission = server.submit(form, json!({"q1": name})).await;
    let found = list(server, &format!("submission={submission}")).await;
    assert_eq!(found.len(), 1, "{found:?}");
    format!("{LIST}/{}", id(&found[0]))
}

fn post(server: &Server, path: &str, action: &str) -> Call {
    server.call(Method::POST, format!("{path}/{action}"))
}

#[tokio::test]
async fn a_delivery_is_visible_from_the_submission_to_its_end() {
    let (server, form) = with_webhook().await;
    let submission = server.submit(&form, json!({"q1": "Ada"})).await;
    let page = server.read(LIST).await;
    let waiting = &page["deliveries"][0];
    let integration = server.read(format!("/api/v1/forms/{form}/integrations/webhook")).await;
    assert_eq!(integration["health"]["pending"], 1);
    let path = format!("{LIST}/{}", id(waiting));
    assert_eq!(
        *waiting,
        json!({
            "id": waiting["id"], "status": "pending",
            "event": {"id": submission.replace("sub_", "evt_"), "type": "submission.completed"},
            "form_id": form, "submission_id": submission,
            "integration": {"id": integration["id"], "name": "webhook", "type": "webhook"},
            "attempts": 0, "next_attempt_at": waiting["next_attempt_at"],
            "created_at": "2026-11-20T09:00:00.000Z",
        })
    );
    assert_eq!(page["next_cursor"], Value::Null);
    assert_eq!(server.read(&path).await, *waiting);
    assert_eq!(server.read(format!("{path}/attempts")).await, json!({"attempts": []}));
    let before = server.get(format!("{path}/event")).send().await;
    assert_eq!((before.status.as_u16(), before.header("content-type")), (200, Some("application/json")));
    server.clock.set("2026-11-20T09:00:01Z");
    server.deliver().await;
    let sent = server.sender.take();
    assert_eq!((sent.len(), &sent[0].body), (1, &before.body));
    let done = server.read(&path).await;
    assert_eq!((&done["status"], &done["attempts"]), (&json!("delivered"), &json!(1)));
    assert_eq!(done["finished_at"], "2026-11-20T09:00:01.000Z");
    assert!(done.get("next_attempt_at").is_none() && done.get("last_error").is_none(), "{done}");
    let attempts = server.read(format!("{path}/attempts")).await;
    assert_eq!(
        attempts["attempts"],
        json!([{
            "number": 1, "trigger": "automatic", "started_at": "2026-11-20T09:00:01.000Z", "duration_ms": 12,
            "result": "delivered", "http_status": 200, "response": "ok", "remote_address": "203.0.113.7:443",
        }])
    );
    let after = server.get(format!("{path}/event")).send().await;
    assert_eq!(after.body, before.body);
}

#[tokio::test]
async fn a_list_has_the_deliveries_that_match_every_filter() {
    let server = Server::start().await;
    let (one, two) = (form(&server).await, form(&server).await);
    server.patch(format!("/api/v1/forms/{two}"), json!({"slug": "two"})).send().await.expect(200);
    let file =
        server.integrate(&two, json!({"type": "csv_file", "path": "visits.csv", "name": "file"})).await;
    let first = server.submit(&one, json!({"q1": "Ada"})).await;
    server.sender.fail_with(Some(404));
    server.deliver().await;
    server.clock.set("2026-11-20T10:00:00Z");
    server.submit(&two, json!({"q1": "Bob"})).await;
    let file = file["id"].as_str().unwrap();
    for (query, count) in [
        (String::new(), 3),
        (format!("form={one}"), 1),
        ("form=two".to_owned(), 2),
        ("form=two&integration=webhook".to_owned(), 1),
        (format!("integration={file}"), 1),
        (format!("form={one}&integration={file}"), 0),
        (format!("submission={first}"), 1),
        ("status=dead".to_owned(), 1),
        ("status=pending,dead".to_owned(), 3),
        ("status=delivered".to_owned(), 0),
        ("since=2026-11-20T10:00:00Z".to_owned(), 2),
        ("until=2026-11-20T10:00:00Z".to_owned(), 1),
        ("form=frm_0123456789ab".to_owned(), 0),
        ("integration=int_0123456789ab".to_owned(), 0),
    ] {
        assert_eq!(list(&server, &query).await.len(), count, "{query}");
    }
    let times: Vec<_> =
        list(&server, "").await.iter().map(|delivery| delivery["created_at"].clone()).collect();
    assert!(times.is_sorted_by(|one, next| one.as_str() >= next.as_str()), "{times:?}");
    for query in
        ["status=late", "submission=1", "integration=webhook", "since=today", "colour=1", "limit=1001"]
    {
        let refused = server.get(format!("{LIST}?{query}")).send().await;
        refused.expect_problem(400, "invalid_query");
        let pointer = format!("/{}", query.split('=').next().unwrap());
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer);
    }
    for (query, code) in [
        ("form=none", "form_not_found"),
        ("form=two&integration=none", "integration_not_found"),
        ("cursor=00", "invalid_cursor"),
    ] {
        assert_eq!(server.get(format!("{LIST}?{query}")).send().await.code(), code, "{query}");
    }
}

#[tokio::test]
async fn a_delivery_is_canceled_and_sent_again_with_the_same_id_and_body() {
    let (server, form) = with_webhook().await;
    let path = submitted(&server, &form, "Ada").await;
    let change = async |action| post(&server, &path, action).send().await;
    assert_eq!(change("cancel").await.expect(200)["status"], "canceled");
    assert_eq!(change("cancel").await.code(), "delivery_not_pending");
    server.deliver().await;
    assert_eq!(server.sender.take().len(), 0);
    for _ in 0..2 {
        let waiting = change("redeliver").await.expect(200);
        assert_eq!(
            [&waiting["status"], &waiting["next_attempt_at"]],
            ["pending", "2026-11-20T09:00:00.000Z"]
        );
        server.deliver().await;
    }
    let sent = server.sender.take();
    assert_eq!((sent.len(), &sent[0].body), (2, &sent[1].body));
    assert_eq!(header(&sent[0], "webhook-id"), header(&sent[1], "webhook-id"));
    let attempts = server.read(format!("{path}/attempts")).await;
    assert_eq!(attempts["attempts"][1]["trigger"], "manual");
}

fn redeliver_all(server: &Server, body: Value) -> Call {
    server.post(format!("{LIST}:redeliver"), body)
}

#[tokio::test]
async fn dead_deliveries_are_sent_again_at_the_requested_rate() {
    let (server, form) = with_webhook().await;
    server.sender.fail_with(Some(404));
    for number in 0..4 {
        server.clock.set(&format!("2026-11-20T09:00:0{number}Z"));
        server.submit(&form, json!({"q1": format!("{number}")})).await;
        server.deliver().await;
    }
    server.sender.fail_with(None);
    let health = server.read(format!("/api/v1/forms/{form}/integrations/webhook")).await;
    assert_eq!(health["health"]["dead"], 4);
    let body = json!({"form": form, "integration": "webhook", "since": "2026-11-20T09:00:01Z"});
    let with = |name: &str, value: Value| {
        let mut body = body.clone();
        body[name] = value;
        body
    };
    // A dry run does not use its idempotency key.
    let send = |body| redeliver_all(&server, body).header("idempotency-key", "one").send();
    let counted = send(with("dry_run", json!(true))).await;
    assert_eq!(counted.expect(200), json!({"count": 3}));
    assert_eq!(list(&server, "status=dead").await.len(), 4);
    let none = redeliver_all(&server, with("status", json!("delivered"))).send().await;
    assert_eq!(none.expect(200), json!({"count": 0}));
    let started = send(with("rate", json!("2/s"))).await;
    assert_eq!(started.expect(200), json!({"count": 3}));
    let pending = list(&server, "status=pending").await;
    let due: Vec<_> = pending.iter().rev().map(|one| one["next_attempt_at"].clone()).collect();
    let times = ["03.000Z", "03.500Z", "04.000Z"].map(|second| format!("2026-11-20T09:00:{second}"));
    assert_eq!(due, times);
    server.clock.set("2026-11-20T09:01:00Z");
    server.deliver().await;
    assert_eq!(list(&server, "status=dead").await.len(), 1);
    assert_eq!(redeliver_all(&server, json!({})).send().await.expect(200), json!({"count": 1}));
}

#[tokio::test]
async fn a_delivery_whose_address_was_removed_is_neither_counted_nor_sent_again() {
    let (server, form) = Server::with_form().await;
    server.integrate(&form, json!({"type": "email", "to": ["a@example.com", "b@example.com"]})).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    let path = format!("/api/v1/forms/{form}/integrations/email");
    server.call(Method::PATCH, &path).json(json!({"to": ["b@example.com"]})).send().await.expect(200);
    for dry_run in [true, false] {
        let body = json!({"status": "pending", "dry_run": dry_run});
        assert_eq!(redeliver_all(&server, body).send().await.expect(200), json!({"count": 1}), "{dry_run}");
    }
}

#[tokio::test]
async fn a_selection_is_refused_with_all_its_errors() {
    let server = Server::start().await;
    let body = json!({"status": ["late"], "since": "x", "rate": "fast", "other": 1});
    redeliver_all(&server, body).send().await.expect_errors(&[
        ("/status/0", "not_an_option"),
        ("/since", "invalid_datetime"),
        ("/rate", "type_mismatch"),
        ("/other", "unknown_field"),
    ]);
    for status in [json!(""), json!([]), json!([1]), json!(3)] {
        redeliver_all(&server, json!({"status": status})).send().await.expect(422);
    }
    let unnamed = redeliver_all(&server, json!({"integration": "webhook"})).send().await.expect(422);
    assert_eq!(unnamed["errors"][0]["pointer"], "/integration");
    assert_eq!(redeliver_all(&server, json!({"form": "none"})).send().await.code(), "form_not_found");
    let rate = server.post(format!("{LIST}:cancel"), json!({"rate": "1/s"})).send().await;
    rate.expect_errors(&[("/rate", "unknown_field")]);
}

#[tokio::test]
async fn a_bulk_request_stops_at_its_limit_and_says_so() {
    let (server, form) = with_webhook().await;
    for _ in 1..20 {
        server.integrate(&form, webhook()).await;
    }
    for batch in 0..5 {
        let submit = |number: usize| server.submit(&form, json!({"q1": format!("{batch}-{number}")}));
        join_all((0..101).map(submit)).await;
    }
    let count = async |body: Value| redeliver_all(&server, body).send().await.expect(200);
    let all = json!({"status": "pending", "dry_run": true});
    assert_eq!(count(all).await, json!({"count": 10_000, "has_more": true}));
    let some = json!({"status": "pending", "dry_run": true, "integration": "webhook", "form": form});
    assert_eq!(count(some).await, json!({"count": 505}));
}

#[tokio::test]
async fn a_submission_without_notification_owes_nothing() {
    let (server, form) = with_webhook().await;
    let path = format!("/api/v1/forms/{form}/submissions?notify=false");
    let body = json!({"answers": {"q1": "Ada"}});
    server.post(&path, body.clone()).send().await.expect(201);
    server.post(format!("{path}&dry_run=true"), body.clone()).send().await.expect(200);
    assert_eq!(list(&server, "").await, [json!(null); 0]);
    let key = server.key_with(&[Scope::Submit]).await;
    for query in ["", "&dry_run=true"] {
        let refused = server.post(format!("{path}{query}"), body.clone()).key(&key).send().await;
        assert_eq!(refused.code(), "insufficient_scope");
    }
    let told = server.post(path.replace("false", "true"), body.clone()).key(&key).send().await;
    assert_eq!(told.status, 201);
    assert_eq!(list(&server, "").await.len(), 1);
    let wrong = server.post(path.replace("false", "no"), body).send().await;
    assert_eq!(wrong.code(), "invalid_query");
}

#[tokio::test]
async fn a_delivery_outlives_its_integration() {
    let (server, form) = with_webhook().await;
    let path = submitted(&server, &form, "Ada").await;
    server.deliver().await;
    let delivered = server.read(&path).await;
    let integration = format!("/api/v1/forms/{form}/integrations/webhook");
    server.remove(integration).await;
    let orphan = server.read(&path).await;
    assert_eq!(orphan["integration"], json!({"id": delivered["integration"]["id"]}));
    assert_eq!(server.get(format!("{path}/event")).send().await.code(), "delivery_not_found");
    assert_eq!(post(&server, &path, "cancel").send().await.code(), "delivery_not_pending");
}

#[tokio::test]
async fn statistics_count_by_type() {
    let (server, form) = with_webhook().await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    server.deliver().await;
    server.submit(&form, json!({"q1": "Bob"})).await;
    for (time, delivered) in [(NOW, 1), ("2026-11-21T09:00:00.001Z", 0)] {
        server.clock.set(time);
        let found = server.read(format!("{LIST}/stats")).await["types"].clone();
        let webhook = found.as_array().unwrap().iter().find(|one| one["type"] == "webhook").unwrap();
        let counts = ["pending", "delivered_24h", "dead", "in_flight", "paused"].map(|name| &webhook[name]);
        assert_eq!(counts, [1, delivered, 0, 0, 0], "{webhook}");
        assert_eq!(webhook["oldest_due_at"], NOW);
    }
}

#[tokio::test]
async fn a_list_has_the_deliveries_of_the_forms_and_workspace_of_the_key() {
    let server = Server::start().await;
    let (own, other) = (form(&server).await, form(&server).await);
    submitted(&server, &own, "Ada").await;
    submitted(&server, &other, "Bob").await;
    let limited = server.limited_key(&[Scope::Admin], &[&own]).await;
    let foreign = server.other_workspace().await;
    for (key, expected) in [(&limited, 1), (&foreign, 0)] {
        let found = server.get(LIST).key(key).send().await.expect(200);
        assert_eq!(found["deliveries"].as_array().unwrap().len(), expected);
        let canceled = server.post(format!("{LIST}:cancel"), json!({"dry_run": true})).key(key).send().await;
        assert_eq!(canceled.expect(200), json!({"count": expected}));
    }
    let named = server.get(format!("{LIST}?form={other}")).key(&limited).send().await;
    assert_eq!(named.code(), "form_not_found");
}
