//! Every problem code is reached and documented.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use forms::api::Code;
use forms::domain::validation::violation::Rule;
use futures_util::stream::pending;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::Map;

use super::backup;
use crate::harness::prelude::*;

/// A submission to a form with these settings.
async fn submit_with(server: &Server, settings: Value) -> Call {
    let form = server.published_form(questions()).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    server.patch(format!("{FORMS}/{form}"), json!({"settings": settings})).send().await.expect(200);
    // The answers are not checked then.
    server.post(format!("{FORMS}/{form}/submissions"), json!({"answers": {}}))
}

/// Requests that are refused with each code, but for those that need a server of their own.
async fn refused(server: &Server) -> Vec<(Code, Call)> {
    let draft = format!("{FORMS}/{}", server.draft_form(questions()).await);
    let draft = |path: &str| format!("{draft}{path}");
    let form = server.published_form(questions()).await;
    server.integrate(&form, json!({"type": "csv_file", "path": "a.csv"})).await;
    let submission = server.submit(&form, json!({"q1": "Ada"})).await;
    server.deliver().await;
    let deliveries = server.read("/api/v1/deliveries").await;
    let delivery = format!("/api/v1/deliveries/{}", deliveries["deliveries"][0]["id"].as_str().unwrap());
    let submits = server.key_with(&[Scope::Submit]).await;
    let whoami = server.read("/api/v1/whoami").await;
    let own = format!("/api/v1/workspaces/{}", whoami["workspace"]["id"].as_str().unwrap());
    server
        .post(FORMS, json!({"title": "one", "slug": "taken"}))
        .header("idempotency-key", "same")
        .send()
        .await;
    let get = |path: &str| server.get(path);
    let post = |path: &str| server.call(Method::POST, path);
    let create = |body: Value| server.post(FORMS, body);
    vec![
        (Code::MalformedJson, create(json!({})).body("{\"title\":1,\"title\":2}")),
        (Code::InvalidQuery, get("/api/v1/forms?limti=5")),
        (Code::InvalidCursor, get("/api/v1/forms?cursor=00")),
        (Code::InvalidHeader, create(json!({})).header("idempotency-key", "")),
        (Code::Unauthorized, server.call_without_key(Method::GET, FORMS)),
        (Code::InsufficientScope, get(FORMS).key(&submits)),
        (Code::FormNotFound, get("/api/v1/forms/frm_000000000000")),
        (Code::IntegrationNotFound, post(&draft("/integrations/webhook/test"))),
        (Code::DeliveryNotFound, post("/api/v1/deliveries/dlv_1/cancel")),
        (Code::DeliveryNotPending, post(&format!("{delivery}/cancel"))),
        (Code::DeliveryNotRepeatable, post(&format!("{delivery}/redeliver"))),
        (Code::KeyNotFound, server.delete("/api/v1/keys/key_00000000")),
        (Code::LastKey, server.delete(format!("/api/v1/keys/key_{}", &server.key[3..11]))),
        (Code::WorkspaceNotFound, server.delete("/api/v1/workspaces/ws_000000000000")),
        (Code::WorkspaceInUse, server.delete(own)),
        (Code::RouteNotFound, get("/api/v1/nothing")),
        (Code::MethodNotAllowed, server.call(Method::PUT, FORMS)),
        (Code::NotAcceptable, get(FORMS).header("accept", "text/html")),
        (Code::BodyTooLarge, create(json!({})).body(" ".repeat(server.settings.max_definition + 1))),
        (Code::UriTooLong, get(&format!("/api/v1/forms?cursor={}", "0".repeat(8192)))),
        (Code::UnsupportedMediaType, create(json!({})).header("content-type", "text/plain")),
        (Code::ExpectationFailed, get(FORMS).header("expect", "200-ok")),
        (Code::HeadersTooLarge, get(FORMS).header("x-filler", &"x".repeat(32 << 10))),
        (Code::ValidationFailed, create(json!({}))),
        (Code::IdempotencyKeyReused, create(json!({"title": "two"})).header("idempotency-key", "same")),
        (Code::FormClosed, submit_with(server, json!({"closed": true})).await),
        (Code::FormNotOpenYet, submit_with(server, json!({"opens_at": "2026-11-20T09:00:00.001Z"})).await),
        (Code::FormExpired, submit_with(server, json!({"closes_at": NOW})).await),
        (Code::FormFull, submit_with(server, json!({"max_responses": 1})).await),
        (Code::FormNotPublished, server.post(draft("/submissions"), json!({"answers": {}}))),
        (Code::FormHasNoQuestions, server.patch(draft(""), json!({"questions": [], "status": "published"}))),
        (Code::SlugTaken, create(json!({"title": "Visit", "slug": "taken"}))),
        (Code::NotInTrash, post(&draft("/restore"))),
        (Code::NotQuarantined, post(&format!("{FORMS}/{form}/submissions/{submission}/release"))),
        (
            Code::VersionMismatch,
            server.patch(draft(""), json!({"title": "Other"})).header("if-match", "\"r9\""),
        ),
        (Code::SubmissionNotFound, get(&draft("/submissions/sub_1"))),
        (Code::VersionNotFound, get(&draft("/versions/2"))),
    ]
}

