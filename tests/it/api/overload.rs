//! Large bodies and large answers share a bounded part of the memory: what there is no room for is refused, quickly and
//! before anything is done.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use axum::http::Method;
use axum::response::Response;
use bytes::Bytes;
use forms::config::HttpLimits;
use forms::cpu_pool::PoolLimits;
use forms::domain::workspace::Scope;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::harness::{Answer, Call, Server, answer, read_to_end};

const FORMS: &str = "/api/v1/forms";
const MIB: usize = 1 << 20;

/// Bodies of one MiB that one key may have.
const SHARE: usize = 16;

/// A body of which `chunks` of 32 KiB come, and then nothing. Its length is announced if it has one.
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

/// A body of `length` bytes of which none comes.
fn announced(length: usize) -> Body {
    Body::new(Stalled { chunks: 0, length: Some(length) })
}

type Sending = Pin<Box<dyn Future<Output = Answer>>>;

/// `call` as far as it comes by itself; the answer, if it has come.
fn begin(call: Call) -> Result<Sending, Box<Answer>> {
    let mut sending: Sending = Box::pin(call.send());
    match sending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Err(Box::new(answer)),
        Poll::Pending => Ok(sending),
    }
}

#[track_caller]
fn assert_overloaded(answer: &Answer) {
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (503, "overloaded"));
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
}

#[tokio::test]
async fn large_bodies_of_a_key_have_a_quarter_of_what_all_have() {
    let server = Server::start().await;
    let call = |key: &str, body| server.post(FORMS, json!({})).key(key).body(body);
    let mut under_way = Vec::new();
    for _ in 0..4 {
        let key = server.key_with(&[Scope::Write]).await;
        under_way.extend((0..SHARE).map(|_| begin(call(&key, announced(MIB))).unwrap()));
        assert_overloaded(&begin(call(&key, announced(MIB))).err().unwrap());
        // Small ones pass all the same.
        server.post(FORMS, json!({"title": "Visit"})).key(&key).send().await.expect(201);
        assert!(begin(call(&key, announced(64 << 10))).is_ok());
    }
    let other = server.key_with(&[Scope::Write]).await;
    assert_overloaded(&begin(call(&other, announced(MIB))).err().unwrap());
    under_way.pop();
    let large = json!({"title": "Visit", "description": "x".repeat(MIB - 100)}).to_string();
    assert_eq!(call(&other, Body::from(large)).send().await.code(), "validation_failed");
    assert!(begin(call(&other, announced(MIB))).is_ok(), "what was dealt with is given back");
}

#[tokio::test]
async fn a_body_of_unknown_length_is_counted_as_it_grows() {
    let server = Server::start().await;
    let call = |chunks| server.post(FORMS, json!({})).body(Body::new(Stalled { chunks, length: None }));
    let _under_way: Vec<_> = (0..SHARE).map(|_| begin(call(MIB / (32 << 10))).unwrap()).collect();
    assert!(begin(call(2)).is_ok());
    assert_overloaded(&begin(call(3)).err().unwrap());
}

#[tokio::test]
async fn one_body_within_its_limit_is_taken_even_if_larger_than_a_share() {
    let limits = HttpLimits { max_definition: 100 * MIB, ..HttpLimits::default() };
    let server = Server::with(limits).await;
    let call = |length| server.post(FORMS, json!({})).body(announced(length));
    let alone = begin(call(80 * MIB)).unwrap();
    assert_overloaded(&begin(call(MIB)).err().unwrap());
    drop(alone);
    assert!(begin(call(MIB)).is_ok());
}

fn large_form() -> Value {
    let text = json!({"type": "statement", "title": "x".repeat(300)});
    json!({"title": "Visit", "questions": vec![text; 300]})
}

