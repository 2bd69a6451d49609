//! HTTP/2: its deadlines and limits, eviction, shutdown, and clients that cancel their requests.

use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::routing::{get, post};
use bytes::Bytes;
use forms::http::HttpService;
use h2::{Ping, Reason, client};
use tokio::io::{AsyncWriteExt, copy, sink, split};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{advance, pause, sleep, timeout};

use crate::harness::prelude::*;

/// More than the socket buffers and the windows of a client that does not read.
const LARGE: usize = 16 << 20;

/// Routes that respond `hello` at `/`, [`LARGE`] bytes at `/large`, at `/slow` once released, and at `/upload` once they have
/// the body.
fn routes() -> (Router, &'static Semaphore) {
    let release: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0)));
    let slow = get(async || {
        release.acquire().await.unwrap().forget();
        "hello"
    });
    let large = get(async || "x".repeat(LARGE));
    let router = Router::new().route("/", get(async || "hello")).route("/slow", slow).route("/large", large);
    (router.route("/upload", post(async |_body: Bytes| "hello")), release)
}

async fn server(settings: HttpSettings) -> (ListeningServer, &'static Semaphore) {
    let (router, release) = routes();
    (ListeningServer::listen(Scheme::Https, router, settings).await, release)
}

/// Starts a server with one connection.
async fn server_of_one() -> (ListeningServer, &'static Semaphore) {
    let (router, release) = routes();
    let settings = HttpSettings { max_connections: 1, ..Default::default() };
    let service = HttpService::of_routes(router, settings.clone());
    (ListeningServer::listen(Scheme::Https, service, settings).await, release)
}

async fn connect(wire: &ListeningServer) -> Http2Client {
    wire.connect_http2(&client::Builder::new()).await
}

fn request(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}")).body(()).unwrap()
}

/// Waits until the server closes the connection.
async fn closed(ended: JoinHandle<Result<(), h2::Error>>) {
    drop(timeout(TIMEOUT, ended).await.expect("the connection is still open").unwrap());
}

#[tokio::test]
async fn requests_and_their_limits_are_those_of_http_1() {
    let server = Server::start().await;
    let wire = server.listen_over(Scheme::Https).await;
    let mut client = connect(&wire).await;
    let body = Bytes::from(json!({"title": "Visit", "questions": []}).to_string());
    let post = Request::post("https://localhost/api/v1/forms")
        .header("authorization", format!("Bearer {}", server.key))
        .header("content-type", "application/json");
    let made = client.send(post.body(()).unwrap(), body).await;
    let form = made.expect(201)["id"].as_str().unwrap().to_owned();
    assert!(made.header("location").unwrap().ends_with(&form), "{made:?}");
    for (name, value) in [
        ("connection", None),
        ("strict-transport-security", Some("max-age=31536000")),
        ("x-content-type-options", Some("nosniff")),
    ] {
        assert_eq!(made.header(name), value);
    }
    assert_eq!(client.get(&format!("/{}", "x".repeat(9_000))).await.code(), "uri_too_long");
    let large = Request::get("https://localhost/healthz").header("x-large", "y".repeat(33 << 10));
    assert_eq!(client.send(large.body(()).unwrap(), Bytes::new()).await.code(), "headers_too_large");
    let mut many = Request::get("https://localhost/healthz");
    for number in 0..65 {
        many = many.header(format!("x-{number}"), "y");
    }
    assert_eq!(client.send(many.body(()).unwrap(), Bytes::new()).await.code(), "headers_too_large");
    assert_eq!(client.get("/healthz").await.status, 200);
    assert_eq!(client.sender.current_max_send_streams(), 32);
}

