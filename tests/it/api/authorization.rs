//! Which keys and scopes may call which operation, and the errors of all others.

use std::collections::BTreeSet;

use axum::http::Method;
use forms::config::HttpLimits;
use forms::domain::workspace::Scope;
use serde_json::json;

use crate::harness::{Call, Server, TestResponse, questions};

const SCOPES: [Scope; 5] = [Scope::Read, Scope::Submit, Scope::Write, Scope::Admin, Scope::Operator];

// Which of `SCOPES` may call an operation.
const READ: [bool; 5] = [true, false, true, true, false];
const DEFINITION: [bool; 5] = [true, true, true, true, false];
const SUBMIT: [bool; 5] = [false, true, true, true, false];
const WRITE: [bool; 5] = [false, false, true, true, false];
const ADMIN: [bool; 5] = [false, false, false, true, false];
const ANY: [bool; 5] = [true; 5];

/// Every operation that needs a key, and the scopes that may call it.
const OPERATIONS: [(&str, &str, [bool; 5]); 25] = [
    ("get", "/api/v1/forms", READ),
    ("post", "/api/v1/forms", WRITE),
    ("get", "/api/v1/forms/{form}", DEFINITION),
    ("patch", "/api/v1/forms/{form}", WRITE),
    ("delete", "/api/v1/forms/{form}", WRITE),
    ("post", "/api/v1/forms/{form}/restore", WRITE),
    ("get", "/api/v1/forms/{form}/schema", DEFINITION),
    ("get", "/api/v1/forms/{form}/versions", READ),
    ("get", "/api/v1/forms/{form}/versions/1", READ),
    ("get", "/api/v1/forms/{form}/submissions", READ),
    ("post", "/api/v1/forms/{form}/submissions", SUBMIT),
    ("get", "/api/v1/forms/{form}/submissions/{submission}", READ),
    ("patch", "/api/v1/forms/{form}/submissions/{submission}", WRITE),
    ("delete", "/api/v1/forms/{form}/submissions/{submission}", WRITE),
    ("post", "/api/v1/forms/{form}/submissions/{submission}/restore", WRITE),
    ("get", "/api/v1/forms/{form}/submissions/{submission}/history", READ),
    ("get", "/api/v1/forms/{form}/responses", READ),
    ("post", "/api/v1/forms/{form}/responses", SUBMIT),
    ("get", "/api/v1/forms/{form}/responses/{submission}", READ),
    ("patch", "/api/v1/forms/{form}/responses/{submission}", WRITE),
    ("delete", "/api/v1/forms/{form}/responses/{submission}", WRITE),
    ("post", "/api/v1/forms/{form}/responses/{submission}/restore", WRITE),
    ("get", "/api/v1/forms/{form}/responses/{submission}/history", READ),
    ("get", "/api/v1/whoami", ANY),
    ("get", "/api/v1/limits", ANY),
];

/// Builds a valid request for an operation on this form and submission.
fn operation(server: &Server, method: &str, path: &str, form: &str, submission: &str) -> Call {
    let path = path.replace("{form}", form).replace("{submission}", submission);
    match method {
        "get" => server.get(path),
        "delete" => server.call(Method::DELETE, path),
        "patch" if path.contains("sub_") => server.patch(path, json!({"answers": {"q1": "Bob"}})),
        "patch" => server.patch(path, json!({"title": "Visits"})),
        "post" if path == "/api/v1/forms" => server.post(path, json!({"title": "Visit", "questions": []})),
        "post" if path.ends_with("/restore") => server.call(Method::POST, path),
        "post" => server.post(path, json!({"answers": {"q1": "Ada"}})),
        other => panic!("unexpected method: {other}"),
    }
}

#[tokio::test]
async fn the_table_of_operations_is_complete() {
    let server = Server::start().await;
    let document = server.get("/api/v1/openapi.json").send().await.expect(200);
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_open = operation["security"] == json!([{}]);
            assert_eq!(is_open, !path.starts_with("/api/v1") || path == "/api/v1/openapi.json", "{path}");
            if !is_open {
                documented.insert((method.clone(), path.clone()));
            }
        }
    }
    let known = OPERATIONS
        .map(|(method, path, _)| (method.to_owned(), path.replace("versions/1", "versions/{version}")));
    assert_eq!(documented, BTreeSet::from(known));
}

