//! Answers that take long to be held against a pattern: nobody else waits for them.

use std::cell::RefCell;

use serde_json::{Value, json};

use crate::harness::{Call, Server};

/// A text that is slow to be found not to match the pattern of [`form`].
fn slow() -> String {
    "ab".repeat(2_500)
}

async fn form(server: &Server) -> String {
    // The second half is what makes it large.
    form_with(server, "[ab]*a[ab]{20}|[cd]{1000}").await
}

async fn form_with(server: &Server, pattern: &str) -> String {
    server.published(json!([{"type": "long_text", "title": "Tale", "pattern": pattern}])).await
}

fn trial(server: &Server, form: &str, answer: &str) -> Call {
    let answers: Value = json!({"answers": {"q1": answer}});
    server.post(format!("/api/v1/forms/{form}/submissions?dry_run=true"), answers)
}

/// The names of the calls, all refused, in the order of their answers.
async fn order(calls: [(&'static str, Call); 4]) -> Vec<&'static str> {
    let order = RefCell::new(Vec::new());
    let [a, b, c, d] = calls.map(async |(name, call)| {
        call.send().await.expect(422);
        order.borrow_mut().push(name);
    });
    tokio::join!(biased; a, b, c, d);
    order.into_inner()
}

/// Which of `call`, which gets this status, and a later look at the server's health is answered first. There is one thread.
async fn first(server: &Server, call: Call) -> &'static str {
    let order = RefCell::new(Vec::new());
    let call = async {
        call.send().await.expect(422);
        order.borrow_mut().push("it");
    };
    let health = async {
        server.open_call(axum::http::Method::GET, "/healthz").send().await.expect(200);
        order.borrow_mut().push("health");
    };
    tokio::join!(biased; call, health);
    order.into_inner()[0]
}

#[tokio::test]
async fn others_are_served_while_a_long_answer_is_held_against_a_pattern() {
    let server = Server::start().await;
    let form = form(&server).await;
    assert_eq!(
        first(&server, trial(&server, &form, "abc")).await,
        "it",
        "a short one is quicker done than handed over"
    );
    assert_eq!(first(&server, trial(&server, &form, &slow())).await, "health");
    let id = server.submit(&form, json!({})).await;
    let path = format!("/api/v1/forms/{form}/submissions/{id}");
    let edit = |answer: &str| server.patch(&path, json!({"answers": {"q1": answer}}));
    assert_eq!(first(&server, edit("abc")).await, "it");
    assert_eq!(first(&server, edit(&slow())).await, "health");
}

#[tokio::test]
async fn forms_with_long_answers_take_turns() {
    let server = Server::start().await;
    let (busy, other) = (form(&server).await, form(&server).await);
    let long = |name, form| (name, trial(&server, form, &slow()));
    let calls = [long("1st", &busy), long("2nd", &busy), long("3rd", &busy), long("other", &other)];
    let order = order(calls).await;
    assert_ne!(order.last(), Some(&"other"), "{order:?}");
}

#[tokio::test]
async fn an_ordinary_answer_does_not_wait_for_another_forms_long_ones() {
    let server = Server::start().await;
    let (busy, other) = (form(&server).await, form_with(&server, "[a-z]{400}").await);
    let long = |name| (name, trial(&server, &busy, &slow()));
    let ordinary = trial(&server, &other, &"tale".repeat(250));
    let order = order([long("1st"), long("2nd"), long("3rd"), ("ordinary", ordinary)]);
    assert_eq!(order.await[0], "ordinary");
}

#[tokio::test]
async fn others_are_served_while_a_long_answer_is_looked_through_for_many_parts() {
    let server = Server::start().await;
    let parts: Vec<_> = (0..400).map(|part| json!({"q1": {"includes": format!("part {part}")}})).collect();
    let tale = json!({"type": "long_text", "title": "Tale"});
    let stars = json!({"type": "rating", "title": "Stars", "show_if": {"any": parts}});
    let form = server.published(json!([tale, stars])).await;
    let trial = |text: &str| {
        let path = format!("/api/v1/forms/{form}/submissions?dry_run=true");
        server.post(path, json!({"answers": {"q1": text, "q2": 3}}))
    };
    assert_eq!(first(&server, trial("abc")).await, "it");
    assert_eq!(first(&server, trial(&slow())).await, "health");
}

#[tokio::test]
async fn others_are_served_while_a_long_list_is_looked_through_for_many_options() {
    let server = Server::start().await;
    let options: Vec<_> = (0..400).map(|option| format!("option {option}")).collect();
    let any: Vec<_> = options.iter().map(|option| json!({"q1": {"includes": option}})).collect();
    let list = json!({"type": "multiple_choice", "title": "List", "options": options});
    let stars = json!({"type": "rating", "title": "Stars", "show_if": {"any": any}});
    let form = server.published(json!([list, stars])).await;
    let trial = |count: usize| {
        let path = format!("/api/v1/forms/{form}/submissions?dry_run=true");
        server.post(path, json!({"answers": {"q1": vec!["none"; count]}}))
    };
    assert_eq!(first(&server, trial(10)).await, "it");
    assert_eq!(first(&server, trial(5_000)).await, "health");
}
