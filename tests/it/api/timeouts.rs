//! Timeouts and limits of connections, heads and bodies, and shutdown. Over sockets.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, advance, pause, sleep, timeout};

use crate::harness::document::check_headers;
use crate::harness::prelude::*;

/// Starts a server with one route that responds `hello`.
async fn hello(scheme: Scheme, settings: HttpSettings) -> ListeningServer {
    serve(scheme, "hello".to_owned(), settings).await
}

async fn serve(scheme: Scheme, text: String, settings: HttpSettings) -> ListeningServer {
    let router = Router::new().route("/", get(async move || text.clone()));
    ListeningServer::listen(scheme, router, settings).await
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A whole request.
fn post(server: &Server, path: &str, body: &str) -> String {
    server.head("POST", path, &format!("Content-Length: {}\r\n", body.len())) + body
}

async fn a_request_head_beyond_the_limits_gets_a_problem_document(scheme: Scheme) {
    let server = Server::start().await;
    let wire = server.listen_over(scheme).await;
    let many: String = (0..64).map(|number| format!("X-{number}: y\r\n")).collect();
    for (target, headers, code) in [
        (format!("/{}", "x".repeat(8_192)), String::new(), "uri_too_long"),
        ("/healthz".to_owned(), many, "headers_too_large"),
        ("/healthz".to_owned(), format!("X-Large: {}\r\n", "y".repeat(32 << 10)), "headers_too_large"),
        ("/healthz".to_owned(), "Expect: cake\r\n".to_owned(), "expectation_failed"),
        ("/nothing".to_owned(), String::new(), "route_not_found"),
    ] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
        let refused = parse_response(&wire.exchange(text.as_bytes()).await);
        check_headers(&refused);
        assert_eq!(refused.code(), code);
    }
}

async fn a_body_that_is_too_large_is_refused_before_it_is_sent(scheme: Scheme) {
    let server = Server::start().await;
    let wire = server.listen_over(scheme).await;
    for length in [99_999_999, u64::MAX - 2] {
        let headers = format!("Content-Length: {length}\r\nExpect: 100-continue\r\n");
        let head = server.head("POST", "/api/v1/forms", &headers);
        let refused = parse_response(&wire.exchange(head.as_bytes()).await);
        check_headers(&refused);
        assert_eq!(refused.code(), "body_too_large");
    }
}

async fn a_client_that_keeps_sending_can_read_the_refusal(scheme: Scheme) {
    let server = Server::start().await;
    let wire = server.listen_over(scheme).await;
    let request = post(&server, "/api/v1/forms", &"x".repeat(3 << 20));
    assert_eq!(parse_response(&wire.exchange(request.as_bytes()).await).code(), "body_too_large");
}

async fn a_chunked_body_is_accepted_up_to_the_limit(scheme: Scheme) {
    let (server, form) = Server::with_form().await;
    let wire = server.listen_over(scheme).await;
    let path = format!("/api/v1/forms/{form}/submissions");
    let head = server.head("POST", &path, "Connection: close\r\nTransfer-Encoding: chunked\r\n");
    let body = "c\r\n{\"answers\":{\r\n5\r\n\"q1\":\r\n7\r\n\"Ada\"}}\r\n0\r\n\r\n";
    let stored = parse_response(&wire.exchange(format!("{head}{body}").as_bytes()).await);
    assert_eq!(stored.expect(201)["answers"], json!({"q1": "Ada"}));
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let mut stream = wire.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..17 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    assert_eq!(parse_response(&read_until_closed(&mut stream).await).code(), "body_too_large");
}

async fn a_body_that_stalls_gets_request_timeout(scheme: Scheme) {
    let server = Server::with_settings(HttpSettings { body_timeout: SHORT, ..Default::default() }).await;
    let wire = server.listen_over(scheme).await;
    let head = server.head("POST", "/api/v1/forms", "Content-Length: 20\r\n") + "{\"title\":";
    assert_eq!(parse_response(&wire.exchange(head.as_bytes()).await).code(), "request_timeout");
}