#[tokio::test]
async fn each_scope_allows_exactly_its_operations() {
    let server = Server::start().await;
    for (method, path, allowed) in OPERATIONS {
        for (scope, is_allowed) in SCOPES.into_iter().zip(allowed) {
            let form = server.published_form(questions()).await;
            let submission = server.submit(&form, json!({"q1": "Ada"})).await;
            if let Some(trashed) = path.strip_suffix("/restore") {
                operation(&server, "delete", trashed, &form, &submission).send().await;
            }
            let key = server.key_with(&[scope]).await;
            let response = operation(&server, method, path, &form, &submission).key(&key).send().await;
            assert_eq!(
                response.status.is_success(),
                is_allowed,
                "{method} {path} with {scope}: {}",
                response.text()
            );
            if !is_allowed {
                assert_eq!((response.status.as_u16(), response.code().as_str()), (403, "insufficient_scope"));
            }
        }
    }
}

#[tokio::test]
async fn purging_needs_admin() {
    let server = Server::start().await;
    for (scope, is_allowed) in SCOPES.into_iter().zip(ADMIN) {
        let form = server.published_form(questions()).await;
        let submission = server.submit(&form, json!({"q1": "Ada"})).await;
        let key = server.key_with(&[scope]).await;
        for path in [format!("/{form}/submissions/{submission}"), format!("/{form}")] {
            let path = format!("/api/v1/forms{path}?purge=true");
            let response = server.call(Method::DELETE, path).key(&key).send().await;
            assert_eq!(response.status.as_u16(), if is_allowed { 204 } else { 403 }, "{scope}");
        }
    }
}

#[tokio::test]
async fn every_operation_refuses_an_invalid_key_without_a_reason() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let submission = server.submit(&form, json!({"q1": "Ada"})).await;
    let expired = server.expiring_key("2026-11-20T09:00:00.000Z").await;
    let unknown = Server::start().await.key_with(&[Scope::Read]).await;
    let mut mistyped = server.key.clone();
    mistyped.replace_range(12..13, if &mistyped[12..13] == "a" { "b" } else { "a" });
    let with = |text: &str| Some(text.to_owned());
    let credentials = [
        None,
        with("Bearer"),
        with(&format!("Basic {}", server.key)),
        with(&server.key),
        with(&format!("Bearer {mistyped}")),
        with(&format!("Bearer {expired}")),
        with(&format!("Bearer {unknown}x")),
        with("Bearer é"),
    ];
    for (method, path, _) in OPERATIONS {
        let mut bodies = BTreeSet::new();
        for credential in &credentials {
            let call = operation(&server, method, path, &form, &submission).header("x-request-id", "same");
            let call = match credential {
                Some(text) => call.header("authorization", text),
                None => call.without_header("authorization"),
            };
            let response = call.send().await;
            assert_eq!(response.status, 401, "{method} {path} {credential:?}");
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            bodies.insert(response.text().to_owned());
        }
        assert_eq!(bodies.len(), 1, "{method} {path}: {bodies:?}");
    }
}

/// The status and body of a response, with ids replaced.
fn without_ids(response: &TestResponse, ids: &[&str]) -> (u16, String) {
    let text = ids.iter().fold(response.text().to_owned(), |text, id| text.replace(id, "{id}"));
    (response.status.as_u16(), text)
}

#[tokio::test]
async fn foreign_deleted_and_missing_objects_get_the_same_response() {
    let server = Server::start().await;
    let other_workspace_key = server.other_workspace().await;
    let form = server.published_form(questions()).await;
    let submission = server.submit(&form, json!({"q1": "Ada"})).await;
    let deleted = server.published_form(questions()).await;
    let gone = server.submit(&deleted, json!({"q1": "Ada"})).await;
    assert_eq!(server.call(Method::DELETE, format!("/api/v1/forms/{deleted}")).send().await.status, 204);
    let (no_form, no_submission) = ("frm_0123456789ab", "sub_00000000000000000000000000");
    let on_live_forms = |path: &str| path.contains("{form}") && !path.ends_with("{form}/restore");
    for (method, path, _) in OPERATIONS.into_iter().filter(|(_, path, _)| on_live_forms(path)) {
        let cases = [
            (other_workspace_key.as_str(), form.as_str(), submission.as_str()),
            (&server.key, &deleted, &gone),
            (&server.key, no_form, no_submission),
            (&server.key, no_form, &submission),
        ];
        let mut answers = BTreeSet::new();
        for (key, form, submission) in cases {
            let call = operation(&server, method, path, form, submission).key(key);
            let response = call.header("x-request-id", "same").send().await;
            assert_eq!(response.code(), "form_not_found", "{method} {path}");
            answers.insert(without_ids(&response, &[form, submission]));
        }
        assert_eq!(answers.len(), 1, "{method} {path}: {answers:?}");
    }
    assert_eq!(
        server.get("/api/v1/forms").key(&other_workspace_key).send().await.expect(200),
        json!({"forms": []})
    );
}

