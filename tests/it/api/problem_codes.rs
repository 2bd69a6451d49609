//! Every problem code is reached and documented.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use forms::api::Code;
use forms::config::HttpSettings;
use forms::cpu_pool::PoolLimits;
use forms::domain::workspace::Scope;
use serde_json::{Map, json};

use crate::harness::{NOW, Server, TestResponse, questions};

const FORMS: &str = "/api/v1/forms";

/// Returns a response with this code.
pub(super) async fn provoke(code: Code) -> TestResponse {
    let server = Server::start().await;
    match code {
        Code::MalformedJson => server.post(FORMS, json!({})).body("{\"title\":1,\"title\":2}").send().await,
        Code::InvalidQuery => server.get("/api/v1/forms?limti=5").send().await,
        Code::InvalidCursor => server.get("/api/v1/forms?cursor=00").send().await,
        Code::InvalidHeader => server.post(FORMS, json!({})).header("idempotency-key", "").send().await,
        Code::Unauthorized => server.call_without_key(Method::GET, FORMS).send().await,
        Code::InsufficientScope => {
            let key = server.key_with(&[Scope::Submit]).await;
            server.get(FORMS).key(&key).send().await
        }
        Code::FormNotFound => server.get("/api/v1/forms/frm_000000000000").send().await,
        Code::IntegrationNotFound
        | Code::DeliveryNotFound
        | Code::DeliveryNotPending
        | Code::DeliveryNotRepeatable => provoke_on_deliveries(&server, code).await,
        Code::KeyNotFound | Code::LastKey | Code::WorkspaceNotFound | Code::WorkspaceInUse => {
            provoke_by_deletion(&server, code).await
        }
        Code::RouteNotFound => server.get("/api/v1/nothing").send().await,
        Code::MethodNotAllowed => server.call(Method::PUT, FORMS).send().await,
        Code::NotAcceptable => server.get(FORMS).header("accept", "text/html").send().await,
        Code::RequestTimeout => slow_body().await,
        Code::BodyTooLarge => {
            let body = " ".repeat(server.settings.max_definition + 1);
            server.post(FORMS, json!({})).body(body).send().await
        }
        Code::UriTooLong => server.get(format!("/api/v1/forms?cursor={}", "0".repeat(8192))).send().await,
        Code::UnsupportedMediaType => {
            server.post(FORMS, json!({})).header("content-type", "text/plain").send().await
        }
        Code::ExpectationFailed => server.get(FORMS).header("expect", "200-ok").send().await,
        Code::ValidationFailed => server.post(FORMS, json!({})).send().await,
        Code::IdempotencyKeyReused => reuse_key(&server).await,
        Code::FormClosed | Code::FormNotOpenYet | Code::FormExpired | Code::FormFull => {
            provoke_by_settings(&server, code).await
        }
        Code::FormNotPublished
        | Code::FormHasNoQuestions
        | Code::NotInTrash
        | Code::SlugTaken
        | Code::VersionMismatch
        | Code::VersionNotFound
        | Code::SubmissionNotFound => provoke_on_draft(&server, code).await,
        Code::RateLimited => {
            let guess = || {
                server.call_without_key(Method::GET, FORMS).key("fk_guess").with_client_address("192.0.2.1")
            };
            for _ in 0..10 {
                assert_eq!(guess().send().await.code(), "unauthorized");
            }
            guess().send().await
        }
        Code::HeadersTooLarge => server.get(FORMS).header("x-filler", &"x".repeat(32 << 10)).send().await,
        Code::Internal => {
            server.clock.set("1969-12-31T23:59:59Z");
            server.post(FORMS, json!({"title": "Visit", "questions": []})).send().await
        }
        Code::StoreUnavailable => {
            server.close_store().await;
            server.post(FORMS, json!({"title": "Visit", "questions": []})).send().await
        }
        Code::StorageFull => {
            let server = server.with_full_disk().await;
            server.post(FORMS, json!({"title": "Visit", "questions": []})).send().await
        }
        Code::Overloaded => {
            let server = server
                .with_pool(PoolLimits { jobs: 0, max_wait: Duration::ZERO, ..PoolLimits::default() })
                .await;
            server.post(FORMS, json!({"title": "Visit", "questions": []})).send().await
        }
    }
}

