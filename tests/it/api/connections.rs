//! How many connections there may be, in all and of one address, and which one gives way to the next. Over sockets.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use forms::config::HttpLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::harness::{Answer, Wire, answer, read_to_end};

/// Long enough that only a server that hangs makes a test wait for it.
const PATIENCE: Duration = Duration::from_secs(5);

const ONE: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

/// Lets requests of `/slow` begin, and lets them end.
struct Gate {
    begun: &'static Semaphore,
    go_on: &'static Semaphore,
}

/// A server that answers `hello` at once at `/`, `/healthz` and `/readyz`, and at `/slow` when it is let to.
async fn server(max_connections: usize, per_address: Option<usize>) -> (Wire, Gate) {
    let gate =
        Gate { begun: Box::leak(Box::new(Semaphore::new(0))), go_on: Box::leak(Box::new(Semaphore::new(0))) };
    let Gate { begun, go_on } = gate;
    let slow = get(async || {
        begun.add_permits(1);
        go_on.acquire().await.unwrap().forget();
        "hello"
    });
    let hello = || get(async || "hello");
    // More than the system holds for a client that does not read.
    let large = get(async || "x".repeat(16 << 20));
    let router = Router::new().route("/slow", slow).route("/large", large);
    let router = router.route("/", hello()).route("/healthz", hello()).route("/readyz", hello());
    let limits =
        HttpLimits { max_connections, max_connections_per_address: per_address, ..Default::default() };
    (Wire::listen(router, limits).await, gate)
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// A connection on which one request was answered.
async fn rested(wire: &Wire, ip: [u8; 4]) -> TcpStream {
    let mut stream = wire.connect_from(ip).await;
    rest(&mut stream).await;
    stream
}

/// Sends a request and reads its answer; the connection stays open.
async fn rest(stream: &mut TcpStream) {
    stream.write_all(request("/").as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"hello") {
        let count = timeout(PATIENCE, stream.read_buf(&mut seen)).await.expect("an answer").unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&seen));
    }
}

/// A connection on which a request is under way.
async fn busy(wire: &Wire, gate: &Gate, ip: [u8; 4]) -> TcpStream {
    let mut stream = wire.connect_from(ip).await;
    stream.write_all(request("/slow").as_bytes()).await.unwrap();
    gate.begun.acquire().await.unwrap().forget();
    stream
}

/// What the server sends until it closes.
async fn closed(stream: &mut TcpStream) -> String {
    timeout(PATIENCE, read_to_end(stream)).await.expect("the server closes")
}

/// The one answer on a new connection, after which the server closes.
async fn last_answer(wire: &Wire, ip: [u8; 4], path: &str) -> Answer {
    let mut stream = wire.connect_from(ip).await;
    stream.write_all(request(path).as_bytes()).await.unwrap();
    let answer = answer(&closed(&mut stream).await);
    assert_eq!(answer.header("connection"), Some("close"));
    answer
}

#[tokio::test]
async fn the_connection_idle_longest_gives_way_to_the_next() {
    let (wire, _) = server(3, None).await;
    let mut first = rested(&wire, ONE).await;
    let mut second = rested(&wire, OTHER).await;
    let mut silent = wire.connect_from(ONE).await;
    rest(&mut first).await;
    let mut third = rested(&wire, ONE).await;
    assert_eq!(closed(&mut second).await, "");
    let mut fourth = rested(&wire, OTHER).await;
    assert_eq!(closed(&mut silent).await, "");
    for stream in [&mut first, &mut third, &mut fourth] {
        rest(stream).await;
    }
}

#[tokio::test]
async fn an_address_takes_no_more_than_its_share() {
    let (wire, _) = server(8, Some(2)).await;
    let mut other = rested(&wire, OTHER).await;
    let mut first = rested(&wire, ONE).await;
    let mut second = rested(&wire, ONE).await;
    let mut third = rested(&wire, ONE).await;
    assert_eq!(closed(&mut first).await, "");
    for stream in [&mut other, &mut second, &mut third] {
        rest(stream).await;
    }
}

#[tokio::test]
async fn beyond_a_share_that_is_busy_there_is_a_quick_refusal() {
    let (wire, gate) = server(8, Some(2)).await;
    let mut under_way = [busy(&wire, &gate, ONE).await, busy(&wire, &gate, ONE).await];
    let refused = last_answer(&wire, ONE, "/").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (503, "overloaded"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(refused.header("x-request-id"), refused.json()["request_id"].as_str());
    rested(&wire, OTHER).await;
    gate.go_on.add_permits(2);
    for stream in &mut under_way {
        rest(stream).await;
    }
}

#[tokio::test]
async fn health_is_served_while_every_connection_is_busy() {
    let (wire, gate) = server(1, None).await;
    let mut under_way = busy(&wire, &gate, ONE).await;
    // More than are kept for health checks: they give way to each other.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(wire.connect_from(ONE).await);
    }
    for path in ["/healthz", "/readyz"] {
        let healthy = last_answer(&wire, OTHER, path).await;
        assert_eq!((healthy.status.as_u16(), healthy.text()), (200, "hello"));
    }
    assert_eq!(last_answer(&wire, OTHER, "/").await.code(), "overloaded");
    assert_eq!(closed(&mut silent[0]).await, "");
    gate.go_on.add_permits(1);
    rest(&mut under_way).await;
}

#[tokio::test]
async fn a_connection_that_was_used_last_is_not_closed_for_one_that_says_nothing() {
    let (wire, gate) = server(2, None).await;
    let _under_way = busy(&wire, &gate, ONE).await;
    let mut silent = wire.connect_from(ONE).await;
    let mut spoken = rested(&wire, OTHER).await;
    assert_eq!(closed(&mut silent).await, "");
    rest(&mut spoken).await;
}

#[tokio::test]
async fn a_request_does_not_begin_on_a_connection_that_has_given_way() {
    let (wire, gate) = server(1, None).await;
    let mut late = rested(&wire, ONE).await;
    // Both happen before the server looks again.
    let _next = std::net::TcpStream::connect(wire.address).unwrap();
    late.try_write(request("/slow").as_bytes()).unwrap();
    let refused = answer(&closed(&mut late).await);
    assert_eq!((refused.code().as_str(), refused.header("connection")), ("overloaded", Some("close")));
    assert_eq!(gate.begun.available_permits(), 0);
}

#[tokio::test]
async fn one_that_does_not_read_its_answer_gives_way_before_one_that_rests() {
    let (wire, _gate) = server(2, None).await;
    let mut unread = wire.connect_from(ONE).await;
    unread.write_all(request("/large").as_bytes()).await.unwrap();
    unread.readable().await.unwrap();
    // By now the server waits for it to read: what it has read no more of is with the system.
    let mut resting = rested(&wire, OTHER).await;
    let _next = rested(&wire, OTHER).await;
    rest(&mut resting).await;
    let mut seen = Vec::new();
    let cut = timeout(PATIENCE, unread.read_to_end(&mut seen)).await.expect("it is cut off");
    assert!(cut.is_err() || seen.len() < 16 << 20, "all of the answer was sent");
}