async fn a_body_that_arrives_fast_enough_can_take_longer_than_the_timeout(scheme: Scheme) {
    let settings = HttpSettings { body_timeout: SHORT, min_body_rate: 1, ..Default::default() };
    let server = Server::with_settings(settings).await;
    let wire = server.listen_over(scheme).await;
    let body = json!({"title": "Visit", "questions": []}).to_string();
    let (first, rest) = body.split_at(10);
    let headers = format!("Connection: close\r\nContent-Length: {}\r\n", body.len());
    let head = server.head("POST", "/api/v1/forms", &headers) + first;
    let mut stream = wire.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    // Ten bytes extend the timeout by ten seconds: the read below times out long before the server.
    let mut byte = [0];
    assert!(timeout(SHORT * 3, stream.read(&mut byte)).await.is_err(), "the server did not wait");
    stream.write_all(rest.as_bytes()).await.unwrap();
    parse_response(&read_until_closed(&mut stream).await).expect(201);
}

async fn a_connection_that_sends_nothing_is_closed_without_a_response(scheme: Scheme) {
    let wire = hello(scheme, HttpSettings { first_byte_timeout: SHORT, ..Default::default() }).await;
    let mut stream = wire.connect().await;
    assert_eq!(read_until_closed(&mut stream).await, "");
}

async fn a_head_that_stalls_gets_request_timeout(scheme: Scheme) {
    let wire = hello(scheme, HttpSettings { head_timeout: SHORT, ..Default::default() }).await;
    for begun in ["G", "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "] {
        let refused = parse_response(&wire.exchange(begun.as_bytes()).await);
        refused.expect_problem(408, "request_timeout");
        check_headers(&refused);
        assert_eq!(refused.header("x-request-id"), refused.json()["request_id"].as_str());
    }
}

async fn a_head_that_arrives_byte_by_byte_gets_no_extra_time(scheme: Scheme) {
    let wire = hello(scheme, HttpSettings { head_timeout: SHORT * 4, ..Default::default() }).await;
    let mut stream = wire.connect().await;
    let begun = Instant::now();
    let mut byte = [0];
    for letter in b"GET / HTTP/1.1\r\nHost: ".iter().chain([b'a'; 1_000].iter()) {
        if stream.write_all(&[*letter]).await.is_err() {
            break;
        }
        // Each byte arrives within the timeout, all of them do not.
        if timeout(SHORT, stream.read(&mut byte)).await.is_ok() {
            break;
        }
    }
    assert!(begun.elapsed() < TIMEOUT, "closed after {:?}", begun.elapsed());
}

async fn an_idle_connection_is_closed_and_a_busy_one_is_not(scheme: Scheme) {
    let wire = hello(scheme, HttpSettings { idle_timeout: SHORT * 2, ..Default::default() }).await;
    let mut stream = wire.connect().await;
    let begun = Instant::now();
    while begun.elapsed() < SHORT * 6 {
        stream.write_all(REQUEST).await.unwrap();
        read_hello(&mut stream).await;
        let mut byte = [0];
        assert!(
            timeout(SHORT, stream.read(&mut byte)).await.is_err(),
            "closed after half of the idle timeout"
        );
    }
    assert_eq!(read_until_closed(&mut stream).await, "");
}

async fn pipelined_requests_are_answered_in_order(scheme: Scheme) {
    let wire = hello(scheme, HttpSettings::default()).await;
    let mut stream = wire.connect().await;
    let last = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(&[REQUEST, REQUEST, last].concat()).await.unwrap();
    assert_eq!(read_until_closed(&mut stream).await.matches("hello").count(), 3);
}

async fn shutdown_finishes_requests_and_closes_idle_connections(scheme: Scheme) {
    static BEGUN: Notify = Notify::const_new();
    static RELEASE: Notify = Notify::const_new();
    let slow = get(async || {
        BEGUN.notify_one();
        RELEASE.notified().await;
        "hello"
    });
    let router = Router::new().route("/", get(async || "hello")).route("/slow", slow);
    let wire = ListeningServer::listen(scheme, router, HttpSettings::default()).await;
    let address = wire.address;
    let (mut silent, mut idle, mut busy) = (wire.connect().await, wire.connect().await, wire.connect().await);
    idle.write_all(REQUEST).await.unwrap();
    read_hello(&mut idle).await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    BEGUN.notified().await;
    let stopped = wire.stop();
    for client in [&mut silent, &mut idle] {
        assert_eq!(read_until_closed(client).await, "");
        // The first byte is answered with a reset, so the second fails: the shutdown does not wait for such clients.
        client.write_all(b"G").await.ok();
        assert!(client.write_all(b"G").await.is_err(), "the connection is still open");
    }
    assert!(TcpStream::connect(address).await.is_err(), "the server still listens");
    assert!(!stopped.is_finished(), "the server stopped before the request was finished");
    RELEASE.notify_one();
    assert!(read_until_closed(&mut busy).await.ends_with("hello"));
    timeout(TIMEOUT, stopped).await.expect("the server did not stop").unwrap();
}

