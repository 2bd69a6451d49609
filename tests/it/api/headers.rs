//! What every answer bears, whatever it answers.

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Server, questions};

/// The names of the headers of `answer`, sorted, and that those with a fixed value have it.
#[track_caller]
fn names(answer: &Answer) -> String {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{answer:?}");
    }
    assert!(!answer.header("x-request-id").unwrap().is_empty());
    let own = |name: &&str| {
        let fixed = ["cache-control", "content-security-policy", "referrer-policy", "x-content-type-options"];
        !fixed.contains(name) && *name != "x-request-id"
    };
    let mut names: Vec<_> = answer.headers.keys().map(|name| name.as_str()).filter(own).collect();
    names.sort_unstable();
    names.join(" ")
}

#[tokio::test]
async fn every_answer_has_its_headers_and_no_others() {
    let server = Server::start().await;
    let form = server.published(questions()).await;
    let submission = server.submit(&form, json!({"q1": "Ada"})).await;
    let forms = "/api/v1/forms";
    let one = &format!("{forms}/{form}");
    let many = &format!("{one}/submissions");
    let answers = json!({"answers": {"q1": "Ada"}});
    let plain = "content-length content-type";
    let cases = [
        (server.get(forms), plain),
        (server.get(format!("{forms}?limit=1")), plain),
        (server.post(forms, json!({"title": "Visit"})), "content-length content-type etag location"),
        (server.post(format!("{forms}?dry_run=true"), json!({"title": "Visit"})), plain),
        (server.get(one), "content-length content-type etag"),
        (server.patch(one, json!({})), "content-length content-type etag"),
        (server.get(format!("{one}/versions")), plain),
        (server.get(format!("{forms}?count=true")), "content-length content-type forms-total"),
        (server.get(many), plain),
        (server.post(many, answers.clone()), "content-length content-type etag location"),
        (server.get(format!("{many}/{submission}")), "content-length content-type etag"),
        (server.get(format!("{many}?limit=1")), "content-length content-type link"),
        (server.get("/api/v1/whoami"), plain),
        (server.get("/api/v1/limits"), plain),
        (server.get("/api/v1/openapi.json"), plain),
        (server.open_call(Method::GET, "/problems/internal"), plain),
        (server.open_call(Method::GET, "/healthz"), plain),
        (server.open_call(Method::GET, "/readyz"), plain),
        (server.open_call(Method::GET, forms), "content-length content-type www-authenticate"),
        (server.open_call(Method::GET, "/"), plain),
        (server.get("/api/v1/forms/"), plain),
        (server.call(Method::PUT, forms), "allow content-length content-type"),
        (server.call(Method::OPTIONS, one), "allow content-length"),
        (server.call(Method::HEAD, forms), plain),
        (server.post(forms, json!(1)), plain),
        (server.post(forms, Value::Null).header("content-type", "text/plain"), plain),
        (server.get(forms).header("accept", "text/html"), plain),
        (server.get(forms).header("expect", "cake"), plain),
        (server.get(format!("/{}", "x".repeat(9_000))), plain),
        (server.get(forms).header("x-filler", &"x".repeat(40_000)), plain),
        (server.post(forms, json!({})).body("x".repeat(3 << 20)), plain),
        (server.call(Method::DELETE, one), "content-length"),
    ];
    // One submission more than the page of one above shows.
    server.submit(&form, json!({"q1": "Bob"})).await;
    for (number, (call, expected)) in cases.into_iter().enumerate() {
        let answer = call.send().await;
        assert_eq!(names(&answer), expected, "case {number}: {answer:?}");
    }
}

