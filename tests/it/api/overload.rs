//! Memory for large request bodies and responses is bounded; requests beyond it are refused before they take effect. The store is
//! embedded: it authenticates a request at its first poll.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::io::AsyncWriteExt;

use crate::harness::prelude::*;

const MIB: usize = 1 << 20;

/// Bodies of 1 MiB that one key may have in flight.
const SHARE: usize = 16;

/// A body that yields `chunks` of 32 KiB and then stalls, with a `Content-Length` if it has one.
struct Stalled {
    chunks: usize,
    length: Option<usize>,
}

impl hyper::body::Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.chunks == 0 {
            return Poll::Pending;
        }
        self.chunks -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 32 << 10])))))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, |length| SizeHint::with_exact(length as u64))
    }
}

/// A body with a `Content-Length` that never yields data.
fn stalled_body(length: usize) -> Body {
    Body::new(Stalled { chunks: 0, length: Some(length) })
}

type PendingResponse = Pin<Box<dyn Future<Output = TestResponse>>>;

/// Polls `call` once; returns the response as an error if it is complete.
fn begin(call: Call) -> Result<PendingResponse, Box<TestResponse>> {
    let mut pending: PendingResponse = Box::pin(call.send());
    match pending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Err(Box::new(answer)),
        Poll::Pending => Ok(pending),
    }
}

