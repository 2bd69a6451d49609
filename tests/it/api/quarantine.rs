//! Quarantined submissions: listed by their status only, released, erased.

use super::filters::path;
use crate::harness::prelude::*;

/// A server with a form that has a webhook, a submission, and a later one that is quarantined; the paths of the form and of both.
async fn start() -> (Server, String, [String; 2]) {
    let (server, form) = Server::with_form().await;
    server.integrate(&form, webhook()).await;
    let known = server.submit(&form, json!({"q1": "Ada"})).await;
    server.clock.advance(1_000);
    let spam = server.quarantine(&form, r#"{"q1":"pills"}"#).await;
    let submissions = [known, spam].map(|id| format!("{}/{id}", path(&form)));
    (server, format!("{FORMS}/{form}"), submissions)
}

fn act(server: &Server, path: &str, action: &str) -> Call {
    server.call(Method::POST, format!("{path}/{action}"))
}

#[tokio::test]
async fn only_the_list_of_its_status_has_a_quarantined_submission() {
    let (server, form, [known, spam]) = start().await;
    let list =
        async |query: &str| server.read(format!("{form}/submissions?{query}")).await["submissions"].take();
    let shown = [server.read(&known).await, server.read(&spam).await];
    assert_eq!((&shown[1]["status"], &shown[1]["deleted_at"]), (&json!("quarantined"), &Value::Null));
    assert_eq!(list("status=quarantined&limit=1").await, json!([shown[1]]));
    for query in ["", "status=completed", "order=asc", "count=true"] {
        assert_eq!(list(query).await, json!([shown[0]]), "{query}");
    }
    assert_eq!((list("q=pills").await, list("trashed=true").await), (json!([]), json!([])));
    let lines = async |query: &str| {
        let list = server.get(format!("{form}/submissions?{query}"));
        list.header("accept", "application/x-ndjson").send().await.text().lines().count()
    };
    assert_eq!((lines("").await, lines("status=quarantined").await, lines("trashed=true").await), (1, 1, 0));
    assert_eq!(server.read(&form).await["response_count"], 1);
    server.patch(&spam, json!({})).send().await.expect_problem(404, "submission_not_found");
    server.delete(&spam).send().await.expect_problem(404, "submission_not_found");
    act(&server, &spam, "restore").send().await.expect_problem(409, "not_in_trash");
    server.remove(format!("{spam}?purge=true")).await;
    server.get(&spam).send().await.expect_problem(404, "submission_not_found");
    assert_eq!(list("status=quarantined").await, json!([]));
}

#[tokio::test]
async fn a_released_submission_counts_and_is_delivered_once() {
    let (server, form, [known, spam]) = start().await;
    let limit = |most: u32| server.patch(&form, json!({"settings": {"max_responses": most}})).send();
    server.deliver().await;
    assert_eq!(server.sender.take().len(), 1);
    server.clock.advance(86_400_000);
    limit(1).await.expect(200);
    act(&server, &spam, "release").send().await.expect_problem(409, "form_full");
    limit(2).await.expect(200);
    let release = || act(&server, &spam, "release").header("idempotency-key", "a").send();
    let (released, again) = (release().await.expect(200), release().await);
    assert_eq!((again.header("idempotency-replayed"), again.json()), (Some("true"), released.clone()));
    assert_eq!((&released, &released["status"]), (&server.read(&spam).await, &json!("completed")));
    let listed = server.read(format!("{form}/submissions")).await;
    assert_eq!(listed["submissions"], json!([released, server.read(&known).await]));
    server.deliver().await;
    assert_eq!(server.sender.take().len(), 1);
    act(&server, &spam, "release").send().await.expect_problem(409, "not_quarantined");
    server.remove(&spam).await;
    act(&server, &spam, "release").send().await.expect_problem(409, "not_quarantined");
    act(&server, &spam, "restore").send().await.expect(200);
}

#[tokio::test]
async fn what_looks_like_spam_on_a_page_is_quarantined_and_thanked_for() {
    let (server, form) = Server::with_form().await;
    let settings = json!({"settings": {"public": true, "origins": ["https://example.com"]}});
    server.patch(format!("{FORMS}/{form}"), settings).send().await.expect(200);
    for (fields, status) in [("q1=soup", "completed"), ("q1=pills&_hp=x", "quarantined")] {
        let post = server.call_without_key(Method::POST, format!("/f/{form}")).body(fields);
        let post = post.header("origin", "https://example.com");
        let sent = post.header("content-type", "application/x-www-form-urlencoded").send().await;
        assert_eq!(sent.status, 303, "{}", sent.text());
        let listed = server.read(format!("{}?status={status}", path(&form))).await;
        let [stored] = listed["submissions"].as_array().unwrap().as_slice() else { panic!("{listed}") };
        assert!(sent.header("location").unwrap().contains(stored["id"].as_str().unwrap()));
        assert_eq!(stored["status"], status);
    }
}