#[tokio::test]
async fn a_submission_is_found_only_under_its_form() {
    let server = Server::start().await;
    let (one, other) = (server.published_form(questions()).await, server.published_form(questions()).await);
    let submission = server.submit(&one, json!({"q1": "Ada"})).await;
    server.get(format!("/api/v1/forms/{one}/submissions/{submission}")).send().await.expect(200);
    let below = "/api/v1/forms/{form}/submissions/{submission}";
    for (method, path, _) in OPERATIONS.into_iter().filter(|(_, path, _)| path.starts_with(below)) {
        let response = operation(&server, method, path, &other, &submission).send().await;
        assert_eq!(response.code(), "submission_not_found", "{method} {path}");
        let response = operation(&server, method, path, &one, "sub_1").send().await;
        assert_eq!(response.code(), "submission_not_found", "{method} {path}");
    }
    server.get(format!("/api/v1/forms/{one}/submissions/{submission}")).send().await.expect(200);
}

#[tokio::test]
async fn failed_authentication_is_rate_limited_by_address_and_valid_keys_still_work() {
    let server = Server::with_limits(HttpLimits {
        auth_failures: Some("2/min".parse().unwrap()),
        ..Default::default()
    })
    .await;
    let call = |key: &str, address: &str| {
        server.call_without_key(Method::GET, "/api/v1/whoami").key(key).with_client_address(address).send()
    };
    for _ in 0..3 {
        let missing = server
            .call_without_key(Method::GET, "/api/v1/whoami")
            .with_client_address("192.0.2.1")
            .send()
            .await;
        assert_eq!(missing.code(), "unauthorized", "a missing key was counted");
    }
    assert_eq!(call("fk_1", "192.0.2.1").await.code(), "unauthorized");
    assert_eq!(call("fk_2", "192.0.2.1").await.code(), "unauthorized");
    let refused = call("fk_3", "192.0.2.1").await;
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("rate_limited", Some("60")));
    assert_eq!(call(&server.key, "192.0.2.1").await.status, 200);
    assert_eq!(call("fk_3", "192.0.2.2").await.code(), "unauthorized");
    // An IPv4 address is counted on its own in both notations, an IPv6 address with its /64.
    assert_eq!(call("fk_3", "::ffff:192.0.2.1").await.code(), "rate_limited");
    for (address, code) in [
        ("2001:db8::1", "unauthorized"),
        ("2001:db8::2:0:0:2", "unauthorized"),
        ("2001:db8:0:1::1", "unauthorized"),
        ("2001:db8:0:0:9::", "rate_limited"),
    ] {
        assert_eq!(call("fk_3", address).await.code(), code, "{address}");
    }
    for (time, wait) in [("09:00:20", Some("40")), ("09:00:59", Some("1")), ("09:01:00", None)] {
        server.clock.set(&format!("2026-11-20T{time}Z"));
        assert_eq!(call("fk_3", "192.0.2.1").await.header("retry-after"), wait, "{time}");
    }
    // If the clock is set back, counting starts again.
    call("fk_3", "192.0.2.1").await;
    assert_eq!(call("fk_3", "192.0.2.1").await.code(), "rate_limited");
    server.clock.set("2026-11-20T09:00:00Z");
    assert_eq!(call("fk_3", "192.0.2.1").await.code(), "unauthorized");
}

#[tokio::test]
async fn the_bearer_scheme_is_case_insensitive_and_may_have_more_spaces() {
    let server = Server::start().await;
    for scheme in ["Bearer ", "bearer  ", "BEARER "] {
        let credentials = format!("{scheme}{} ", server.key);
        let call = server.get("/api/v1/whoami").header("authorization", &credentials);
        assert_eq!(call.send().await.status, 200, "{scheme}");
    }
}

#[tokio::test]
async fn the_rate_limit_can_be_disabled() {
    let server = Server::with_limits(HttpLimits { auth_failures: None, ..Default::default() }).await;
    for _ in 0..20 {
        let call = server
            .call_without_key(Method::GET, "/api/v1/whoami")
            .key("fk_1")
            .with_client_address("192.0.2.1");
        assert_eq!(call.send().await.code(), "unauthorized");
    }
}

#[tokio::test]
async fn the_key_is_checked_before_the_query_and_the_body() {
    let server = Server::start().await;
    let call = server.call_without_key(Method::POST, "/api/v1/forms?wrong=1").body("{");
    assert_eq!(call.send().await.code(), "unauthorized");
}

#[tokio::test]
async fn whoami_shows_the_workspace_and_the_key() {
    let server = Server::start().await;
    let body = server.get("/api/v1/whoami").send().await.expect(200);
    let key = format!("key_{}", &server.key[3..11]);
    assert_eq!(body["key"], json!({"id": key, "name": "operator", "scopes": ["admin", "operator"]}));
    assert_eq!(body["workspace"]["name"], "default");
    assert!(body["workspace"]["id"].as_str().unwrap().starts_with("ws_"));
}