#[tokio::test]
async fn no_more_than_four_large_bodies_are_processed_at_once_and_one_of_each_key() {
    let server = Server::start().await;
    let form = server.published(json!([{"type": "long_text", "title": "Tale"}])).await;
    let path = format!("{FORMS}/{form}/submissions/{}", server.submit(&form, json!({"q1": "short"})).await);
    // Edits of one submission wait for each other, and nobody asks the first how far it is. On a busy machine, one may be
    // over before it is asked once.
    let edit = |text: &str| server.patch(&path, json!({"answers": {"q1": text}}));
    let first = (0..).find_map(|number| begin(edit(&format!("other {number}"))).ok()).unwrap();
    let mut processed = Vec::new();
    for _ in 0..4 {
        // Another key has a permit all the same, although this one would take all of them.
        server
            .post(FORMS, large_form())
            .key(&server.key_with(&[Scope::Write]).await)
            .send()
            .await
            .expect(201);
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
async fn a_body_is_not_received_before_its_key_is_proved() {
    let server = Server::start().await;
    let wire = server.listen().await;
    for expect in ["", "Expect: 100-continue\r\n"] {
        let mut stream = wire.connect().await;
        let head = format!(
            "POST /api/v1/forms HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer fk_guess\r\n{expect}\
             Content-Type: application/json\r\nContent-Length: {MIB}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(answer(&read_to_end(&mut stream).await).code(), "unauthorized");
    }
}

/// A form with one submission of a MiB, nearly.
async fn with_large_submission(server: &Server) -> (String, String) {
    let texts = (0..20).map(|number| {
        json!({"id": format!("t{number}"), "type": "long_text", "title": "Tale", "max_length": 52_000})
    });
    let form = server.published(texts.collect()).await;
    let answers: Value = (0..20).map(|number| (format!("t{number}"), json!("x".repeat(52_000)))).collect();
    let id = server.submit(&form, answers).await;
    (format!("{FORMS}/{form}"), format!("{FORMS}/{form}/submissions/{id}"))
}

/// As many answers to `path` as one key may have unread.
async fn unread(server: &Server, path: &str, key: &str) -> Vec<Response> {
    let mut held = Vec::new();
    for _ in 0..SHARE {
        let response = server.get(path).key(key).response().await;
        assert_eq!(response.status(), 200, "{}", held.len());
        held.push(response);
    }
    held
}

#[tokio::test]
async fn answers_that_nobody_reads_are_bounded_for_each_key_and_for_all() {
    let server = Server::start().await;
    let (form, path) = with_large_submission(&server).await;
    let list = format!("{form}/submissions?limit=1000");
    let mut held = Vec::new();
    for _ in 0..4 {
        let key = server.key_with(&[Scope::Read]).await;
        held.extend(unread(&server, &path, &key).await);
        for path in [&path, &list] {
            let refused = server.get(path).key(&key).send().await;
            assert_overloaded(&refused);
        }
        assert_eq!(server.get(&form).key(&key).send().await.status, 200, "small answers pass");
        assert_eq!(server.call(Method::HEAD, &path).key(&key).send().await.status, 200);
    }
    assert_overloaded(&server.get(&path).send().await);
    // What is read to its end, or given up, makes room.
    let read = held.pop().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_overloaded(&server.get(&path).send().await);
    drop(read);
    server.get(&path).send().await.expect(200);
}

#[tokio::test]
async fn bytes_count_for_as_long_as_the_connection_holds_them() {
    let server = Server::start().await;
    let (_, path) = with_large_submission(&server).await;
    let mut held = unread(&server, &path, &server.key).await;
    let mut body = held.pop().unwrap().into_body();
    let piece = body.frame().await.unwrap().unwrap().into_data().unwrap().slice(..10);
    drop(body);
    assert_overloaded(&server.get(&path).send().await);
    drop(piece);
    server.get(&path).send().await.expect(200);
}

#[tokio::test]
async fn what_was_done_is_told_and_what_could_not_be_told_is_not_done() {
    let server = Server::start().await;
    let (form, path) = with_large_submission(&server).await;
    let _held = unread(&server, &path, &server.key).await;
    let edit = |note: &str| server.patch(&path, json!({"metadata": {"note": note}}));
    assert_overloaded(&server.get(&path).send().await);
    // There is some room, if not enough: it is done, and so it is told.
    let edited = edit("first").response().await;
    assert_eq!(edited.status(), 200);
    // Now there is none.
    assert_overloaded(&edit("second").send().await);
    let title = || server.patch(&form, json!({"title": "Other"})).send();
    assert_overloaded(&title().await);
    let small = server.post(format!("{form}/submissions"), json!({"answers": {"t0": "short"}}));
    small.send().await.expect(201);
    let told = edited.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&told).unwrap()["metadata"]["note"], "first");
    drop(told);
    assert_eq!(title().await.expect(200)["title"], "Other");
    let read = server.get(&path).key(&server.key_with(&[Scope::Read]).await).send().await;
    assert_eq!(read.expect(200)["metadata"]["note"], "first");
}

#[tokio::test]
async fn large_answers_are_compressed_on_the_pool_or_not_at_all() {
    let server = Server::start().await;
    let (_, path) = with_large_submission(&server).await;
    let get = |server: &Server, encoding| server.get(&path).header("accept-encoding", encoding).send();
    for encoding in ["gzip", "zstd"] {
        let answer = get(&server, encoding).await;
        assert_eq!(answer.header("content-encoding"), Some(encoding));
        assert!(answer.body.len() < MIB / 10);
    }
    let server = server.with_pool(PoolLimits { jobs: 0, ..PoolLimits::default() }).await;
    for encoding in ["gzip", "zstd"] {
        let answer = get(&server, encoding).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (200, None));
        assert!(answer.body.len() > MIB / 2);
    }
}

#[tokio::test]
async fn a_page_ends_at_a_mebibyte_with_a_cursor() {
    let server = Server::start().await;
    let form =
        server.published(json!([{"id": "t", "type": "long_text", "title": "Tale", "max_length": 60_000}]));
    let form = form.await;
    let mut made = Vec::new();
    for _ in 0..40 {
        made.insert(0, json!(server.submit(&form, json!({"t": "x".repeat(60_000)})).await));
    }
    let (mut next, mut seen, mut pages) =
        (Some(format!("{FORMS}/{form}/submissions?limit=1000")), Vec::new(), 0);
    while let Some(path) = next.take() {
        let page = server.get(&path).send().await;
        assert!(page.body.len() <= MIB, "{} bytes", page.body.len());
        seen.extend(page.json()["submissions"].as_array().unwrap().iter().map(|row| row["id"].clone()));
        next = page.header("link").map(|link| link.split(['<', '>']).nth(1).unwrap().to_owned());
        assert_eq!(page.json()["next_cursor"].is_null(), next.is_none());
        pages += 1;
    }
    assert_eq!((seen, pages), (made, 3));
}

#[tokio::test]
async fn a_page_of_forms_ends_at_a_mebibyte_with_a_link() {
    let server = Server::start().await;
    let title = "\u{1f600}".repeat(300);
    for _ in 0..800 {
        server.post(FORMS, json!({"title": title})).send().await.expect(201);
    }
    let first = server.get(format!("{FORMS}?limit=1000")).send().await;
    assert!(first.body.len() <= MIB, "{} bytes", first.body.len());
    let next = first.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    let counts =
        [first, server.get(next).send().await].map(|page| page.json()["forms"].as_array().unwrap().len());
    assert_eq!(counts.iter().sum::<usize>(), 800, "{counts:?}");
    assert!(counts[0] > 600);
}
