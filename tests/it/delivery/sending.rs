//! Outcomes of requests.

use std::time::{Duration, Instant};

use axum::Router;
use forms::config::HttpSettings;
use forms::delivery::{SendLimits, Sender, SystemLookup};
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::delivery::error_code::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::receiver::{Receiver, Reply};
use super::{SHORT, post, sender};
use crate::harness::{ListeningServer, Scheme};

/// Sends a request to a receiver that answers by `reply`.
async fn report_of(reply: Reply, limits: SendLimits) -> SendReport {
    let receiver = Receiver::start(move |_| reply.clone()).await;
    sender(SystemLookup, limits).send(&post(&receiver.url())).await
}

/// The code of a failure that may be tried again.
fn retryable_code(report: &SendReport) -> &'static str {
    match &report.outcome {
        Outcome::Retryable { error, .. } => error.code.known().unwrap().name(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_request_arrives_as_planned() {
    let receiver = Receiver::start(|_| Reply::Status(204)).await;
    let sender = sender(SystemLookup, SendLimits::default());
    for _ in 0..2 {
        let report = sender.send(&post(&receiver.url())).await;
        assert_eq!((report.outcome, report.http_status), (Outcome::Delivered, Some(204)));
        assert_eq!(report.remote_address, Some(receiver.address.to_string()));
        assert_eq!(report.response, None);
    }
    for request in receiver.requests() {
        assert!(request.head.starts_with("POST /hook HTTP/1.1\r\n"), "{}", request.head);
        assert_eq!(request.header("x-token"), Some("t0ken"));
        assert_eq!(request.header("user-agent"), Some(concat!("forms/", env!("CARGO_PKG_VERSION"))));
        assert_eq!(request.header("accept-encoding"), None);
        assert_eq!(request.body, b"{}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = Receiver::start(|_| Reply::Status(200)).await;
    for status in [301, 302, 303, 307, 308] {
        let location = target.url();
        let answer = format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let report = report_of(Reply::text(&answer), SendLimits::default()).await;
        assert_eq!(report.http_status, Some(status));
        assert_eq!(retryable_code(&report), "redirect", "{status}");
    }
    assert_eq!(target.requests(), []);
}

#[tokio::test]
async fn failures_have_stable_codes() {
    let limits = SendLimits { exchange: Duration::from_secs(10), ..SHORT };
    let head = "HTTP/1.1 200 OK\r\n";
    let many_headers: String = (0..65).map(|number| format!("h{number}: x\r\n")).collect();
    for (reply, code) in [
        (Reply::Cut, "connection_failed"),
        (Reply::text("SSH-2.0-OpenSSH\r\n"), "invalid_response"),
        (Reply::text(&format!("{head}{many_headers}\r\n")), "invalid_response"),
        (Reply::Endless(head.into(), b"x: y\r\n".repeat(200)), "invalid_response"),
        (Reply::Endless([head, "x: "].concat().into(), b"y".repeat(1_000)), "invalid_response"),
    ] {
        let shown = format!("{reply:?}");
        assert_eq!(retryable_code(&report_of(reply, limits).await), code, "{shown:.60}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let report = sender(SystemLookup, limits).send(&post(&format!("http://{closed}/"))).await;
    assert_eq!(retryable_code(&report), "connection_failed");
}

#[tokio::test]
async fn a_slow_answer_is_a_timeout_that_counts_as_overload() {
    let drip = b"HTTP/1.1 200 OK\r\nx: ".to_vec();
    for reply in [Reply::silence(), Reply::Drip(drip)] {
        let report = report_of(reply, SHORT).await;
        let Outcome::Retryable { error, is_slow: true } = &report.outcome else { panic!("{report:?}") };
        assert_eq!(error.code, ErrorCode::Timeout);
        assert!((500..2_000).contains(&report.duration_ms), "{report:?}");
    }
}

#[tokio::test]
async fn the_status_decides_whatever_follows_it() {
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let chunk = [b"1000\r\n".to_vec(), b"z".repeat(4_096), b"\r\n".to_vec()].concat();
    let promised = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbroken off".to_vec();
    let bomb = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc";
    let begun_body = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".to_vec();
    for (reply, excerpt) in [
        (Reply::Endless(head, chunk), Some("z".repeat(2_048))),
        (Reply::Bytes(promised), Some("broken off".to_owned())),
        (Reply::text(bomb), Some("abc".to_owned())),
        (Reply::Stall(begun_body), None),
    ] {
        let begun = Instant::now();
        let report = report_of(reply, SHORT).await;
        assert_eq!((report.outcome, report.http_status), (Outcome::Delivered, Some(200)));
        assert_eq!(report.response, excerpt);
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn an_answer_is_kept_as_plain_text() {
    let body = [b"line 1\nline 2\x1b[31m\0\xff".to_vec(), "é".repeat(2_000).into()].concat();
    let answer = [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into(), body].concat();
    let report = report_of(Reply::Bytes(answer), SendLimits::default()).await;
    let text = report.response.unwrap();
    assert!(text.starts_with("line 1\nline 2\\u{1b}[31m\\u{0}\u{fffd}éé"), "{text:.60}");
    assert!((2_000..=2_048).contains(&text.len()), "{}", text.len());
}

#[tokio::test]
async fn secrets_that_a_receiver_sends_back_are_not_kept() {
    let body = format!("{}authorization: Bearer t0ken", "x".repeat(2_040));
    let answer = format!("HTTP/1.1 500 Error\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let report = report_of(Reply::text(&answer), SendLimits::default()).await;
    assert!(!report.response.unwrap().contains("t0k"));
    let report =
        report_of(Reply::text("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n(t0ken)"), SendLimits::default());
    assert_eq!(report.await.response.as_deref(), Some("((secret))"));
}

#[tokio::test]
async fn certificates_are_verified() {
    let server = ListeningServer::listen(Scheme::Https, Router::new(), HttpSettings::default()).await;
    let url = format!("https://{}/", server.address);
    let report = sender(SystemLookup, SendLimits::default()).send(&post(&url)).await;
    assert_eq!(retryable_code(&report), "tls_error");
    let Outcome::Retryable { error, .. } = &report.outcome else { panic!("{report:?}") };
    assert!(error.message.contains("unknown authority"), "{}", error.message);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Until the sender gives up.
        stream.read_to_end(&mut Vec::new()).await.ok();
    });
    let report = sender(SystemLookup, SendLimits::default()).send(&post(&url)).await;
    assert_eq!(retryable_code(&report), "tls_error");
}
