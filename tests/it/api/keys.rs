//! API keys: creation, listing, revocation, rotation, expiry and last use.

use std::fs;
use std::path::Path;

use forms::clock::Clock;

use crate::harness::prelude::*;
use crate::store::is_ready;

const KEYS: &str = "/api/v1/keys";

/// Creates a key and returns its id and text.
async fn create(server: &Server, body: Value) -> (String, String) {
    let made = server.post(KEYS, body).send().await.expect(201);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

async fn status(server: &Server, key: &str) -> u16 {
    server.get("/api/v1/whoami").key(key).send().await.status.as_u16()
}

async fn list(server: &Server) -> Vec<Value> {
    server.read(KEYS).await["keys"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_created_key_works_and_its_text_is_shown_once() {
    let (server, form) = Server::with_form().await;
    server.patch(format!("/api/v1/forms/{form}"), json!({"slug": "visit"})).send().await.expect(200);
    let body = json!({
        "name": "Website", "scopes": ["submit", "read"], "forms": ["visit", form], "expires_at": "2027-01-01T00:00:00+01:00",
    });
    let response = server.post(KEYS, body).send().await;
    let made = response.expect(201);
    assert_eq!(response.fields().join(" "), "id name scopes forms expires_at workspace created_at key");
    let (id, text) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!(response.header("location"), Some(format!("{KEYS}/{id}").as_str()));
    assert_eq!(id, format!("key_{}", &text[3..11]));
    assert_eq!((&made["forms"], &made["scopes"]), (&json!([form]), &json!(["submit", "read"])));
    let whoami = server.get("/api/v1/whoami").key(text).send().await.expect(200);
    let key = json!({
        "id": id, "name": "Website", "scopes": ["submit", "read"], "forms": [form],
        "expires_at": "2026-12-31T23:00:00.000Z",
    });
    assert_eq!(whoami["key"], key);
    let mut shown = made.clone();
    shown.as_object_mut().unwrap().remove("key");
    shown["last_used_at"] = json!(NOW);
    assert!(list(&server).await.contains(&shown), "{shown}");
}

#[tokio::test]
async fn every_problem_of_a_key_is_reported() {
    let server = Server::start().await;
    let deleted = server.published_form(questions()).await;
    server.delete(format!("/api/v1/forms/{deleted}")).send().await;
    let body = json!({
        "name": "x".repeat(301), "scopes": ["read", "wirte", "read", 5], "forms": ["frm_000000000000", deleted, 1, "a_b"],
        "expires_at": NOW, "workspace": "ws_000000000000", "colour": "red", "key": "fk_1",
    });
    // The forms of an unknown workspace are not known.
    server.post(KEYS, body.clone()).send().await.expect_errors(&[
        ("/name", "too_long"),
        ("/scopes/1", "not_an_option"),
        ("/scopes/2", "duplicate_option"),
        ("/scopes/3", "type_mismatch"),
        ("/forms/2", "type_mismatch"),
        ("/expires_at", "invalid_range"),
        ("/workspace", "unknown_reference"),
        ("/colour", "unknown_field"),
        ("/key", "read_only_field"),
    ]);
    let named = json!({"name": "N", "scopes": ["wirte"], "forms": body["forms"]});
    let refused = server.post(KEYS, named).send().await;
    refused.expect_errors(&[
        ("/scopes/0", "not_an_option"),
        ("/forms/0", "unknown_reference"),
        ("/forms/1", "unknown_reference"),
        ("/forms/2", "type_mismatch"),
        ("/forms/3", "unknown_reference"),
    ]);
    let body = refused.json();
    assert_eq!(body["detail"], "5 problems in the request");
    assert_eq!(body["errors"][0]["allowed"][0], "write");
    for (body, expected) in [
        (json!({}), &[("/name", "missing_field"), ("/scopes", "missing_field")][..]),
        (json!([]), &[("", "type_mismatch")]),
        (
            json!({"name": " ", "scopes": [], "forms": []}),
            &[("/name", "empty"), ("/scopes", "empty"), ("/forms", "empty")],
        ),
        (
            json!({"name": 1, "scopes": "read", "forms": {}, "expires_at": "tomorrow", "workspace": 1}),
            &[
                ("/name", "type_mismatch"),
                ("/scopes", "type_mismatch"),
                ("/forms", "type_mismatch"),
                ("/expires_at", "invalid_datetime"),
                ("/workspace", "type_mismatch"),
            ],
        ),
        (
            json!({"name": "N", "scopes": vec!["read"; 6], "forms": vec!["a"; 101]}),
            &[("/scopes", "too_many"), ("/forms", "too_many")],
        ),
    ] {
        server.post(KEYS, body).send().await.expect_errors(expected);
    }
    assert_eq!(list(&server).await.len(), 1, "a refused key was stored");
}

#[tokio::test]
async fn a_key_cannot_give_more_than_it_has() {
    let server = Server::start().await;
    let admin = server.key_with(&[Scope::Admin]).await;
    let operator = server.key_with(&[Scope::Operator]).await;
    let other = server.post("/api/v1/workspaces", json!({"name": "Other"})).send().await.expect(201);
    let whoami = server.read("/api/v1/whoami").await;
    let (own, other) = (&whoami["workspace"]["id"], &other["id"]);
    let scopes = |scopes: &[&str]| json!({"name": "N", "scopes": scopes});
    let within =
        |workspace: &Value, scopes: &[&str]| json!({"name": "N", "scopes": scopes, "workspace": workspace});
    for (key, body, expected) in [
        (&admin, scopes(&["admin"]), 201),
        (&admin, scopes(&["read", "operator"]), 403),
        (&admin, within(own, &["read"]), 403),
        (&admin, within(other, &["read"]), 403),
        (&operator, scopes(&["read"]), 403),
        (&operator, within(other, &["admin", "operator"]), 201),
        (&server.key, within(other, &["read"]), 201),
        (&server.key, scopes(&["operator"]), 201),
    ] {
        let response = server.post(KEYS, body.clone()).key(key).send().await;
        assert_eq!(response.status.as_u16(), expected, "{body}: {}", response.text());
        if expected == 201 && !body["workspace"].is_null() {
            assert_eq!(response.json()["workspace"], body["workspace"]);
        }
    }
    // Nor by rotating a key that has more, and it cannot revoke one.
    let own_operator = format!("{KEYS}/key_{}", &server.key[3..11]);
    let rotate = server.call(Method::POST, format!("{own_operator}/rotate")).key(&admin).send().await;
    assert_eq!(rotate.code(), "insufficient_scope");
    let revoke = server.delete(own_operator).key(&admin).send().await;
    assert_eq!(revoke.code(), "insufficient_scope");
    assert_eq!(status(&server, &server.key).await, 200);
}

#[tokio::test]
async fn an_operator_lists_and_revokes_the_keys_of_another_workspace() {
    let server = Server::start().await;
    let other = server.post("/api/v1/workspaces", json!({"name": "Other"})).send().await.expect(201);
    let (workspace, admin) = (other["id"].as_str().unwrap(), other["key"].as_str().unwrap());
    server.clock.advance(1);
    let (id, key) = create(&server, json!({"name": "CI", "scopes": ["read"], "workspace": workspace})).await;
    let there = format!("{KEYS}?workspace={workspace}");
    let operator = server.key_with(&[Scope::Operator]).await;
    for path in [KEYS.to_owned(), there.clone()] {
        let key = if path == there { &operator } else { admin };
        let listed = server.get(&path).key(key).send().await.expect(200);
        let names: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|key| &key["name"]).collect();
        assert_eq!(names, ["CI", "admin"], "{path}");
    }
    let named = format!("{KEYS}/{id}?workspace={workspace}");
    for (path, key, code) in [
        (there.clone(), admin, "insufficient_scope"),
        (named.clone(), admin, "insufficient_scope"),
        (format!("{KEYS}?workspace=ws_000000000000"), &operator, "workspace_not_found"),
        (format!("{KEYS}?workspace=other"), &operator, "workspace_not_found"),
        (format!("{KEYS}/{id}"), &server.key, "key_not_found"),
        (format!("{KEYS}/key_00000000?workspace={workspace}"), &operator, "key_not_found"),
    ] {
        let method = if path.starts_with(&format!("{KEYS}/")) { Method::DELETE } else { Method::GET };
        assert_eq!(server.call(method, &path).key(key).send().await.code(), code, "{path}");
    }
    assert_eq!(status(&server, &key).await, 200);
    assert_eq!(server.delete(named).key(&operator).send().await.status, 204);
    assert_eq!(status(&server, &key).await, 401);
}

#[tokio::test]
async fn the_last_key_that_manages_keys_cannot_be_revoked() {
    let server = Server::start().await;
    let own = format!("{KEYS}/key_{}", &server.key[3..11]);
    let revoke = async |path: &str| server.delete(path).send().await;
    let form = server.published_form(questions()).await;
    // None of these can take its place: too few scopes, some forms only, expired, replaced.
    let expiring = "2026-11-21T09:00:00Z";
    create(&server, json!({"name": "a", "scopes": ["write", "operator"]})).await;
    create(&server, json!({"name": "b", "scopes": ["admin"], "forms": [form]})).await;
    create(&server, json!({"name": "c", "scopes": ["admin"], "expires_at": expiring})).await;
    server.clock.set(expiring);
    let (admin, _) = create(&server, json!({"name": "d", "scopes": ["admin"]})).await;
    let rotate = server.post(format!("{KEYS}/{admin}/rotate"), json!({"grace": "24h"})).send().await;
    let rotated = format!("{KEYS}/{}", rotate.expect(200)["id"].as_str().unwrap());
    assert_eq!(revoke(&rotated).await.status, 204);
    let refused = revoke(&own).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, "last_key".to_owned()));
    assert_eq!(status(&server, &server.key).await, 200);
    // A key that cannot manage keys can always be revoked, and any other once there is a second one.
    assert_eq!(revoke(&format!("{KEYS}/{admin}")).await.status, 204);
    create(&server, json!({"name": "e", "scopes": ["admin"]})).await;
    assert_eq!(revoke(&own).await.status, 204);
    let other = server.key_with(&[Scope::Operator]).await;
    assert_eq!(status(&server, &other).await, 200);
}

