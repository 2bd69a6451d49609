//! Limits on connections, in total and per address, and which connection is closed for the next. Over sockets.

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use forms::http::HttpService;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::harness::document::check_headers;
use crate::harness::prelude::*;

/// Bytes of a body for `/upload`.
const UPLOAD: usize = 1 << 20;

const ORIGIN: &str = "https://app.example.com";

const ONE: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

/// Reports when requests of `/slow` begin, and lets them end. Counts the bytes that `/upload` has received.
struct Gate {
    begun: &'static Semaphore,
    release: &'static Semaphore,
    received: &'static Semaphore,
}

/// Starts a server that responds `hello` at once at `/`, `/healthz` and `/readyz`, at `/slow` once released, and at
/// `/upload` once it has the body.
async fn server(
    scheme: Scheme,
    max_connections: usize,
    per_address: Option<usize>,
) -> (ListeningServer, Gate) {
    let [begun, release, received] = [(); 3].map(|()| &*Box::leak(Box::new(Semaphore::new(0))));
    let slow = get(async || {
        begun.add_permits(1);
        release.acquire().await.unwrap().forget();
        "hello"
    });
    let hello = || get(async || "hello");
    // More than the socket buffers of a client that does not read.
    let large = get(async || "x".repeat(16 << 20));
    let upload = post(async |mut body: Body| {
        while let Some(Ok(frame)) = body.frame().await {
            received.add_permits(frame.into_data().unwrap().len());
        }
        "hello"
    });
    let router = Router::new().route("/slow", slow).route("/large", large).route("/upload", upload);
    let router = router.route("/", hello()).route("/healthz", hello()).route("/readyz", hello());
    let settings = HttpSettings {
        max_connections,
        max_connections_per_address: per_address,
        cors_origins: vec![ORIGIN.parse().unwrap()],
        ..Default::default()
    };
    let service = HttpService::of_routes(router, settings.clone());
    (ListeningServer::listen(scheme, service, settings).await, Gate { begun, release, received })
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nOrigin: {ORIGIN}\r\n\r\n")
}

/// Opens a connection with one completed request.
async fn idle_connection(wire: &ListeningServer, ip: [u8; 4]) -> ClientStream {
    let mut stream = wire.connect_from(ip).await;
    exchange_hello(&mut stream).await;
    stream
}

/// Sends a request and reads its response; the connection stays open.
async fn exchange_hello(stream: &mut ClientStream) {
    stream.write_all(request("/").as_bytes()).await.unwrap();
    read_hello(stream).await;
}

/// Opens a connection with a request in flight.
async fn busy_connection(wire: &ListeningServer, gate: &Gate, ip: [u8; 4]) -> ClientStream {
    let mut stream = wire.connect_from(ip).await;
    stream.write_all(request("/slow").as_bytes()).await.unwrap();
    gate.begun.acquire().await.unwrap().forget();
    stream
}

/// Opens a connection with a request whose body has arrived up to its first byte.
async fn uploading_connection(wire: &ListeningServer, gate: &Gate, ip: [u8; 4]) -> ClientStream {
    let mut stream = wire.connect_from(ip).await;
    let head = format!("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: {UPLOAD}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    send_body(&mut stream, gate, 1).await;
    stream
}

/// Sends a part of a body, and waits until the server has received it.
async fn send_body(stream: &mut ClientStream, gate: &Gate, bytes: usize) {
    stream.write_all(&vec![b' '; bytes]).await.unwrap();
    gate.received.acquire_many(bytes as u32).await.unwrap().forget();
}

/// Returns the response on a new connection, which the server closes after it.
async fn last_response(wire: &ListeningServer, ip: [u8; 4], path: &str) -> TestResponse {
    let mut stream = wire.connect_from(ip).await;
    stream.write_all(request(path).as_bytes()).await.unwrap();
    let response = parse_response(&read_until_closed(&mut stream).await);
    assert_eq!(response.header("connection"), Some("close"));
    response
}

async fn the_connection_that_is_idle_longest_is_closed_for_the_next(scheme: Scheme) {
    let (wire, _) = server(scheme, 3, None).await;
    let mut first = idle_connection(&wire, ONE).await;
    let mut second = idle_connection(&wire, OTHER).await;
    let mut silent = wire.connect_from(ONE).await;
    exchange_hello(&mut first).await;
    let mut third = idle_connection(&wire, ONE).await;
    assert_eq!(read_until_closed(&mut second).await, "");
    let mut fourth = idle_connection(&wire, OTHER).await;
    assert_eq!(read_until_closed(&mut silent).await, "");
    for stream in [&mut first, &mut third, &mut fourth] {
        exchange_hello(stream).await;
    }
}

async fn an_address_cannot_exceed_its_share(scheme: Scheme) {
    let (wire, _) = server(scheme, 8, Some(2)).await;
    let mut other = idle_connection(&wire, OTHER).await;
    let mut first = idle_connection(&wire, ONE).await;
    let mut second = idle_connection(&wire, ONE).await;
    let mut third = idle_connection(&wire, ONE).await;
    assert_eq!(read_until_closed(&mut first).await, "");
    for stream in [&mut other, &mut second, &mut third] {
        exchange_hello(stream).await;
    }
}

async fn a_connection_beyond_a_busy_share_is_refused_at_once(scheme: Scheme) {
    let (wire, gate) = server(scheme, 8, Some(2)).await;
    let mut under_way = [busy_connection(&wire, &gate, ONE).await, busy_connection(&wire, &gate, ONE).await];
    let refused = last_response(&wire, ONE, "/").await;
    refused.expect_problem(503, "overloaded");
    check_headers(&refused);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("x-request-id"), refused.json()["request_id"].as_str());
    assert_eq!(refused.header("access-control-allow-origin"), Some(ORIGIN));
    idle_connection(&wire, OTHER).await;
    gate.release.add_permits(2);
    for stream in &mut under_way {
        exchange_hello(stream).await;
    }
}