#[track_caller]
fn assert_overloaded(response: &TestResponse) {
    response.expect_problem(503, "overloaded");
    assert!(response.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
}

#[tokio::test]
async fn large_bodies_of_one_key_can_use_a_quarter_of_the_memory() {
    let server = Server::embedded().await;
    let call = |key: &str, body| server.post(FORMS, json!({})).key(key).body(body);
    let mut in_flight = Vec::new();
    for _ in 0..4 {
        let key = server.key_with(&[Scope::Write]).await;
        in_flight.extend((0..SHARE).map(|_| begin(call(&key, stalled_body(MIB))).unwrap()));
        assert_overloaded(&begin(call(&key, stalled_body(MIB))).err().unwrap());
        // Small bodies are not limited.
        server.post(FORMS, json!({"title": "Visit"})).key(&key).send().await.expect(201);
        assert!(begin(call(&key, stalled_body(64 << 10))).is_ok());
    }
    let other = server.key_with(&[Scope::Write]).await;
    assert_overloaded(&begin(call(&other, stalled_body(MIB))).err().unwrap());
    in_flight.pop();
    let large = json!({"title": "Visit", "description": "x".repeat(MIB - 100)}).to_string();
    assert_eq!(call(&other, Body::from(large)).send().await.code(), "validation_failed");
    assert!(
        begin(call(&other, stalled_body(MIB))).is_ok(),
        "the memory of processed bodies was not released"
    );
}

#[tokio::test]
async fn one_key_can_receive_slow_bodies_on_a_quarter_of_the_connections() {
    let server =
        Server::embedded_with_settings(HttpSettings { max_connections: 8, ..HttpSettings::default() }).await;
    let other = server.key_with(&[Scope::Write]).await;
    let call = |key: &str| begin(server.post(FORMS, json!({})).key(key).body(stalled_body(100))).unwrap();
    let mut slow = [call(&server.key), call(&server.key), call(&other)];
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    for pending in &mut slow {
        assert!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let begun = tokio::time::Instant::now();
    assert_overloaded(&call(&server.key).await);
    assert!(begun.elapsed() < Duration::from_secs(5), "given up only at the deadline of all bodies");
    tokio::time::resume();
    server.post(FORMS, json!({"title": "Visit"})).send().await.expect(201);
}

#[tokio::test]
async fn a_body_of_unknown_length_is_counted_as_it_arrives() {
    let server = Server::embedded().await;
    let call = |chunks| server.post(FORMS, json!({})).body(Body::new(Stalled { chunks, length: None }));
    let _in_flight: Vec<_> = (0..SHARE).map(|_| begin(call(MIB / (32 << 10))).unwrap()).collect();
    assert!(begin(call(2)).is_ok());
    assert_overloaded(&begin(call(3)).err().unwrap());
}

#[tokio::test]
async fn one_body_within_its_limit_is_accepted_even_if_larger_than_the_share_of_a_key() {
    let settings = HttpSettings { max_definition: 100 * MIB, ..HttpSettings::default() };
    let server = Server::embedded_with_settings(settings).await;
    let call = |length| server.post(FORMS, json!({})).body(stalled_body(length));
    let alone = begin(call(80 * MIB)).unwrap();
    assert_overloaded(&begin(call(MIB)).err().unwrap());
    drop(alone);
    assert!(begin(call(MIB)).is_ok());
}

/// Begins an edit that is not polled again: edits of one submission wait for each other. On a busy machine one may be
/// complete after its first poll, hence the retries.
fn begin_edit(edit: impl Fn(&str) -> Call) -> PendingResponse {
    (0..).find_map(|number| begin(edit(&format!("other {number}"))).ok()).unwrap()
}

fn large_form() -> Value {
    let text = json!({"type": "statement", "title": "x".repeat(300)});
    json!({"title": "Visit", "questions": vec![text; 300]})
}

#[tokio::test]
async fn at_most_four_large_bodies_are_processed_at_once_and_one_per_key() {
    let server = Server::embedded().await;
    let form = server.published_form(json!([{"type": "long_text", "title": "Tale"}])).await;
    let path = format!("{FORMS}/{form}/submissions/{}", server.submit(&form, json!({"q1": "short"})).await);
    let edit = |text: &str| server.patch(&path, json!({"answers": {"q1": text}}));
    let first = begin_edit(edit);
    let mut processed = Vec::new();
    for _ in 0..4 {
        // Another key still gets a permit, although this key would use all of them.
        let other = server.key_with(&[Scope::Write]).await;
        server.post(FORMS, large_form()).key(&other).send().await.expect(201);
        let key = server.key_with(&[Scope::Write]).await;
        processed.extend((0..4).map(|_| begin(edit(&"x".repeat(70_000)).key(&key)).unwrap()));
    }
    let mut fifth = begin(server.post(FORMS, large_form())).unwrap();
    for _ in 0..20 {
        server.post(FORMS, json!({"title": "Small"})).send().await.expect(201);
        assert!(fifth.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop((first, processed));
    fifth.await.expect(201);
}

#[tokio::test]
async fn a_body_is_not_received_before_the_key_is_verified() {
    let server = Server::embedded().await;
    let wire = server.listen().await;
    for expect in ["", "Expect: 100-continue\r\n"] {
        let mut stream = wire.connect().await;
        let head = format!(
            "POST /api/v1/forms HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer fk_guess\r\n{expect}\
             Content-Type: application/json\r\nContent-Length: {MIB}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(parse_response(&read_to_end(&mut stream).await).code(), "unauthorized");
    }
}

/// Creates a form with one submission of nearly 1 MiB.
async fn with_large_submission(server: &Server) -> (String, String) {
    let texts = (0..20).map(|number| {
        json!({"id": format!("t{number}"), "type": "long_text", "title": "Tale", "max_length": 52_000})
    });
    let form = server.published_form(texts.collect()).await;
    let answers: Value = (0..20).map(|number| (format!("t{number}"), json!("x".repeat(52_000)))).collect();
    let id = server.submit(&form, answers).await;
    (format!("{FORMS}/{form}"), format!("{FORMS}/{form}/submissions/{id}"))
}

/// Requests `path` as often as one key may have unread responses.
async fn unread_responses(server: &Server, path: &str, key: &str) -> Vec<Response> {
    let mut held = Vec::new();
    for _ in 0..SHARE {
        let response = server.get(path).key(key).response().await;
        assert_eq!(response.status(), 200, "{}", held.len());
        held.push(response);
    }
    held
}

#[tokio::test]
async fn unread_responses_are_bounded_per_key_and_in_total() {
    let server = Server::embedded().await;
    let (form, path) = with_large_submission(&server).await;
    let list = format!("{form}/submissions?limit=1000");
    let mut held = Vec::new();
    for _ in 0..4 {
        let key = server.key_with(&[Scope::Read]).await;
        held.extend(unread_responses(&server, &path, &key).await);
        for path in [&path, &list] {
            let refused = server.get(path).key(&key).send().await;
            assert_overloaded(&refused);
        }
        assert_eq!(server.get(&form).key(&key).send().await.status, 200, "a small response was refused");
        assert_eq!(server.call(Method::HEAD, &path).key(&key).send().await.status, 200);
    }
    assert_overloaded(&server.get(&path).send().await);
    // A response that is read completely or dropped releases its memory.
    let read = held.pop().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_overloaded(&server.get(&path).send().await);
    drop(read);
    server.read(&path).await;
}

#[tokio::test]
async fn over_http2_small_bodies_are_counted_too() {
    let server = Server::embedded().await;
    let (form, path) = with_large_submission(&server).await;
    let held = unread_responses(&server, &path, &server.key).await;
    // Uses up the rest.
    let edited = server.patch(&path, json!({"metadata": {"note": "first"}})).response().await;
    let submit = || server.post(format!("{form}/submissions"), json!({"answers": {"t0": "short"}}));
    submit().send().await.expect(201);
    server.read(&form).await;
    assert_overloaded(&submit().over_http2().send().await);
    assert_overloaded(&server.get(&form).over_http2().send().await);
    assert_eq!(server.get("/healthz").over_http2().send().await.status, 200);
    drop((held, edited));
    server.get(&form).over_http2().send().await.expect(200);
    let call = |body: Body| server.post(FORMS, json!({})).body(body);
    let _in_flight: Vec<_> = (0..SHARE).map(|_| begin(call(stalled_body(MIB))).unwrap()).collect();
    assert!(begin(call(stalled_body(60 << 10))).is_ok());
    assert_overloaded(&begin(call(stalled_body(60 << 10)).over_http2()).err().unwrap());
}

#[tokio::test]
async fn a_request_that_is_never_completed_gets_store_unavailable() {
    let server = Server::embedded().await;
    let form = server.published_form(json!([{"type": "long_text", "title": "Tale"}])).await;
    let path = format!("{FORMS}/{form}/submissions/{}", server.submit(&form, json!({"q1": "short"})).await);
    let edit = |text: &str| server.patch(&path, json!({"answers": {"q1": text}}));
    let _first = begin_edit(edit);
    // The clock moves once the server only waits.
    tokio::time::pause();
    let refused = edit("last").send().await;
    refused.expect_problem(503, "store_unavailable");
    assert_eq!(refused.header("retry-after"), Some("5"));
}

#[tokio::test]
async fn response_memory_is_counted_until_the_connection_releases_it() {
    let server = Server::embedded().await;
    let (_, path) = with_large_submission(&server).await;
    let mut held = unread_responses(&server, &path, &server.key).await;
    let mut body = held.pop().unwrap().into_body();
    let piece = body.frame().await.unwrap().unwrap().into_data().unwrap().slice(..10);
    drop(body);
    assert_overloaded(&server.get(&path).send().await);
    drop(piece);
    server.read(&path).await;
}

#[tokio::test]
async fn a_change_is_applied_only_if_its_response_can_be_sent() {
    let server = Server::embedded().await;
    let (form, path) = with_large_submission(&server).await;
    let _held = unread_responses(&server, &path, &server.key).await;
    let edit = |note: &str| server.patch(&path, json!({"metadata": {"note": note}}));
    assert_overloaded(&server.get(&path).send().await);
    // Some memory is left, although not enough: the edit is applied, and its response is sent.
    let edited = edit("first").response().await;
    assert_eq!(edited.status(), 200);
    // Now none is left.
    assert_overloaded(&edit("second").send().await);
    let title = || server.patch(&form, json!({"title": "Other"})).send();
    assert_overloaded(&title().await);
    let small = server.post(format!("{form}/submissions"), json!({"answers": {"t0": "short"}}));
    small.send().await.expect(201);
    let body = edited.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["metadata"]["note"], "first");
    drop(body);
    assert_eq!(title().await.expect(200)["title"], "Other");
    let read = server.get(&path).key(&server.key_with(&[Scope::Read]).await).send().await;
    assert_eq!(read.expect(200)["metadata"]["note"], "first");
}

#[tokio::test]
async fn large_responses_are_compressed_on_the_pool_or_not_at_all() {
    let server = Server::embedded().await;
    let (_, path) = with_large_submission(&server).await;
    let get = |server: &Server| server.get(&path).header("accept-encoding", "gzip").send();
    let response = get(&server).await;
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert!(response.body.len() < MIB / 10);
    let server = server.with_pool(PoolLimits { jobs: 0, ..PoolLimits::default() }).await;
    let response = get(&server).await;
    assert_eq!((response.status.as_u16(), response.header("content-encoding")), (200, None));
    assert!(response.body.len() > MIB / 2);
}

#[tokio::test]
async fn a_page_ends_at_1_mib() {
    let server = Server::embedded().await;
    let tale = json!({"id": "t", "type": "long_text", "title": "Tale", "max_length": 60_000});
    let submissions = format!("{FORMS}/{}/submissions", server.published_form(json!([tale])).await);
    let answers = json!({"answers": {"t": "x".repeat(60_000)}});
    let title = json!({"title": "\u{1f600}".repeat(300)});
    for (list, rows, body, count) in
        [(submissions, "submissions", answers, 40), (FORMS.into(), "forms", title, 800)]
    {
        let known = server.read(format!("{list}?limit=1000")).await[rows].as_array().unwrap().clone();
        let mut made: Vec<_> = known.into_iter().map(|row| row["id"].clone()).collect();
        for _ in 0..count {
            made.insert(0, json!(server.create(&list, body.clone()).await));
        }
        let (mut next, mut seen, mut pages) = (Some(format!("{list}?limit=1000")), Vec::new(), 0);
        while let Some(path) = next.take() {
            let page = server.get(&path).send().await;
            assert!(page.body.len() <= MIB, "{} bytes", page.body.len());
            seen.extend(page.json()[rows].as_array().unwrap().iter().map(|row| row["id"].clone()));
            next = page.next_page();
            pages += 1;
        }
        seen.sort_unstable_by_key(Value::to_string);
        made.sort_unstable_by_key(Value::to_string);
        assert!(seen == made && pages == if rows == "forms" { 2 } else { 3 }, "{pages} pages of {rows}");
    }
}