#[tokio::test]
async fn the_host_is_in_authority_or_in_the_header_host() {
    let server = Server::start().await;
    let status = async |uri: &str, host: Option<&str>| {
        let mut request =
            Request::builder().version(axum::http::Version::HTTP_2).method(Method::GET).uri(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let peer = forms::http::ClientAddress([127, 0, 0, 1].into());
        let request = request.extension(peer).body(axum::body::Body::empty()).unwrap();
        Call::new(server.api.clone(), request).response().await.status().as_u16()
    };
    for (uri, host, expected) in [
        ("https://localhost/healthz", None, 200),
        ("https://localhost:8787/healthz", Some("localhost:8787"), 200),
        ("/healthz", Some("localhost"), 200),
        ("/healthz", None, 400),
        ("/healthz", Some("a b"), 400),
        ("https://localhost/healthz", Some("other"), 400),
        ("https://user@localhost/healthz", None, 400),
    ] {
        assert_eq!(status(uri, host).await, expected, "{uri} {host:?}");
    }
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let (wire, _) = server(HttpSettings { head_timeout: SHORT, ..Default::default() }).await;
    closed(connect(&wire).await.ended).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_even_if_it_sends_pings() {
    let (wire, release) = server(HttpSettings::default()).await;
    let mut client = connect(&wire).await;
    pause();
    // Far longer than the idle timeout, but not idle.
    let (response, _) = client.begin(request("/slow"), false).await.unwrap();
    for _ in 0..30 {
        client.pings.ping(Ping::opaque()).await.unwrap();
        advance(Duration::from_secs(10)).await;
    }
    release.add_permits(1);
    assert_eq!(receive(response).await.unwrap().text(), "hello");
    let mut pings = 0;
    while client.pings.ping(Ping::opaque()).await.is_ok() {
        pings += 1;
        assert!(pings < 30, "the connection is still open");
        advance(Duration::from_secs(10)).await;
    }
    assert!(pings > 1, "closed after {pings} pings");
    client.ended.await.unwrap().ok();
}

#[tokio::test]
async fn a_connection_whose_client_does_not_allow_a_response_is_closed() {
    let (wire, _) = server(HttpSettings::default()).await;
    let mut client = wire.connect_http2(client::Builder::new().initial_window_size(0)).await;
    pause();
    let mut held = Vec::new();
    for path in ["/", "/large"] {
        held.push(client.begin(request(path), false).await.unwrap().0.await.unwrap());
    }
    // The paused clock moves once the server waits for the client.
    sleep(Duration::from_secs(6)).await;
    closed(client.ended).await;
}

#[tokio::test]
async fn a_connection_whose_client_allows_too_little_of_a_response_is_closed() {
    let (wire, _) = server(HttpSettings::default()).await;
    let mut client = wire.connect_http2(client::Builder::new().initial_window_size(1_000)).await;
    pause();
    let mut stream = client.begin(request("/large"), false).await.unwrap().0.await.unwrap().into_body();
    let mut seconds = 0;
    while let Some(Ok(data)) = stream.data().await {
        stream.flow_control().release_capacity(data.len()).unwrap();
        advance(Duration::from_secs(1)).await;
        seconds += 1;
        assert!(seconds < 60, "the connection is still open");
    }
    closed(client.ended).await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_the_whole_response() {
    let (wire, _) = server(HttpSettings::default()).await;
    let mut client = connect(&wire).await;
    pause();
    let mut stream = client.begin(request("/large"), false).await.unwrap().0.await.unwrap().into_body();
    let (mut seen, mut waited) = (0, 0);
    while let Some(data) = stream.data().await {
        let data = data.unwrap();
        stream.flow_control().release_capacity(data.len()).unwrap();
        seen += data.len();
        // 20 KiB a second.
        while waited < seen / (20 << 10) {
            waited += 1;
            advance(Duration::from_secs(1)).await;
        }
    }
    assert_eq!(seen, LARGE);
}

#[tokio::test]
async fn a_client_that_cancels_its_requests_is_disconnected() {
    let (wire, release) = server(HttpSettings::default()).await;
    let mut other = connect(&wire).await;
    for path in ["/slow", "/large", "/"] {
        let mut client = connect(&wire).await;
        let mut cancelled = 0;
        while let Ok((_, mut stream)) = client.begin(request(path), false).await {
            stream.send_reset(Reason::CANCEL);
            cancelled += 1;
            assert!(cancelled < 100_000, "the connection is still open");
            if cancelled % 10 == 0 {
                assert_eq!(other.get("/").await.text(), "hello");
            }
        }
        closed(client.ended).await;
    }
    // No cancelled request still waits.
    release.add_permits(1);
    assert_eq!(timeout(TIMEOUT, other.get("/slow")).await.expect("a response").text(), "hello");
}

#[tokio::test]
async fn a_client_that_cancels_every_other_request_is_served() {
    let (wire, _) = server(HttpSettings::default()).await;
    let mut client = connect(&wire).await;
    for _ in 0..300 {
        let (_, mut stream) = client.begin(request("/slow"), false).await.unwrap();
        // The request has begun.
        client.pings.ping(Ping::opaque()).await.unwrap();
        stream.send_reset(Reason::CANCEL);
        assert_eq!(client.get("/").await.text(), "hello");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_for_the_next_and_a_busy_one_is_not() {
    let (wire, release) = server(HttpSettings { max_connections: 2, ..Default::default() }).await;
    let mut busy = connect(&wire).await;
    let (response, _) = busy.begin(request("/slow"), false).await.unwrap();
    let mut idle = connect(&wire).await;
    assert_eq!(idle.get("/").await.text(), "hello");
    let mut next = connect(&wire).await;
    assert_eq!(next.get("/").await.text(), "hello");
    closed(idle.ended).await;
    release.add_permits(1);
    assert_eq!(receive(response).await.unwrap().text(), "hello");
}

#[tokio::test]
async fn a_connection_beyond_the_limit_gets_one_response() {
    let (wire, release) = server_of_one().await;
    let mut busy = connect(&wire).await;
    let (response, _) = busy.begin(request("/slow"), false).await.unwrap();
    // The request has begun.
    busy.pings.ping(Ping::opaque()).await.unwrap();
    for method in [Method::GET, Method::HEAD] {
        let mut refused = connect(&wire).await;
        let request = Request::builder().method(&method).uri("https://localhost/");
        let request = request.header("x-request-id", "chosen-by-client").body(()).unwrap();
        let (overloaded, _) = refused.begin(request, false).await.unwrap();
        let overloaded = receive(overloaded).await.unwrap();
        assert_eq!((overloaded.status.as_u16(), overloaded.header("connection")), (503, None));
        assert_eq!(overloaded.header("x-request-id"), Some("chosen-by-client"));
        match method {
            Method::HEAD => assert_eq!(overloaded.text(), ""),
            _ => assert_eq!(overloaded.code(), "overloaded"),
        }
        closed(refused.ended).await;
    }
    release.add_permits(1);
    assert_eq!(receive(response).await.unwrap().text(), "hello");
}

#[tokio::test]
async fn a_connection_that_only_receives_bodies_is_closed_for_the_next() {
    let (wire, release) = server_of_one().await;
    let upload = || Request::post("https://localhost/upload").body(()).unwrap();
    let mut slow = connect(&wire).await;
    let _bodies = [slow.begin(upload(), true).await.unwrap(), slow.begin(upload(), true).await.unwrap()];
    slow.pings.ping(Ping::opaque()).await.unwrap();
    let mut busy = connect(&wire).await;
    let (response, _) = busy.begin(request("/slow"), false).await.unwrap();
    let _body = busy.begin(upload(), true).await.unwrap();
    busy.pings.ping(Ping::opaque()).await.unwrap();
    closed(slow.ended).await;
    assert_eq!(connect(&wire).await.get("/").await.code(), "overloaded");
    release.add_permits(1);
    assert_eq!(receive(response).await.unwrap().text(), "hello");
}

/// A frame on stream 0, or for `PRIORITY` on stream 1 (RFC 9113 §4.1).
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let stream = u8::from(kind == PRIORITY);
    [&[0, 0, payload.len() as u8, kind, 0, 0, 0, 0, stream], payload].concat()
}

const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const UNKNOWN: u8 = 0xfa;

#[tokio::test]
async fn a_client_that_sends_frames_without_requests_is_disconnected() {
    let (wire, _) = server(HttpSettings::default()).await;
    let mut other = connect(&wire).await;
    for (kind, payload) in [
        (PRIORITY, &[0, 0, 0, 0, 1][..]),
        (SETTINGS, &[]),
        (PING, &[0; 8]),
        (WINDOW_UPDATE, &[0, 0, 0, 1]),
        (UNKNOWN, &[]),
        (UNKNOWN, &[0; 200]),
    ] {
        let (mut reading, mut writing) = split(wire.connect_h2_tls().await);
        writing.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        writing.write_all(&frame(SETTINGS, &[])).await.unwrap();
        let (frames, mut discarded) = (frame(kind, payload).repeat(100), sink());
        let flood = async {
            for _ in 0..100 {
                writing.write_all(&frames).await.ok();
                assert_eq!(other.get("/").await.text(), "hello");
            }
        };
        tokio::select! {
            _ended = copy(&mut reading, &mut discarded) => {}
            () = flood => panic!("the connection is still open after 10,000 frames of type {kind}"),
        }
    }
}

#[tokio::test]
async fn shutdown_finishes_requests_and_closes_idle_connections() {
    let (wire, release) = server(HttpSettings::default()).await;
    let (mut busy, mut idle) = (connect(&wire).await, connect(&wire).await);
    let (response, _) = busy.begin(request("/slow"), false).await.unwrap();
    assert_eq!(idle.get("/").await.text(), "hello");
    busy.pings.ping(Ping::opaque()).await.unwrap();
    let stopped = wire.stop();
    closed(idle.ended).await;
    assert!(!stopped.is_finished(), "the server stopped before the request was finished");
    release.add_permits(1);
    assert_eq!(receive(response).await.unwrap().text(), "hello");
    closed(busy.ended).await;
    timeout(TIMEOUT, stopped).await.expect("the server did not stop").unwrap();
}
