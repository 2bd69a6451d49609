//! Long work runs on the CPU pool, where it does not delay other requests, and is cancelled with its request.
//!
//! The tests block the only pool thread: requests that need it stay pending, all others complete. Nothing is timed.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use forms::id::SubmissionId;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::harness::prelude::*;
use crate::store::{is_ready, wait_until};

/// Reached only if the server hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs `test` on a runtime with one thread for requests and one for long work.
fn with_one_pool_thread(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(test);
}

/// Blocks the pool thread until the returned guard is dropped.
fn block_pool_thread() -> Sender<()> {
    let (guard, released) = channel();
    spawn_blocking(move || released.recv());
    guard
}

#[test]
fn reading_a_definition_does_not_delay_other_requests() {
    with_one_pool_thread(async {
        let server = Server::start().await;
        let form = server.draft_form(questions()).await;
        let path = format!("/api/v1/forms/{form}");
        for call in [
            server.post("/api/v1/forms", json!({"title": ""})),
            server.post("/api/v1/forms?dry_run=true", json!({"title": ""})),
            server.patch(&path, json!({"title": ""})),
        ] {
            let guard = block_pool_thread();
            let mut reading = pin!(call.send());
            assert!(!is_ready(&mut reading).await, "the definition was read on the request thread");
            server.read(&path).await;
            drop(guard);
            reading.await.expect(422);
        }
    });
}

#[test]
fn a_cancelled_search_does_not_block_the_next_one() {
    with_one_pool_thread(async {
        let (server, form) = Server::with_form().await;
        server.submit(&form, json!({"q1": "Ada"})).await;
        let path = format!("/api/v1/forms/{form}/submissions?q=nobody");
        let guard = block_pool_thread();
        let mut cancelled = Box::pin(server.get(&path).send());
        assert!(!is_ready(&mut cancelled).await);
        drop(cancelled);
        drop(guard);
        assert_eq!(server.read(&path).await["submissions"], json!([]));
    });
}

/// Creates a form with a pattern that is slow on long texts of `a` and `b`.
async fn slow_form(server: &Server) -> String {
    let tale = json!({"type": "long_text", "title": "Tale", "pattern": "[ab]*a[ab]{20}|[cd]{1000}"});
    server.published_form(json!([tale])).await
}

#[test]
fn a_cancelled_request_keeps_its_lock_until_its_work_is_done() {
    with_one_pool_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        let path = format!("/api/v1/forms/{form}/submissions?dry_run=true");
        let trial = || Box::pin(server.post(&path, json!({"answers": {"q1": "ab".repeat(500)}})).send());
        let guard = block_pool_thread();
        let mut cancelled = trial();
        assert!(!is_ready(&mut cancelled).await);
        drop(cancelled);
        let mut next = trial();
        assert!(!is_ready(&mut next).await);
        // The thread runs jobs in order: the cancelled one, then this.
        let begun = Arc::new(AtomicBool::new(false));
        let (second_guard, released) = channel::<()>();
        let begun_in_job = begun.clone();
        spawn_blocking(move || {
            begun_in_job.store(true, Ordering::SeqCst);
            released.recv()
        });
        drop(guard);
        wait_until(async || begun.load(Ordering::SeqCst)).await;
        assert!(!is_ready(&mut next).await, "it did not wait for the cancelled request");
        drop(second_guard);
        next.await.expect(422);
    });
}

/// Creates two submissions whose ids end in the same byte.
async fn submissions_with_equal_last_byte(server: &Server, form: &str) -> [String; 2] {
    let mut ids = HashMap::new();
    loop {
        let id = server.submit(form, json!({})).await;
        let bytes = id.parse::<SubmissionId>().unwrap().to_bytes();
        if let Some(earlier) = ids.insert(bytes.last().copied(), id.clone()) {
            return [earlier, id];
        }
    }
}