/// Returns the response to another request with the same idempotency key.
async fn reuse_key(server: &Server) -> TestResponse {
    let create = |title: &str| {
        let call = server.post(FORMS, json!({"title": title, "questions": []}));
        call.header("idempotency-key", "same").send()
    };
    create("one").await.expect(201);
    create("two").await
}

/// Returns a response with this code to a request about an integration or a delivery.
async fn provoke_on_deliveries(server: &Server, code: Code) -> TestResponse {
    let form = server.published_form(questions()).await;
    let path = match code {
        Code::IntegrationNotFound => format!("{FORMS}/{form}/integrations/webhook/test"),
        Code::DeliveryNotFound => "/api/v1/deliveries/dlv_1/cancel".to_owned(),
        Code::DeliveryNotPending | Code::DeliveryNotRepeatable => {
            server.integrate(&form, json!({"type": "csv_file", "path": "a.csv"})).await;
            server.submit(&form, json!({"q1": "Ada"})).await;
            server.deliver().await;
            let found = server.get("/api/v1/deliveries").send().await.expect(200);
            let change = if code == Code::DeliveryNotPending { "cancel" } else { "redeliver" };
            format!("/api/v1/deliveries/{}/{change}", found["deliveries"][0]["id"].as_str().unwrap())
        }
        other => panic!("{other} does not concern deliveries"),
    };
    server.call(Method::POST, path).send().await
}

/// Returns a response with this code to the deletion of a key or a workspace.
async fn provoke_by_deletion(server: &Server, code: Code) -> TestResponse {
    let path = match code {
        Code::KeyNotFound => "keys/key_00000000".to_owned(),
        Code::LastKey => format!("keys/key_{}", &server.key[3..11]),
        Code::WorkspaceNotFound => "workspaces/ws_000000000000".to_owned(),
        Code::WorkspaceInUse => {
            let own = &server.get("/api/v1/whoami").send().await.expect(200)["workspace"]["id"];
            format!("workspaces/{}", own.as_str().unwrap())
        }
        other => panic!("{other} does not concern keys or workspaces"),
    };
    server.call(Method::DELETE, format!("/api/v1/{path}")).send().await
}

/// Returns a response with this code to a submission that the settings of a form refuse.
async fn provoke_by_settings(server: &Server, code: Code) -> TestResponse {
    let form = server.published_form(questions()).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    let settings = match code {
        Code::FormClosed => json!({"closed": true}),
        Code::FormNotOpenYet => json!({"opens_at": "2026-11-20T09:00:00.001Z"}),
        Code::FormExpired => json!({"closes_at": NOW}),
        Code::FormFull => json!({"max_responses": 1}),
        other => panic!("{other} does not depend on settings"),
    };
    let path = format!("{FORMS}/{form}");
    server.patch(&path, json!({"settings": settings})).send().await.expect(200);
    // The answers are not checked then.
    server.post(format!("{path}/submissions"), json!({"answers": {}})).send().await
}

/// Returns a response with this code to a request on a draft.
async fn provoke_on_draft(server: &Server, code: Code) -> TestResponse {
    let path = format!("{FORMS}/{}", server.draft_form(questions()).await);
    match code {
        Code::FormNotPublished => {
            server.post(format!("{path}/submissions"), json!({"answers": {}})).send().await
        }
        Code::FormHasNoQuestions => {
            server.patch(path, json!({"questions": [], "status": "published"})).send().await
        }
        Code::SlugTaken => {
            server.patch(path, json!({"slug": "taken"})).send().await.expect(200);
            server.post(FORMS, json!({"title": "Visit", "slug": "taken"})).send().await
        }
        Code::NotInTrash => server.call(Method::POST, format!("{path}/restore")).send().await,
        Code::VersionMismatch => {
            server.patch(path, json!({"title": "Other"})).header("if-match", "\"r9\"").send().await
        }
        Code::SubmissionNotFound => server.get(format!("{path}/submissions/sub_1")).send().await,
        Code::VersionNotFound => server.get(format!("{path}/versions/2")).send().await,
        other => panic!("{other} does not concern drafts"),
    }
}

