//! Headers of responses.

use crate::harness::document::FIXED_HEADERS;
use crate::harness::prelude::*;

/// The sorted names of the headers that not every response has.
fn other_headers(response: &TestResponse) -> String {
    let own = |name: &&str| *name != "x-request-id" && FIXED_HEADERS.iter().all(|(fixed, _)| fixed != name);
    let mut names: Vec<_> = response.headers.keys().map(|name| name.as_str()).filter(own).collect();
    names.sort_unstable();
    names.join(" ")
}

#[tokio::test]
async fn every_response_has_its_headers_and_no_others() {
    let (server, form) = Server::with_form().await;
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
        (server.call_without_key(Method::GET, "/problems/internal"), plain),
        (server.call_without_key(Method::GET, "/healthz"), plain),
        (server.call_without_key(Method::GET, "/readyz"), plain),
        (server.call_without_key(Method::GET, forms), "content-length content-type www-authenticate"),
        (server.call_without_key(Method::GET, "/nothing"), plain),
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
        (server.delete(one), "content-length"),
    ];
    // A second submission, so that the page of one above has a next page.
    server.submit(&form, json!({"q1": "Bob"})).await;
    for (number, (call, expected)) in cases.into_iter().enumerate() {
        let response = call.send().await;
        assert_eq!(other_headers(&response), expected, "case {number}: {response:?}");
    }
}

#[tokio::test]
async fn a_valid_request_id_is_kept_and_any_other_is_replaced() {
    let server = Server::start().await;
    let longest = "x".repeat(64);
    for id in ["a", "Order_42-b", &longest] {
        let response = server.get("/api/v1/nothing").header("x-request-id", id).send().await;
        assert_eq!((response.header("x-request-id"), &response.json()["request_id"]), (Some(id), &json!(id)));
    }
    let mut drawn = std::collections::BTreeSet::new();
    for id in ["", "a b", "a\"b", &"x".repeat(65), "é"] {
        let response = server.get("/api/v1/nothing").header("x-request-id", id).send().await;
        let own = response.header("x-request-id").unwrap().to_owned();
        assert_ne!(own, id);
        assert_eq!(response.json()["request_id"], own);
        drawn.insert(own);
    }
    assert_eq!(drawn.len(), 5);
}

#[tokio::test]
async fn options_and_refused_methods_list_the_allowed_methods() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    let cases = [
        ("/api/v1/forms".to_owned(), ["GET", "HEAD", "POST"].as_slice()),
        (format!("/api/v1/forms/{form}"), &["DELETE", "GET", "HEAD", "PATCH"]),
        (format!("/api/v1/forms/{form}/submissions"), &["GET", "HEAD", "POST"]),
        (format!("/api/v1/forms/{form}/responses/sub_1"), &["DELETE", "GET", "HEAD", "PATCH"]),
        ("/healthz".to_owned(), &["GET", "HEAD"]),
    ];
    for (path, methods) in cases {
        for (method, status) in [(Method::OPTIONS, 204), (Method::PUT, 405)] {
            let response = server.call_without_key(method, &path).send().await;
            let mut allowed: Vec<_> = response.header("allow").unwrap().split(',').collect();
            allowed.sort_unstable();
            assert_eq!((response.status.as_u16(), allowed.as_slice()), (status, methods), "{path}");
        }
    }
}

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let server = Server::start().await;
    for path in ["/api/v1/forms", "/api/v1/forms/frm_000000000000", "/healthz"] {
        let (get, head) = (server.get(path).send().await, server.call(Method::HEAD, path).send().await);
        assert_eq!((head.status, head.text()), (get.status, ""));
        assert_eq!(head.header("content-length"), get.header("content-length"), "{path}");
    }
}

#[tokio::test]
async fn large_responses_are_compressed_if_the_client_accepts_it() {
    let server = Server::start().await;
    let path = "/api/v1/openapi.json";
    let plain = server.get(path).send().await;
    let response = server.get(path).header("accept-encoding", "gzip").send().await;
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(response.body[..2], [0x1f, 0x8b]);
    assert!(response.body.len() < plain.body.len() / 4, "{} bytes", response.body.len());
    assert_eq!(response.header("content-type"), Some("application/json"));
    for (path, accepted, encoding) in [
        ("/healthz", "gzip", None),
        (path, "br, zstd", None),
        (path, "gzip;q=0", None),
        (path, "X-GZIP;q=0.1", Some("gzip")),
        (path, "gzip, deflate, br, zstd", Some("gzip")),
        (path, "identity;q=0.5, gzip; q=0.8", Some("gzip")),
        (path, "gzip;Q=0.000", None),
        (path, "gzip;q=0.5, identity", None),
        (path, "gzip;q=0.5, identity;q=0", Some("gzip")),
        (path, "*", None),
        (path, "", None),
        // Even what accepts no encoding at all is no reason for a refusal.
        (path, "identity;q=0", None),
        (path, "*;q=0", None),
        (path, "br, identity;q=0", None),
        (path, "gzip;q=0, identity;q=0", None),
        (path, "gzip, identity;q=0", Some("gzip")),
    ] {
        let response = server.get(path).header("accept-encoding", accepted).send().await;
        assert_eq!(
            (response.status.as_u16(), response.header("content-encoding")),
            (200, encoding),
            "{accepted}"
        );
        let form = server.post("/api/v1/forms", json!({"title": "Visit"}));
        form.header("accept-encoding", accepted).send().await.expect(201);
    }
}

#[tokio::test]
async fn over_a_socket_a_response_without_content_has_no_length() {
    let server = Server::start().await;
    let wire = server.listen().await;
    let path = format!("/api/v1/forms/{}", server.draft_form(questions()).await);
    let response = wire.call("DELETE", &path, &server.key, None).await;
    assert_eq!((response.status.as_u16(), response.text()), (204, ""));
    assert_eq!(response.header("content-length"), None, "RFC 9110 §8.6");
}