#[tokio::test]
async fn a_rotated_key_ends_at_once_or_after_the_grace_period() {
    let (server, form) = Server::with_form().await;
    let body =
        json!({"name": "CI", "scopes": ["read"], "forms": [form], "expires_at": "2026-11-23T09:00:00.000Z"});
    let (id, old) = create(&server, body).await;
    server.clock.set("2026-11-21T09:00:00Z");
    let response = server.post(format!("{KEYS}/{id}/rotate"), json!({"grace": "24h"})).send().await;
    let rotated = response.expect(200);
    assert_eq!(response.header("location"), None);
    for (name, value) in [
        ("name", json!("CI")),
        ("scopes", json!(["read"])),
        ("forms", json!([form])),
        ("expires_at", json!("2026-11-23T09:00:00.000Z")),
        ("created_at", json!("2026-11-21T09:00:00.000Z")),
    ] {
        assert_eq!(rotated[name], value, "{name}");
    }
    let (second_id, second) = (rotated["id"].as_str().unwrap(), rotated["key"].as_str().unwrap());
    assert_eq!((status(&server, &old).await, status(&server, second).await), (200, 200));
    let names: Vec<_> = list(&server).await.iter().map(|key| key["id"].clone()).collect();
    assert_eq!((names.len(), &names[0], &names[1]), (3, &json!(second_id), &json!(id)), "newest first");
    server.clock.set("2026-11-22T08:59:59Z");
    assert_eq!(status(&server, &old).await, 200);
    server.clock.set("2026-11-22T09:00:00Z");
    assert_eq!((status(&server, &old).await, status(&server, second).await), (401, 200));
    // The grace period never outlasts the key's own expiry.
    let rotate = server.post(format!("{KEYS}/{second_id}/rotate"), json!({"grace": "30 days"})).send().await;
    let third = rotate.expect(200)["key"].as_str().unwrap().to_owned();
    server.clock.set("2026-11-23T08:59:59Z");
    assert_eq!((status(&server, second).await, status(&server, &third).await), (200, 200));
    server.clock.set("2026-11-23T09:00:00Z");
    assert_eq!((status(&server, second).await, status(&server, &third).await), (401, 401));
    // Without a grace period, and without a body, the old key ends at once.
    let (id, old) = create(&server, json!({"name": "CI", "scopes": ["read"]})).await;
    let rotated = server.call(Method::POST, format!("{KEYS}/{id}/rotate")).send().await.expect(200);
    assert!(rotated["expires_at"].is_null() && rotated["forms"].is_null());
    let new = rotated["key"].as_str().unwrap();
    assert_eq!((status(&server, &old).await, status(&server, new).await), (401, 200));
    let again = server.call(Method::POST, format!("{KEYS}/{id}/rotate")).send().await;
    assert_eq!(again.code(), "key_not_found");
}

