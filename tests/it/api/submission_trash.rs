//! Deleting, restoring, listing and purging of submissions over HTTP.

use axum::http::Method;
use serde_json::{Value, json};

use super::filters::path;
use crate::harness::{Server, questions};

#[tokio::test]
async fn a_deleted_submission_is_listed_in_the_trash_and_can_be_restored() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let body = json!({"answers": {"q1": "Ada"}, "metadata": {"a": "b"}});
    let made = server.post(path(&form), body).send().await.expect(201);
    let one = format!("{}/{}", path(&form), made["id"].as_str().unwrap());
    let before = server.get(&one).send().await.expect(200);
    let count =
        async || server.get(format!("/api/v1/forms/{form}")).send().await.json()["response_count"].clone();
    server.clock.set("2026-11-20T10:00:00Z");
    let deleted = server.call(Method::DELETE, &one).send().await;
    assert_eq!((deleted.status.as_u16(), deleted.text()), (204, ""));
    for call in [
        server.get(&one),
        server.call(Method::DELETE, &one),
        server.patch(&one, json!({})),
        server.get(format!("{one}/history")),
    ] {
        assert_eq!(call.send().await.code(), "submission_not_found");
    }
    assert_eq!(count().await, 0);
    assert_eq!(server.get(path(&form)).send().await.expect(200)["submissions"], json!([]));
    let mut trashed = before.clone();
    trashed["deleted_at"] = json!("2026-11-20T10:00:00.000Z");
    for name in ["submissions", "responses"] {
        let list = format!("/api/v1/forms/{form}/{name}?trashed=true");
        let expected = json!({"submissions": [trashed], "next_cursor": null});
        assert_eq!(server.get(list).send().await.expect(200), expected);
    }
    let restore = |key: &'static str| {
        server.call(Method::POST, format!("{one}/restore")).header("idempotency-key", key).send()
    };
    let restored = restore("1").await;
    assert_eq!((restored.expect(200), restored.header("idempotency-replayed")), (before.clone(), None));
    let again = restore("1").await;
    assert_eq!((again.expect(200), again.header("idempotency-replayed")), (before.clone(), Some("true")));
    let refused = restore("2").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (409, "not_in_trash"));
    assert_eq!((count().await, server.get(&one).send().await.expect(200)), (json!(1), before));
    // The first restore is replayed although the submission is in the trash again, but not after a purge.
    server.call(Method::DELETE, &one).send().await;
    let again = restore("1").await;
    assert_eq!((again.text(), again.header("idempotency-replayed")), (restored.text(), Some("true")));
    let purge = |path: &str| server.call(Method::DELETE, format!("{path}?purge=true")).send();
    assert_eq!(purge(&one).await.status, 204);
    assert_eq!(restore("1").await.code(), "submission_not_found");
    assert_eq!(purge(&one).await.code(), "submission_not_found");
    assert_eq!(restore("3").await.code(), "submission_not_found");
    assert_eq!(count().await, 0);
}

#[tokio::test]
async fn the_trash_has_its_own_cursors() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = server.submit(&form, json!({"q1": "Ada"})).await;
        server.call(Method::DELETE, format!("{}/{id}", path(&form))).send().await;
        ids.insert(0, id);
        server.submit(&form, json!({"q1": "Bob"})).await;
    }
    let (mut next, mut seen) = (format!("{}?trashed=true&limit=2", path(&form)), Vec::new());
    let mut cursors = Vec::new();
    loop {
        let response = server.get(&next).send().await;
        let body = response.expect(200);
        let rows = body["submissions"].as_array().unwrap().iter();
        seen.extend(rows.map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = body["next_cursor"].as_str() else { break };
        next = format!("{}?trashed=true&limit=2&cursor={cursor}", path(&form));
        assert_eq!(response.header("link").unwrap(), format!("<{next}>; rel=\"next\""));
        cursors.push(cursor.to_owned());
    }
    assert_eq!((seen, cursors.len()), (ids, 1));
    let live = format!("{}?cursor={}", path(&form), cursors[0]);
    assert_eq!(server.get(live).send().await.code(), "invalid_cursor");
    let other = server.published_form(questions()).await;
    let others = format!("{}?trashed=true&cursor={}", path(&other), cursors[0]);
    assert_eq!(server.get(others).send().await.code(), "invalid_cursor");
}

#[tokio::test]
async fn a_deleted_submission_does_not_count_towards_the_response_limit() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let settings =
        |settings: Value| server.patch(format!("/api/v1/forms/{form}"), json!({"settings": settings})).send();
    settings(json!({"max_responses": 1})).await.expect(200);
    let first = server.submit(&form, json!({"q1": "Ada"})).await;
    let one = format!("{}/{first}", path(&form));
    let submit = || server.post(path(&form), json!({"answers": {"q1": "Bob"}})).send();
    assert_eq!(submit().await.code(), "form_full");
    assert_eq!(server.call(Method::DELETE, &one).send().await.status, 204);
    let second = submit().await.expect(201);
    let restore = || server.call(Method::POST, format!("{one}/restore")).send();
    assert_eq!(restore().await.code(), "form_full");
    let other = format!("{}/{}?purge=true", path(&form), second["id"].as_str().unwrap());
    assert_eq!(server.call(Method::DELETE, other).send().await.status, 204);
    // A closed form still allows the restore.
    settings(json!({"closed": true})).await.expect(200);
    restore().await.expect(200);
    assert_eq!(server.get(format!("/api/v1/forms/{form}")).send().await.json()["response_count"], 1);
}

#[tokio::test]
async fn trashed_submissions_are_erased_after_the_configured_days() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({"q1": "Ada"})).await);
    server.patch(&one, json!({"answers": {"q1": "Eve"}})).send().await.expect(200);
    server.call(Method::DELETE, &one).send().await;
    server.clock.set("2026-12-20T09:00:00.000Z");
    assert_eq!(server.app.empty_trash(30).await.unwrap(), 0);
    server.clock.set("2026-12-20T09:00:00.001Z");
    assert_eq!(server.app.empty_trash(30).await.unwrap(), 1);
    let response = server.call(Method::POST, format!("{one}/restore")).send().await;
    assert_eq!(response.code(), "submission_not_found");
}

#[tokio::test]
async fn a_replayed_restore_returns_its_first_response_after_later_edits() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({"q1": "Ada"})).await);
    let edit = async |server: &Server, name: &str| {
        server.patch(&one, json!({"answers": {"q1": name}})).send().await.expect(200);
    };
    let restore = async |server: &Server, key: &str| {
        server.call(Method::POST, format!("{one}/restore")).header("idempotency-key", key).send().await
    };
    let delete = async |server: &Server| server.call(Method::DELETE, &one).send().await;
    let mut first_responses = Vec::new();
    for (key, name) in [("1", "Eve"), ("2", "Bob")] {
        delete(&server).await;
        first_responses.push((key, restore(&server, key).await));
        edit(&server, name).await;
        edit(&server, "Zoe").await;
    }
    let same = async |server: &Server| {
        for (key, first_responses) in &first_responses {
            let again = restore(server, key).await;
            assert_eq!(
                (again.text(), again.header("etag")),
                (first_responses.text(), first_responses.header("etag"))
            );
            assert_eq!(
                (again.expect(200), again.header("idempotency-replayed")),
                (first_responses.expect(200), Some("true"))
            );
        }
    };
    same(&server).await;
    let server = server.with_index(|_| ()).await;
    same(&server).await;
    delete(&server).await;
    same(&server).await;
}