#[tokio::test]
async fn a_plain_request_id_is_kept_and_any_other_replaced() {
    let server = Server::start().await;
    let longest = "x".repeat(64);
    for id in ["a", "Order_42-b", &longest] {
        let answer = server.get("/api/v1/nothing").header("x-request-id", id).send().await;
        assert_eq!((answer.header("x-request-id"), &answer.json()["request_id"]), (Some(id), &json!(id)));
    }
    let mut drawn = std::collections::BTreeSet::new();
    for id in ["", "a b", "a\"b", &"x".repeat(65), "é"] {
        let answer = server.get("/api/v1/nothing").header("x-request-id", id).send().await;
        let own = answer.header("x-request-id").unwrap().to_owned();
        assert_ne!(own, id);
        assert_eq!(answer.json()["request_id"], own);
        drawn.insert(own);
    }
    assert_eq!(drawn.len(), 5);
}

#[tokio::test]
async fn options_and_refused_methods_name_the_methods_there_are() {
    let server = Server::start().await;
    let form = server.draft(questions()).await;
    let cases = [
        ("/api/v1/forms".to_owned(), ["GET", "HEAD", "POST"].as_slice()),
        (format!("/api/v1/forms/{form}"), &["DELETE", "GET", "HEAD", "PATCH"]),
        (format!("/api/v1/forms/{form}/submissions"), &["GET", "HEAD", "POST"]),
        (format!("/api/v1/forms/{form}/responses/sub_1"), &["DELETE", "GET", "HEAD", "PATCH"]),
        ("/healthz".to_owned(), &["GET", "HEAD"]),
    ];
    for (path, methods) in cases {
        for (method, status) in [(Method::OPTIONS, 204), (Method::PUT, 405)] {
            let answer = server.open_call(method, &path).send().await;
            let mut allowed: Vec<_> = answer.header("allow").unwrap().split(',').collect();
            allowed.sort_unstable();
            assert_eq!((answer.status.as_u16(), allowed.as_slice()), (status, methods), "{path}");
        }
    }
}

#[tokio::test]
async fn head_answers_as_get_does_without_a_body() {
    let server = Server::start().await;
    for path in ["/api/v1/forms", "/api/v1/forms/frm_000000000000", "/healthz"] {
        let (get, head) = (server.get(path).send().await, server.call(Method::HEAD, path).send().await);
        assert_eq!((head.status, head.text()), (get.status, ""));
        assert_eq!(head.header("content-length"), get.header("content-length"), "{path}");
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_ask() {
    let server = Server::start().await;
    let path = "/api/v1/openapi.json";
    let plain = server.get(path).send().await;
    for encoding in ["gzip", "zstd"] {
        let answer = server.get(path).header("accept-encoding", encoding).send().await;
        assert_eq!(answer.header("content-encoding"), Some(encoding));
        assert!(answer.body.len() < plain.body.len() / 4, "{} bytes", answer.body.len());
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    assert_eq!(&server.get(path).header("accept-encoding", "gzip").send().await.body[..2], [0x1f, 0x8b]);
    assert_eq!(
        &server.get(path).header("accept-encoding", "zstd").send().await.body[..4],
        [0x28, 0xb5, 0x2f, 0xfd]
    );
    for (path, encoding) in [("/healthz", "gzip, zstd"), (path, "br"), (path, "gzip;q=0")] {
        let answer = server.get(path).header("accept-encoding", encoding).send().await;
        assert_eq!(answer.header("content-encoding"), None, "{path} {encoding}");
    }
    for (accepted, encoding) in [
        ("X-GZIP;q=0.1", Some("gzip")),
        ("gzip, deflate, br, zstd", Some("zstd")),
        ("zstd;q=0.5, gzip; q=0.8", Some("gzip")),
        ("gzip;q=0, zstd;Q=0.000", None),
        ("gzip;q=0.5, identity", None),
        ("gzip;q=0.5, identity;q=0", Some("gzip")),
        ("gzip;q=high", None),
        ("*", None),
    ] {
        let answer = server.get(path).header("accept-encoding", accepted).send().await;
        assert_eq!(answer.header("content-encoding"), encoding, "{accepted}");
    }
}