async fn a_panic_in_a_handler_does_not_stop_the_server(scheme: Scheme) {
    let server = Server::start().await;
    let wire = server.listen_over(scheme).await;
    server.clock.set("1969-12-31T23:59:59Z");
    let form = || Some(json!({"title": "Visit", "questions": []}));
    assert_eq!(wire.call("POST", "/api/v1/forms", &server.key, form()).await.code(), "internal");
    server.clock.set("2026-11-20T09:00:00Z");
    wire.call("POST", "/api/v1/forms", &server.key, form()).await.expect(201);
}

async fn an_incomplete_head_does_not_cut_off_the_response_before_it(scheme: Scheme) {
    let settings = HttpSettings { head_timeout: SHORT, ..Default::default() };
    let wire = serve(scheme, "x".repeat(32 << 20), settings).await;
    let mut stream = wire.connect().await;
    let (half, rest) = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".split_at(20);
    stream.write_all(REQUEST).await.unwrap();
    wait_for_response(&stream).await;
    stream.write_all(half).await.unwrap();
    let mut silent = wire.connect().await;
    assert!(timeout(SHORT * 4, silent.read(&mut [0])).await.is_err(), "the silent connection was closed");
    let mut seen = vec![0; 32 << 20];
    stream.read_exact(&mut seen).await.unwrap();
    stream.write_all(rest).await.unwrap();
    let text = read_until_closed(&mut stream).await;
    assert_eq!(text.matches("HTTP/1.1 200").count(), 1, "the incomplete request was answered");
    assert_eq!(text.matches("408").count(), 0);
}

async fn a_connection_whose_client_does_not_read_is_closed(scheme: Scheme) {
    pause();
    let wire = serve(scheme, "x".repeat(32 << 20), HttpSettings::default()).await;
    let mut client = wire.connect().await;
    client.write_all(REQUEST).await.unwrap();
    // The paused clock moves once the server waits for the client.
    sleep(Duration::from_secs(6)).await;
    let ended = client.read_to_end(&mut Vec::new()).await;
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

async fn a_client_that_reads_slowly_gets_the_whole_response(scheme: Scheme) {
    pause();
    let wire = serve(scheme, "x".repeat(1 << 20), HttpSettings::default()).await;
    let mut slow = wire.connect().await;
    slow.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let (mut seen, mut buffer) = (0, vec![0; 20 << 10]);
    loop {
        match slow.read(&mut buffer).await.unwrap() {
            0 => break,
            count => seen += count,
        }
        advance(Duration::from_secs(1)).await;
    }
    assert!(seen > 1 << 20, "{seen} bytes");
}

async fn a_client_that_half_closes_after_its_request_gets_the_response(scheme: Scheme) {
    let (server, form) = Server::with_form().await;
    let wire = server.listen_over(scheme).await;
    let body = json!({"answers": {"q1": "Ada"}}).to_string();
    let request = post(&server, &format!("/api/v1/forms/{form}/submissions"), &body);
    for _ in 0..20 {
        let mut stream = wire.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        parse_response(&read_until_closed(&mut stream).await).expect(201);
    }
}

over_http_and_https! {
    a_request_head_beyond_the_limits_gets_a_problem_document,
    a_body_that_is_too_large_is_refused_before_it_is_sent,
    a_client_that_keeps_sending_can_read_the_refusal,
    a_chunked_body_is_accepted_up_to_the_limit,
    a_body_that_stalls_gets_request_timeout,
    a_body_that_arrives_fast_enough_can_take_longer_than_the_timeout,
    a_connection_that_sends_nothing_is_closed_without_a_response,
    a_head_that_stalls_gets_request_timeout,
    a_head_that_arrives_byte_by_byte_gets_no_extra_time,
    an_idle_connection_is_closed_and_a_busy_one_is_not,
    pipelined_requests_are_answered_in_order,
    shutdown_finishes_requests_and_closes_idle_connections,
    a_panic_in_a_handler_does_not_stop_the_server,
    an_incomplete_head_does_not_cut_off_the_response_before_it,
    a_client_that_half_closes_after_its_request_gets_the_response,
    a_connection_whose_client_does_not_read_is_closed,
    a_client_that_reads_slowly_gets_the_whole_response,
}
