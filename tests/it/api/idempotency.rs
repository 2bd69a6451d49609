//! Idempotency keys: a repeated request is answered with the first response, and nothing is done twice.

use super::authorization::{OPERATIONS, operation, usable_objects};
use crate::harness::prelude::*;

/// What a replay shows of a first response with `body`: all but its secrets.
fn without_secrets(body: &Value) -> Value {
    let mut shown = body.clone();
    let members = shown.as_object_mut().unwrap();
    members.remove("key");
    match members.remove("secret") {
        Some(_) if members.contains_key("url") => {
            drop(members.insert("secret".to_owned(), json!({"set": true})))
        }
        _ => {}
    }
    shown
}

#[track_caller]
fn assert_replays(again: &TestResponse, first: &TestResponse) {
    assert!(again.is_replay() && !first.is_replay(), "{again:?}");
    assert_eq!((again.status, again.json()), (first.status, without_secrets(&first.json())));
    for name in ["location", "etag"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
}

#[tokio::test]
async fn every_operation_is_replayed_and_its_key_serves_no_other_request() {
    let server = Server::start().await;
    // Upkeep is the same however often it is requested.
    let is_replayed =
        |(method, path, _): &(&str, &str, _)| *method == "post" && !path.starts_with("/api/v1/store/");
    for (_, path, _) in OPERATIONS.into_iter().filter(is_replayed) {
        let ids = usable_objects(&server, path).await;
        let call = || operation(&server, "post", path, &ids).header("idempotency-key", path);
        let first = call().send().await;
        assert!(first.status.is_success(), "{path}: {}", first.text());
        server.deliver().await;
        assert_replays(&call().send().await, &first);
        let other = match path.rsplit('/').next().unwrap() {
            "forms" => json!({"title": "Other"}),
            "submissions" | "responses" => json!({"answers": {"q1": "Bob"}}),
            "submissions:batch" | "responses:batch" => json!({"submissions": [{"answers": {"q1": "Bob"}}]}),
            "integrations" => json!({"type": "csv_file", "path": "a.csv"}),
            "keys" | "workspaces" => json!({"name": "Second"}),
            "deliveries:redeliver" | "deliveries:cancel" => json!({"dry_run": false}),
            _ => json!({}),
        };
        call().json(other).send().await.expect_problem(422, "idempotency_key_reused");
    }
}

#[tokio::test]
async fn a_replay_is_the_first_response_whatever_has_become_of_its_object() {
    let server = Server::start().await;
    let hidden = json!({"id": "h", "type": "hidden", "default": "web"});
    let form = server.published_form(json!([{"type": "short_text", "title": "Name?"}, hidden])).await;
    let path = format!("{FORMS}/{form}");
    let keys = "/api/v1/keys";
    let expiring =
        json!({"name": "CI", "scopes": ["read"], "forms": [form], "expires_at": "2026-11-20T10:00:00.000Z"});
    let answers = json!({"answers": {"q1": "Ada"}, "metadata": {"from": "here"}});
    let requests = [
        (format!("{path}/submissions"), answers),
        (format!("{path}/integrations"), webhook()),
        (keys.to_owned(), expiring),
        ("/api/v1/workspaces".to_owned(), json!({"name": "W"})),
    ];
    let mut made = Vec::new();
    for (path, body) in &requests {
        let send = server.post(path, body.clone()).header("idempotency-key", "one");
        made.push((path, body, send.send().await));
    }
    let rotate = format!("{keys}/{}/rotate", made[2].2.json()["id"].as_str().unwrap());
    let nothing = json!({});
    let rotated = server.post(&rotate, json!({})).header("idempotency-key", "one").send().await;
    let new_key = format!("{keys}/{}", rotated.json()["id"].as_str().unwrap());
    made.push((&rotate, &nothing, rotated));
    let replay = async |what: &str| {
        for (path, body, first) in &made {
            let again = server.post(path, (*body).clone()).header("idempotency-key", "one").send().await;
            assert!(again.is_replay(), "{what} {path}: {}", again.text());
            assert_replays(&again, first);
        }
    };
    let at = |place: usize| made[place].2.header("location").unwrap().to_owned();
    let (submission, integration, workspace) = (at(0), at(1), at(3));
    // The default of the version of the submission is part of it.
    assert_eq!(server.read(&submission).await["answers"], json!({"q1": "Ada", "h": "web"}));
    let questions = json!([{"id": "q1", "type": "short_text", "title": "Name?"}, {"id": "h", "type": "hidden", "default": "app"}]);
    let change = json!({"status": "draft", "questions": questions});
    server.patch(&path, change).send().await.expect(200);
    server.remove(&submission).await;
    replay("in the trash").await;
    server.call(Method::POST, format!("{submission}/restore")).send().await.expect(200);
    let edit = json!({"answers": {"q1": "Eve"}, "metadata": null});
    server.patch(&submission, edit).send().await.expect(200);
    server.patch(&integration, json!({"payload": "thin"})).send().await.expect(200);
    replay("changed").await;
    for path in [&submission, &integration, &workspace, &new_key] {
        server.remove(path).await;
    }
    server.clock.set("2026-11-20T11:00:00Z");
    replay("deleted, revoked or expired").await;
    server.remove(format!("{submission}?purge=true")).await;
    // What was erased is built from the request again, with the defaults of today.
    let (path, body, first) = &made[0];
    let again = server.post(path, (*body).clone()).header("idempotency-key", "one").send().await;
    let mut expected = first.json();
    expected["answers"]["h"] = json!("app");
    assert_eq!((again.is_replay(), again.expect(201)), (true, expected));
}

#[tokio::test]
async fn a_replayed_restore_needs_the_object_but_none_of_its_state() {
    let mut server = Server::start().await;
    let form = server.published_form(questions()).await;
    let form_path = format!("{FORMS}/{form}");
    let submission = format!("{form_path}/submissions/{}", server.submit(&form, json!({"q1": "Ada"})).await);
    for (path, changes) in [
        (&submission, [json!({"answers": {"q1": "Eve"}}), json!({"answers": {"q1": "Bob"}})]),
        (
            &form_path,
            [json!({"title": "Other", "slug": "other"}), json!({"questions": [], "status": "draft"})],
        ),
    ] {
        let restore = |server: &Server, key: &'static str| {
            let call = server.call(Method::POST, format!("{path}/restore"));
            call.header("idempotency-key", key).send()
        };
        let mut first = Vec::new();
        for (key, change) in ["1", "2"].into_iter().zip(changes) {
            server.remove(path).await;
            first.push((key, restore(&server, key).await));
            server.patch(path, change).send().await.expect(200);
        }
        let replays = async |server: &Server| {
            for (key, first) in &first {
                assert_replays(&restore(server, key).await, first);
            }
        };
        replays(&server).await;
        server = server.reopened().await;
        replays(&server).await;
        server.remove(path).await;
        // The reopened server has compiled nothing and its pool accepts no jobs: a replay needs no compilation.
        server = server.with_pool(PoolLimits { jobs: 0, ..PoolLimits::default() }).await;
        replays(&server).await;
        let refused = server.get(path).send().await;
        assert_eq!(refused.status, 404, "it is not in the trash");
        server = server.with_pool(PoolLimits::default()).await;
        // What is erased cannot be returned.
        server.remove(format!("{path}?purge=true")).await;
        assert_eq!(restore(&server, "1").await.status, 404);
        if path == &submission {
            server.submit(&form, json!({"q1": "Bob"})).await;
        }
    }
}