#[tokio::test]
async fn a_key_rotated_again_in_its_grace_period_keeps_its_expiry_and_then_cannot_be_rotated() {
    let server = Server::start().await;
    let (id, old) = create(&server, json!({"name": "CI", "scopes": ["read"]})).await;
    let body = json!({"name": "brief", "scopes": ["read"], "expires_at": "2026-11-20T10:00:00.000Z"});
    let (brief, _) = create(&server, body).await;
    let rotate = async |grace: &str| {
        let response = server.post(format!("{KEYS}/{id}/rotate"), json!({"grace": grace})).send().await;
        response.expect(200)
    };
    rotate("1h").await;
    let second = rotate("24h").await;
    assert_eq!(second["expires_at"], Value::Null);
    let listed = list(&server).await;
    let ends: Vec<_> =
        listed.iter().filter(|key| key["name"] == "CI").map(|key| key["expires_at"].clone()).collect();
    assert_eq!(ends.iter().filter(|end| end.is_null()).count(), 2);
    assert!(ends.contains(&json!("2026-11-20T10:00:00.000Z")), "{ends:?}");
    server.clock.set("2026-11-20T10:00:00Z");
    let second = second["key"].as_str().unwrap();
    assert_eq!((status(&server, &old).await, status(&server, second).await), (401, 200));
    for id in [id, brief] {
        let refused = server.post(format!("{KEYS}/{id}/rotate"), json!({"grace": "1h"})).send().await;
        assert_eq!(refused.code(), "key_not_found");
    }
    assert_eq!(list(&server).await.len(), 5);
}