/// Returns the response to a body that never arrives.
async fn slow_body() -> TestResponse {
    let server =
        Server::with_settings(HttpSettings { body_timeout: Duration::from_millis(20), ..Default::default() })
            .await;
    let body = Body::new(Stalled);
    server.post(FORMS, json!({})).body(body).send().await
}

/// A body that never yields data.
struct Stalled;

impl hyper::body::Body for Stalled {
    type Data = bytes::Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn every_code_is_reached_with_its_problem_document() {
    for code in Code::ALL.iter().copied() {
        let response = provoke(code).await;
        assert_eq!(response.code(), code.name(), "{}", response.text());
        assert_eq!(response.status.as_u16(), code.status(), "{code}");
        assert_eq!(response.header("content-type"), Some("application/problem+json"), "{code}");
        let body = response.json();
        assert_eq!(body["type"], format!("/problems/{code}"));
        assert_eq!(body["title"], code.title());
        assert_eq!(body["status"], code.status());
        assert_eq!(body["request_id"].as_str(), response.header("x-request-id"), "{code}");
        assert_eq!(body["detail"].is_string(), code.status() < 500 && code != Code::Unauthorized, "{code}");
        let waits = code.status() == 503 || code == Code::RateLimited;
        assert_eq!(response.header("retry-after").is_some(), waits, "{code}");
    }
}

#[tokio::test]
async fn every_code_and_rule_is_explained_without_a_key() {
    let server = Server::start().await;
    let names = Code::ALL.iter().map(|code| code.name()).chain(["required", "unknown_field"]);
    for name in names {
        let response = server.call_without_key(Method::GET, format!("/problems/{name}")).send().await;
        assert_eq!(response.status, 200, "{name}");
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(response.text().starts_with(name), "{}", response.text());
    }
    let response = server.call_without_key(Method::GET, "/problems/bad_luck").send().await;
    assert_eq!(response.code(), "route_not_found");
}

#[tokio::test]
async fn an_internal_error_does_not_reveal_its_cause() {
    let response = provoke(Code::Internal).await;
    let body = response.json();
    let names: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["code", "request_id", "status", "title", "type"]);
    assert!(!response.text().contains("clock"));
}

#[tokio::test]
async fn bodies_that_parsers_read_differently_are_malformed() {
    let server = Server::start().await;
    let deep = format!("{}{}", "[".repeat(17), "]".repeat(17));
    let bodies: [&[u8]; 8] = [
        b"",
        b"{",
        b"{\"title\":\"\xff\"}",
        b"{\"a\":{\"b\":1,\"b\":2}}",
        b"{\"title\":\"\\u0000\"}",
        b"{\"title\":1e999}",
        b"{} {}",
        deep.as_bytes(),
    ];
    for body in bodies {
        let response = server.post(FORMS, json!({})).body(body.to_vec()).send().await;
        assert_eq!(response.code(), "malformed_json", "{}", String::from_utf8_lossy(body));
    }
}

#[tokio::test]
async fn all_problems_of_a_body_are_reported_together() {
    let server = Server::start().await;
    let form = json!({"title": "", "status": "published", "questions": [{"type": "dance"}, {"type": "email", "titel": "?"}]});
    let body = server.post(FORMS, form).send().await.expect(422);
    let mut found: Vec<_> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["pointer"].as_str().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("/questions/0/title", "missing_field"),
            ("/questions/0/type", "unknown_question_type"),
            ("/questions/1/titel", "unknown_field"),
            ("/questions/1/title", "missing_field"),
            ("/status", "read_only_field"),
            ("/title", "empty"),
        ]
    );
    assert_eq!(body["detail"], "6 problems in the definition");
}

#[tokio::test]
async fn at_most_the_first_hundred_problems_are_reported() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
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