/// Responses with the codes that need a server of their own.
async fn failures() -> Vec<(Code, TestResponse)> {
    let create = |server: &Server| server.post(FORMS, json!({"title": "Visit", "questions": []})).send();
    let settings = HttpSettings { body_timeout: Duration::from_millis(20), ..Default::default() };
    let slow = Server::with_settings(settings).await;
    let stalled = Body::new(StreamBody::new(pending::<Result<Frame<Bytes>, Infallible>>()));
    let slow = slow.post(FORMS, json!({})).body(stalled).send().await;
    let guessed = Server::start().await;
    let guess =
        || guessed.call_without_key(Method::GET, FORMS).key("fk_guess").with_client_address("192.0.2.1");
    for _ in 0..10 {
        assert_eq!(guess().send().await.code(), "unauthorized");
    }
    let broken = Server::start().await;
    broken.clock.set("1969-12-31T23:59:59Z");
    let closed = Server::start().await;
    closed.close_store().await;
    let full = Server::embedded().await.with_full_disk().await;
    full.read(FORMS).await;
    let limits = PoolLimits { jobs: 0, max_wait: Duration::ZERO, ..PoolLimits::default() };
    let busy = Server::embedded().await.with_pool(limits).await;
    let (backed_up, _in_progress) = backup::begin_large().await;
    vec![
        (Code::BackupInProgress, backed_up.get(backup::BACKUP).send().await),
        (Code::RequestTimeout, slow),
        (Code::RateLimited, guess().send().await),
        (Code::Internal, create(&broken).await),
        (Code::StoreUnavailable, create(&closed).await),
        (Code::StorageFull, create(&full).await),
        (Code::Overloaded, create(&busy).await),
    ]
}

#[tokio::test]
async fn every_code_is_reached_with_its_problem_document() {
    let server = Server::start().await;
    let mut responses = failures().await;
    for (code, call) in refused(&server).await {
        responses.push((code, call.send().await));
    }
    let reached: HashSet<_> = responses.iter().map(|(code, _)| code.name()).collect();
    assert_eq!(reached, Code::ALL.iter().map(|code| code.name()).collect());
    for (code, response) in responses {
        response.expect_problem(code.status(), code.name());
        assert_eq!(response.header("content-type"), Some("application/problem+json"), "{code}");
        let body = response.json();
        assert_eq!(body["type"], format!("/problems/{code}"));
        assert_eq!(body["title"], code.title());
        assert_eq!(body["status"], code.status());
        assert_eq!(body["request_id"].as_str(), response.header("x-request-id"), "{code}");
        assert_eq!(body["detail"].is_string(), code.status() < 500 && code != Code::Unauthorized, "{code}");
        let waits = code.status() == 503 || code == Code::RateLimited;
        assert_eq!(response.header("retry-after").is_some(), waits, "{code}");
        if code == Code::Internal {
            // The cause is not revealed.
            let names: Vec<_> = body.as_object().unwrap().keys().collect();
            assert_eq!(names, ["code", "request_id", "status", "title", "type"]);
        }
    }
}

#[tokio::test]
async fn every_code_and_rule_is_explained_without_a_key() {
    let server = Server::start().await;
    let codes = Code::ALL.iter().map(|code| (code.name(), code.meaning()));
    let rules = Rule::ALL.iter().map(|rule| (rule.name(), rule.meaning()));
    let rules = rules.filter(|(name, _)| Code::parse(name).is_none());
    for (name, meaning) in codes.chain(rules) {
        let response = server.call_without_key(Method::GET, format!("/problems/{name}")).send().await;
        assert_eq!(response.status, 200, "{name}");
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        let explained = response.text();
        assert!(explained.starts_with(name) && explained.contains(meaning), "{explained}");
    }
    let response = server.call_without_key(Method::GET, "/problems/bad_luck").send().await;
    assert_eq!(response.code(), "route_not_found");
}

#[tokio::test]
async fn bodies_that_parsers_read_differently_are_malformed() {
    let server = Server::start().await;
    for body in [
        &b""[..],
        b"{\"title\":\"\xff\"}",
        b"{\"a\":{\"b\":1,\"b\":2}}",
        b"{\"title\":\"\\u0000\"}",
        b"{} {}",
    ] {
        let response = server.post(FORMS, json!({})).body(body.to_vec()).send().await;
        assert_eq!(response.code(), "malformed_json", "{}", String::from_utf8_lossy(body));
    }
}

#[tokio::test]
async fn at_most_the_first_hundred_problems_are_reported() {
    let (server, form) = Server::with_form().await;
    let submissions = format!("/api/v1/forms/{form}/submissions");
    let rating = json!({"id": "stars", "type": "rating", "title": "Stars"});
    let values = |count| {
        let tale = json!({"type": "long_text", "title": "Tale", "show_if": {"stars": vec![9; count]}});
        server.post("/api/v1/forms", json!({"title": "Survey", "questions": [rating, tale]}))
    };
    let answers = |count| {
        let answers: Map<_, _> = (0..count).map(|key| (format!("k{key}"), json!(1))).collect();
        server.post(&submissions, json!({"answers": answers}))
    };
    for (call, detail) in [
        (values(100), "100 problems in the definition"),
        (values(101), "more than 100 problems in the definition; the first 100 are listed"),
        // The missing answer to the first question is one more.
        (answers(99), "100 answers need attention"),
        (answers(100), "more than 100 answers need attention; the first 100 are listed"),
    ] {
        let problem = call.send().await.expect(422);
        assert_eq!(problem["detail"], detail);
        assert_eq!(problem["errors"].as_array().unwrap().len(), 100, "{detail}");
    }
}