#[tokio::test]
async fn the_body_of_a_rotation_is_checked() {
    let server = Server::start().await;
    let (id, key) = create(&server, json!({"name": "CI", "scopes": ["read"]})).await;
    let path = format!("{KEYS}/{id}/rotate");
    for (body, expected) in [
        (json!({"grace": "soon"}), &[("/grace", "type_mismatch")][..]),
        (json!({"grace": 5, "forms": []}), &[("/grace", "type_mismatch"), ("/forms", "unknown_field")]),
        (json!({"grace": "31d"}), &[("/grace", "invalid_range")]),
        (json!({"grace": "99999999999d"}), &[("/grace", "invalid_range")]),
        (json!("24h"), &[("", "type_mismatch")]),
    ] {
        server.post(&path, body).send().await.expect_errors(expected);
    }
    assert_eq!(server.post(&path, json!({})).body("{").send().await.code(), "malformed_json");
    let untyped = server.call(Method::POST, &path).body("{}").send().await;
    assert_eq!(untyped.code(), "unsupported_media_type");
    assert_eq!(status(&server, &key).await, 200);
}

#[tokio::test]
async fn a_workspace_has_at_most_a_thousand_keys() {
    let server = Server::start().await;
    for _ in 0..forms::domain::workspace::MAX_KEYS - 1 {
        server.key_with(&[Scope::Read]).await;
    }
    let body = json!({"name": "CI", "scopes": ["read"]});
    let full = &[("", "too_many")];
    server.post(KEYS, body).send().await.expect_errors(full);
    let id = list(&server).await[5]["id"].as_str().unwrap().to_owned();
    // A refused rotation changes nothing; one that ends the old key makes room for the new one.
    let rotate = format!("{KEYS}/{id}/rotate");
    server.post(&rotate, json!({"grace": "1h"})).send().await.expect_errors(full);
    assert!(list(&server).await.iter().all(|key| key["expires_at"].is_null()));
    server.call(Method::POST, &rotate).send().await.expect(200);
    assert_eq!(list(&server).await.len(), 1_000);
}

