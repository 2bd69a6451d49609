//! Requests that are not valid HTTP, or that two parsers could read differently. Over sockets.

use tokio::io::AsyncWriteExt;

use crate::harness::document::check_headers;
use crate::harness::prelude::*;

/// Returns status and code of the response to `request`, after which the server closes the connection.
async fn refusal(wire: &ListeningServer, request: &[u8]) -> (u16, String) {
    let refused = parse_response(&wire.exchange(request).await);
    check_headers(&refused);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(refused.header("x-request-id"), refused.json()["request_id"].as_str());
    (refused.status.as_u16(), refused.code())
}

/// Returns the status of hyper's own response to `request`, which has no body and closes the connection.
async fn hyper_status(wire: &ListeningServer, request: &[u8]) -> u16 {
    let refused = parse_response(&wire.exchange(request).await);
    assert_eq!((refused.header("connection"), refused.text()), (Some("close"), ""));
    refused.status.as_u16()
}

#[tokio::test]
async fn malformed_http_gets_a_status() {
    let wire = Server::start().await.listen().await;
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(70_000));
    let large_head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(300_000));
    let many_headers = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(110));
    let cases: [(&[u8], u16); 15] = [
        (b"hello\r\n\r\n", 400),
        (b"GET /\r\nHost: a\r\n\r\n", 400),
        (b"GET / a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 400),
        (b"G\xffT / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400), // TLS
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        // hyper cannot represent the two largest 64-bit lengths; smaller ones get 413.
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n", 431),
        (long_target.as_bytes(), 414),
        (large_head.as_bytes(), 431),
        (many_headers.as_bytes(), 431),
    ];
    for (request, status) in cases {
        let text = String::from_utf8_lossy(&request[..request.len().min(60)]);
        assert_eq!(hyper_status(&wire, request).await, status, "{text}");
    }
}

#[tokio::test]
async fn malformed_http_after_a_request_does_not_affect_its_response() {
    let wire = Server::start().await.listen().await;
    let text = wire.exchange(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nhello\r\n\r\n").await;
    let (first, second) = text.split_at(text.rfind("HTTP/1.1 ").unwrap());
    assert_eq!(parse_response(first).status, 200);
    assert_eq!((parse_response(second).status.as_u16(), parse_response(second).text()), (400, ""));
}

#[tokio::test]
async fn a_request_needs_exactly_one_valid_host_header() {
    let wire = Server::start().await.listen().await;
    let get = async |version, hosts: &str| {
        let text = format!("GET /healthz {version}\r\n{hosts}Connection: close\r\n\r\n");
        parse_response(&wire.exchange(text.as_bytes()).await)
    };
    for host in ["a", "localhost:8787", "forms.example.com", "127.0.0.1:80", "[::1]", "[::1]:8787", "a_b:"] {
        assert_eq!(get("HTTP/1.1", &format!("Host: {host}\r\n")).await.status, 200, "{host}");
    }
    for host in
        ["", "a b", "a/b", "me@a", "a:b", "a:80:80", "a:65536", "a:+1", ":80", "::1", "[a]", "[::1", "\u{e9}"]
    {
        let refused = get("HTTP/1.1", &format!("Host: {host}\r\n")).await;
        refused.expect_problem(400, "invalid_header");
    }
    for hosts in ["", "Host: a\r\nHost: a\r\n"] {
        assert_eq!(get("HTTP/1.1", hosts).await.code(), "invalid_header", "{hosts}");
    }
    // HTTP/1.0 does not require the header, and simple probes omit it.
    assert_eq!(get("HTTP/1.0", "").await.status, 200);
}

#[tokio::test]
async fn a_repeated_singleton_header_is_refused() {
    let server = Server::start().await;
    let wire = server.listen().await;
    let body = "{\"title\":\"Visit\"}";
    let post = async |more: &str| {
        let headers = format!("Connection: close\r\nContent-Length: {}\r\n{more}", body.len());
        let request = server.head("POST", "/api/v1/forms", &headers) + body;
        parse_response(&wire.exchange(request.as_bytes()).await)
    };
    for (more, name) in [
        ("Authorization: Bearer fk_other\r\n", "authorization"),
        ("Content-Type: application/json\r\n", "content-type"),
        ("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", "content-encoding"),
        ("Idempotency-Key: a\r\nIdempotency-Key: a\r\n", "idempotency-key"),
        ("Expect: 100-continue\r\nExpect: cake\r\n", "expect"),
        ("If-Match: \"r1\"\r\nIf-Match: \"r1\"\r\n", "if-match"),
    ] {
        let refused = post(more).await;
        refused.expect_problem(400, "invalid_header");
        assert!(refused.json()["detail"].as_str().unwrap().contains(name), "{}", refused.text());
    }
    post("Accept: */*\r\nAccept: text/html\r\n").await.expect(201);
}

#[tokio::test]
async fn a_chunked_request_is_the_last_on_its_connection() {
    let server = Server::start().await;
    let wire = server.listen().await;
    let lengths = ["", "Content-Length: 5\r\n"];
    for (before, after) in [(lengths[0], lengths[0]), (lengths[0], lengths[1]), (lengths[1], lengths[0])] {
        let headers = format!("{before}Transfer-Encoding: chunked\r\n{after}");
        let body = "12\r\n{\"title\":\"Visit\"} \r\n0\r\n\r\n";
        let chunked = server.head("POST", "/api/v1/forms", &headers) + body;
        let next = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        let text = wire.exchange(format!("{chunked}{next}").as_bytes()).await;
        let made = parse_response(&text);
        made.expect(201);
        assert_eq!(made.header("connection"), Some("close"));
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    }
}

#[tokio::test]
async fn transfer_codings_other_than_chunked_are_refused() {
    let wire = Server::start().await.listen().await;
    let request = |version, codings| {
        format!("POST /api/v1/forms {version}\r\nHost: a\r\n{codings}\r\n0\r\n\r\n").into_bytes()
    };
    for codings in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let refused = refusal(&wire, &request("HTTP/1.1", codings)).await;
        assert_eq!(refused, (400, "invalid_header".into()), "{codings}");
    }
    for (version, codings) in
        [("HTTP/1.1", "Transfer-Encoding: xchunked\r\n"), ("HTTP/1.0", "Transfer-Encoding: chunked\r\n")]
    {
        assert_eq!(hyper_status(&wire, &request(version, codings)).await, 400, "{version} {codings}");
    }
}

#[tokio::test]
async fn an_invalid_chunk_aborts_the_body() {
    let server = Server::start().await;
    let wire = server.listen().await;
    for chunk in ["x\r\n", "5\r\n{\"titleXX", "fffffffffffffffff\r\n", "-1\r\n"] {
        let head = server.head("POST", "/api/v1/forms", "Transfer-Encoding: chunked\r\n");
        let request = format!("{head}{chunk}\r\n\r\n");
        assert_eq!(refusal(&wire, request.as_bytes()).await, (400, "malformed_json".into()), "{chunk}");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_within_a_request_head_gets_no_response() {
    let wire = Server::start().await.listen().await;
    let mut stream = wire.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "");
}