async fn health_is_served_while_every_connection_is_busy(scheme: Scheme) {
    let (wire, gate) = server(scheme, 1, None).await;
    let mut under_way = busy_connection(&wire, &gate, ONE).await;
    // More than are reserved for health checks: they are closed for each other.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(wire.connect_from(ONE).await);
    }
    for path in ["/healthz", "/readyz"] {
        let healthy = last_response(&wire, OTHER, path).await;
        assert_eq!((healthy.status.as_u16(), healthy.text()), (200, "hello"));
    }
    assert_eq!(last_response(&wire, OTHER, "/").await.code(), "overloaded");
    assert_eq!(read_until_closed(&mut silent[0]).await, "");
    gate.release.add_permits(1);
    exchange_hello(&mut under_way).await;
}

async fn a_silent_connection_is_closed_before_a_recently_used_one(scheme: Scheme) {
    let (wire, gate) = server(scheme, 2, None).await;
    let _under_way = busy_connection(&wire, &gate, ONE).await;
    let mut silent = wire.connect_from(ONE).await;
    let mut used = idle_connection(&wire, OTHER).await;
    assert_eq!(read_until_closed(&mut silent).await, "");
    exchange_hello(&mut used).await;
}

async fn a_request_does_not_begin_on_a_connection_that_is_being_closed(scheme: Scheme) {
    let (wire, gate) = server(scheme, 1, None).await;
    let mut late = idle_connection(&wire, ONE).await;
    // Both happen before the server polls again: neither waits.
    let _next = std::net::TcpStream::connect(wire.address).unwrap();
    late.write_all(request("/slow").as_bytes()).await.unwrap();
    let refused = parse_response(&read_until_closed(&mut late).await);
    assert_eq!((refused.code().as_str(), refused.header("connection")), ("overloaded", Some("close")));
    assert_eq!(gate.begun.available_permits(), 0);
}

async fn a_connection_with_an_unread_response_is_closed_before_an_idle_one(scheme: Scheme) {
    let (wire, _gate) = server(scheme, 2, None).await;
    let mut unread = wire.connect_from(ONE).await;
    unread.write_all(request("/large").as_bytes()).await.unwrap();
    wait_for_response(&unread).await;
    // By now the server waits for the client: the socket buffers are full.
    let mut idle = idle_connection(&wire, OTHER).await;
    let _next = idle_connection(&wire, OTHER).await;
    exchange_hello(&mut idle).await;
    let mut seen = Vec::new();
    let cut = timeout(TIMEOUT, unread.read_to_end(&mut seen)).await.expect("the connection was not closed");
    assert!(cut.is_err() || seen.len() < 16 << 20, "the whole response was sent");
}

async fn the_slowest_body_is_given_up_for_the_next_connection(scheme: Scheme) {
    for (max_connections, per_address) in [(3, None), (8, Some(3))] {
        let (wire, gate) = server(scheme, max_connections, per_address).await;
        let mut under_way = busy_connection(&wire, &gate, ONE).await;
        let mut fast = uploading_connection(&wire, &gate, ONE).await;
        let mut slow = uploading_connection(&wire, &gate, ONE).await;
        send_body(&mut fast, &gate, UPLOAD / 2).await;
        let mut next = idle_connection(&wire, ONE).await;
        let mut seen = Vec::new();
        timeout(TIMEOUT, slow.read_to_end(&mut seen)).await.expect("the slow body is still received").ok();
        assert_eq!(seen, b"");
        // An idle connection is closed before a body is given up.
        let _another = idle_connection(&wire, ONE).await;
        assert_eq!(read_until_closed(&mut next).await, "");
        fast.write_all(&[b' '; UPLOAD / 2 - 1]).await.unwrap();
        gate.release.add_permits(1);
        for stream in [&mut fast, &mut under_way] {
            exchange_hello(stream).await;
        }
    }
}

over_http_and_https! {
    the_slowest_body_is_given_up_for_the_next_connection,
    the_connection_that_is_idle_longest_is_closed_for_the_next,
    an_address_cannot_exceed_its_share,
    a_connection_beyond_a_busy_share_is_refused_at_once,
    health_is_served_while_every_connection_is_busy,
    a_silent_connection_is_closed_before_a_recently_used_one,
    a_request_does_not_begin_on_a_connection_that_is_being_closed,
    a_connection_with_an_unread_response_is_closed_before_an_idle_one,
}