/// Whether a file in `folder` has `text`.
fn contains(folder: &Path, text: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return contains(&path, text);
        }
        fs::read(&path).unwrap().windows(text.len()).any(|window| window == text)
    })
}

#[tokio::test]
async fn no_file_of_the_store_has_the_secret_of_a_key() {
    let server = Server::embedded().await;
    let form = server.draft_form(questions()).await;
    let send = async |path: &str, body: Value| {
        let made = server.post(path, body).header("idempotency-key", "same").send().await;
        assert!(made.status.is_success(), "{}", made.text());
        made.json()
    };
    let made = send(KEYS, json!({"name": "a name to find", "scopes": ["read"]})).await;
    let rotated = send(&format!("{KEYS}/{}/rotate", made["id"].as_str().unwrap()), json!({})).await;
    let workspace = send("/api/v1/workspaces", json!({"name": "W"})).await;
    let hook = json!({"type": "webhook", "url": "https://example.com/"});
    let hook = send(&format!("/api/v1/forms/{form}/integrations"), hook).await;
    server.close_store().await;
    assert!(contains(server.folder(), b"a name to find"));
    for secret in [&made["key"], &rotated["key"], &workspace["key"], &hook["secret"]] {
        let secret = secret.as_str().unwrap();
        assert!(!contains(server.folder(), &secret.as_bytes()[11..41]), "{secret}");
    }
}

async fn last_use(server: &Server, id: &str) -> Value {
    list(server).await.iter().find(|key| key["id"] == id).unwrap()["last_used_at"].clone()
}

#[tokio::test]
async fn the_last_use_of_a_key_is_stored_by_the_minute_and_only_if_there_was_one() {
    let server = Server::embedded().await;
    let (id, key) = create(&server, json!({"name": "CI", "scopes": ["read"]})).await;
    assert_eq!(last_use(&server, &id).await, Value::Null);
    server.clock.set("2026-11-20T09:30:59.999Z");
    status(&server, &key).await;
    assert_eq!(last_use(&server, &id).await, "2026-11-20T09:30:00.000Z");
    server.app.store_key_uses().await.unwrap();
    assert_eq!(last_use(&server, &id).await, "2026-11-20T09:30:00.000Z");
    server.app.store_key_uses().await.unwrap();
    let journal = |server: &Server| fs::read(server.folder().join("journal/00000001.log")).unwrap();
    let before = journal(&server);
    server.app.store_key_uses().await.unwrap();
    assert!(journal(&server) == before, "an idle server wrote something");
    server.clock.set("2026-11-20T10:00:00Z");
    status(&server, &key).await;
    assert!(journal(&server) == before, "a request wrote something");
    server.app.store_key_uses().await.unwrap();
    assert!(journal(&server) != before);
    let server = server.reopened().await;
    assert_eq!(last_use(&server, &id).await, "2026-11-20T10:00:00.000Z");
}

#[tokio::test]
async fn a_use_is_kept_while_others_are_written_and_if_they_cannot_be() {
    let server = Server::embedded().await;
    let (id, key) = create(&server, json!({"name": "CI", "scopes": ["read"]})).await;
    let write = loop {
        status(&server, &key).await;
        let mut write = Box::pin(server.app.store_key_uses());
        // The writer may be so fast that the write is complete at once: then another use is written.
        if !is_ready(&mut write).await {
            break write;
        }
        server.clock.advance(60_000);
    };
    assert_eq!(last_use(&server, &id).await, server.clock.now().to_string());
    server.clock.set("2026-11-20T23:30:00Z");
    status(&server, &key).await;
    write.await.unwrap();
    assert_eq!(last_use(&server, &id).await, "2026-11-20T23:30:00.000Z");
    let server = server.with_full_disk().await;
    server.clock.set("2026-11-21T10:00:00Z");
    status(&server, &key).await;
    assert!(server.app.store_key_uses().await.is_err());
    assert_eq!(last_use(&server, &id).await, "2026-11-21T10:00:00.000Z");
}