/// A creation with an idempotency key.
fn create(server: &Server, key: &str) -> Call {
    server.post(FORMS, json!({"title": "Visit", "questions": []})).header("idempotency-key", key)
}

#[tokio::test]
async fn a_key_is_kept_for_24_hours_for_each_api_key() {
    let server = Server::start().await;
    let id = async |call: Call| call.send().await.expect(201)["id"].clone();
    let first = id(create(&server, "order 42")).await;
    let other = server.key_with(&[Scope::Write]).await;
    assert_ne!(id(create(&server, "order 42").key(&other)).await, first);
    server.clock.set("2026-11-21T08:59:59.999Z");
    assert_eq!(id(create(&server, "order 42")).await, first);
    server.clock.set("2026-11-21T09:00:00Z");
    assert_ne!(id(create(&server, "order 42")).await, first);
}

#[tokio::test]
async fn a_key_is_a_single_printable_text() {
    let server = Server::start().await;
    let longest = "x".repeat(255);
    create(&server, &longest).send().await.expect(201);
    for bad in ["", "a\tb", "é", &format!("{longest}x")] {
        create(&server, bad).send().await.expect_problem(400, "invalid_header");
    }
    let twice = create(&server, "a").also_header("idempotency-key", "b");
    assert_eq!(twice.send().await.code(), "invalid_header");
}

#[tokio::test]
async fn a_refused_request_does_not_use_its_key() {
    let (server, form) = Server::with_form().await;
    let send = |answers: Value| {
        let call = server.post(format!("{FORMS}/{form}/submissions"), json!({"answers": answers}));
        call.header("idempotency-key", "1").send()
    };
    send(json!({})).await.expect(422);
    let stored = send(json!({"q1": "Ada"})).await;
    assert!(stored.status == 201 && !stored.is_replay(), "{stored:?}");
}

#[tokio::test]
async fn both_names_of_a_path_and_of_a_form_share_their_keys() {
    let (server, form) = Server::with_form().await;
    server.patch(format!("{FORMS}/{form}"), json!({"slug": "visit"})).send().await.expect(200);
    let send = async |path: &str| {
        let call = server.post(format!("{FORMS}/{path}"), json!({"answers": {"q1": "Ada"}}));
        call.header("idempotency-key", "1").send().await
    };
    let first = send(&format!("{form}/submissions")).await;
    for path in [format!("{form}/responses"), "visit/submissions".to_owned()] {
        assert_replays(&send(&path).await, &first);
    }
    let list = server.read(format!("{FORMS}/{form}/submissions")).await;
    assert_eq!(list["submissions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_are_carried_out_once() {
    let server = Server::start().await;
    let path = format!("{FORMS}/{}/integrations", server.published_form(questions()).await);
    let webhook = webhook();
    let create = || server.post(&path, webhook.clone()).header("idempotency-key", "one").send();
    let (one, two, three) = tokio::join!(create(), create(), create());
    let responses = [one, two, three];
    assert_eq!(responses.iter().filter(|response| response.is_replay()).count(), 2);
    let ids = responses.map(|response| response.expect(201)["id"].clone());
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}