#[test]
fn an_edit_does_not_wait_for_a_slow_edit_of_another_submission() {
    with_one_pool_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        let [long, other] = submissions_with_equal_last_byte(&server, &form).await;
        let edit = |id: &str, body| server.patch(format!("/api/v1/forms/{form}/submissions/{id}"), body);
        let guard = block_pool_thread();
        let mut editing = pin!(edit(&long, json!({"answers": {"q1": "ab".repeat(500)}})).send());
        assert!(!is_ready(&mut editing).await, "the pattern was matched on the request thread");
        let plain = edit(&other, json!({"metadata": {"seen": "yes"}}));
        timeout(TIMEOUT, plain.send()).await.expect("the edit did not complete").expect(200);
        drop(guard);
        editing.await.expect(422);
    });
}

#[test]
fn an_edit_without_answers_does_not_use_the_pool() {
    with_one_pool_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        let id = server.submit(&form, json!({"q1": "ba".repeat(500)})).await;
        // Neither edit changes anything, so nothing is written.
        let edit = |body| server.patch(format!("/api/v1/forms/{form}/submissions/{id}"), body);
        let guard = block_pool_thread();
        let metadata = edit(json!({"metadata": null}));
        timeout(TIMEOUT, metadata.send()).await.expect("the edit did not complete").expect(200);
        let mut answers = pin!(edit(json!({"answers": {}})).send());
        assert!(!is_ready(&mut answers).await, "the pattern was matched on the request thread");
        drop(guard);
        answers.await.expect(200);
    });
}

#[test]
fn a_version_is_compiled_on_the_pool_and_once_for_concurrent_requests() {
    with_one_pool_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        // The reopened server has compiled nothing, and the queue holds one job: a second compilation would be refused.
        let server = server.with_pool(PoolLimits { jobs: 1, ..PoolLimits::default() }).await;
        let path = format!("/api/v1/forms/{form}/schema");
        let guard = block_pool_thread();
        let mut waiting: Vec<_> = (0..8).map(|_| Box::pin(server.get(&path).send())).collect();
        for request in &mut waiting {
            assert!(!is_ready(request).await, "the pattern was compiled on the request thread");
        }
        server.call_without_key(Method::GET, "/healthz").send().await.expect(200);
        drop(guard);
        for request in waiting {
            request.await.expect(200);
        }
    });
}

#[test]
fn a_key_can_use_a_quarter_of_the_pool_queue() {
    with_one_pool_thread(async {
        let server = Server::embedded().await;
        let limits = PoolLimits { threads: 8, jobs: 8, max_wait: Duration::ZERO, ..PoolLimits::default() };
        let server = server.with_pool(limits).await;
        let other = server.key_with(&[Scope::Write]).await;
        let create =
            |key: &str| Box::pin(server.post("/api/v1/forms", json!({"title": "Visit"})).key(key).send());
        let guard = block_pool_thread();
        let mut running = [create(&server.key), create(&server.key), create(&other)];
        for request in &mut running[..2] {
            assert!(!is_ready(request).await);
        }
        let third = timeout(TIMEOUT, create(&server.key)).await.expect("the third request was not refused");
        assert_eq!(third.code(), "overloaded");
        assert!(!is_ready(&mut running[2]).await, "the jobs of one key count against another");
        drop(guard);
        for request in running {
            request.await.expect(201);
        }
    });
}

#[tokio::test]
async fn a_search_that_reaches_its_time_limit_ends_its_page_early_with_a_cursor() {
    let (server, form) = Server::embedded_with_form().await;
    let mut expected = Vec::new();
    for number in 0..30 {
        let name = if number % 10 == 7 { "Ada" } else { "Eve" };
        let id = server.submit(&form, json!({"q1": name})).await;
        if name == "Ada" {
            expected.insert(0, id);
        }
    }
    let no_time = PoolLimits { step: Duration::ZERO, max_time: Duration::ZERO, ..PoolLimits::default() };
    let server = server.with_pool(no_time).await;
    let path = format!("/api/v1/forms/{form}/submissions?q=ada&count=true");
    let (mut found, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = server.read(format!("{path}{cursor}")).await;
        let rows = page["submissions"].as_array().unwrap();
        found.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        assert_eq!(page.get("total"), None, "an incomplete count was returned");
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, expected);
    assert!(pages > 1, "the search did not end early");
}
