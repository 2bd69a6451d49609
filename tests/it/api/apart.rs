//! Long work is done apart from the requests of others, and given up with its own.
//!
//! There is one spare thread, and it is taken: what needs it does not go on, all else does. Nothing is timed.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use forms::cpu_pool::PoolLimits;
use forms::domain::workspace::Scope;
use forms::id::SubmissionId;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::timeout;

use crate::harness::{Server, questions};
use crate::store::is_done;

/// Long enough that only a server that hangs makes a test wait for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `test` where there is one thread for requests and one for long work.
fn with_one_spare_thread(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(test);
}

/// Takes the spare thread until what this returns is dropped.
fn take_the_spare_thread() -> Sender<()> {
    let (taken, let_go) = channel();
    spawn_blocking(move || let_go.recv());
    taken
}

#[test]
fn nobody_waits_for_a_definition_that_is_read() {
    with_one_spare_thread(async {
        let server = Server::start().await;
        let form = server.draft(questions()).await;
        let path = format!("/api/v1/forms/{form}");
        for call in [
            server.post("/api/v1/forms", json!({"title": ""})),
            server.post("/api/v1/forms?dry_run=true", json!({"title": ""})),
            server.patch(&path, json!({"title": ""})),
        ] {
            let taken = take_the_spare_thread();
            let mut reading = pin!(call.send());
            assert!(!is_done(&mut reading).await, "it is read where others wait");
            server.get(&path).send().await.expect(200);
            drop(taken);
            reading.await.expect(422);
        }
    });
}

/// Yields until it is so.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes to be so");
}

#[test]
fn a_search_that_is_given_up_keeps_the_next_one_from_nothing() {
    with_one_spare_thread(async {
        let server = Server::start().await;
        let form = server.published(questions()).await;
        server.submit(&form, json!({"q1": "Ada"})).await;
        let path = format!("/api/v1/forms/{form}/submissions?q=nobody");
        let taken = take_the_spare_thread();
        let mut given_up = Box::pin(server.get(&path).send());
        assert!(!is_done(&mut given_up).await);
        drop(given_up);
        drop(taken);
        assert_eq!(server.get(&path).send().await.expect(200)["submissions"], json!([]));
    });
}

/// A form whose pattern takes long for long texts of `a` and `b`.
async fn slow_form(server: &Server) -> String {
    let tale = json!({"type": "long_text", "title": "Tale", "pattern": "[ab]*a[ab]{20}|[cd]{1000}"});
    server.published(json!([tale])).await
}

#[test]
fn who_hangs_up_keeps_the_turn_until_the_work_is_done() {
    with_one_spare_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        let path = format!("/api/v1/forms/{form}/submissions?dry_run=true");
        let trial = || Box::pin(server.post(&path, json!({"answers": {"q1": "ab".repeat(500)}})).send());
        let taken = take_the_spare_thread();
        let mut given_up = trial();
        assert!(!is_done(&mut given_up).await);
        drop(given_up);
        let mut next = trial();
        assert!(!is_done(&mut next).await);
        // The thread does one after the other: what was given up, then this.
        let begun = Arc::new(AtomicBool::new(false));
        let (behind, let_go) = channel::<()>();
        let beginning = begun.clone();
        spawn_blocking(move || {
            beginning.store(true, Ordering::SeqCst);
            let_go.recv()
        });
        drop(taken);
        until(|| begun.load(Ordering::SeqCst)).await;
        assert!(!is_done(&mut next).await, "it did not wait for what was given up");
        drop(behind);
        next.await.expect(422);
    });
}

/// Two submissions whose ids end alike.
async fn alike(server: &Server, form: &str) -> [String; 2] {
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
fn an_edit_waits_for_no_other_submissions_long_one() {
    with_one_spare_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        let [long, other] = alike(&server, &form).await;
        let edit = |id: &str, body| server.patch(format!("/api/v1/forms/{form}/submissions/{id}"), body);
        let taken = take_the_spare_thread();
        let mut editing = pin!(edit(&long, json!({"answers": {"q1": "ab".repeat(500)}})).send());
        assert!(!is_done(&mut editing).await, "it is held against the pattern where others wait");
        let plain = edit(&other, json!({"metadata": {"seen": "yes"}}));
        timeout(PATIENCE, plain.send()).await.expect("it waits for nobody").expect(200);
        drop(taken);
        editing.await.expect(422);
    });
}

#[test]
fn an_edit_that_leaves_the_answers_alone_is_not_handed_over() {
    with_one_spare_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        let id = server.submit(&form, json!({"q1": "ba".repeat(500)})).await;
        // Neither changes anything, so nothing is written.
        let edit = |nothing| server.patch(format!("/api/v1/forms/{form}/submissions/{id}"), nothing);
        let taken = take_the_spare_thread();
        let metadata = edit(json!({"metadata": null}));
        timeout(PATIENCE, metadata.send()).await.expect("it waits for nobody").expect(200);
        let mut answers = pin!(edit(json!({"answers": {}})).send());
        assert!(!is_done(&mut answers).await, "they are held against the pattern where others wait");
        drop(taken);
        answers.await.expect(200);
    });
}

#[test]
fn a_version_is_compiled_off_the_request_threads_and_once_for_all_who_wait() {
    with_one_spare_thread(async {
        let server = Server::start().await;
        let form = slow_form(&server).await;
        // Reopened, it has compiled nothing, and there is room for one job: a second compilation would be refused.
        let server = server.with_pool(PoolLimits { jobs: 1, ..PoolLimits::default() }).await;
        let path = format!("/api/v1/forms/{form}/schema");
        let taken = take_the_spare_thread();
        let mut waiting: Vec<_> = (0..8).map(|_| Box::pin(server.get(&path).send())).collect();
        for request in &mut waiting {
            assert!(!is_done(request).await, "the pattern is compiled where requests are served");
        }
        server.open_call(axum::http::Method::GET, "/healthz").send().await.expect(200);
        drop(taken);
        for request in waiting {
            request.await.expect(200);
        }
    });
}

#[test]
fn a_key_has_a_quarter_of_the_jobs_on_the_pool() {
    with_one_spare_thread(async {
        let server = Server::start().await;
        let limits = PoolLimits { threads: 8, jobs: 8, max_wait: Duration::ZERO, ..PoolLimits::default() };
        let server = server.with_pool(limits).await;
        let other = server.key_with(&[Scope::Write]).await;
        let create =
            |key: &str| Box::pin(server.post("/api/v1/forms", json!({"title": "Visit"})).key(key).send());
        let taken = take_the_spare_thread();
        let mut running = [create(&server.key), create(&server.key), create(&other)];
        for request in &mut running[..2] {
            assert!(!is_done(request).await);
        }
        let third = timeout(PATIENCE, create(&server.key)).await.expect("it is refused");
        assert_eq!(third.code(), "overloaded");
        assert!(!is_done(&mut running[2]).await, "the jobs of another key are its own");
        drop(taken);
        for request in running {
            request.await.expect(201);
        }
    });
}

#[tokio::test]
async fn a_search_that_has_used_up_its_time_ends_its_page_early_with_a_cursor() {
    let server = Server::start().await;
    let form = server.published(questions()).await;
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
        let page = server.get(format!("{path}{cursor}")).send().await.expect(200);
        let rows = page["submissions"].as_array().unwrap();
        found.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(next) = page["next_cursor"].as_str() else { break };
        assert_eq!(page.get("total"), None, "what was not counted to the end has no number");
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, expected);
    assert!(pages > 1, "there was no time for more than a step at once");
}
