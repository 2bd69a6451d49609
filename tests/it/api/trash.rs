//! The trash of forms and of submissions: deleting, restoring, listing and erasing.

use super::filters::path;
use crate::harness::prelude::*;

const DELETED: &str = "2026-11-20T10:00:00.000Z";

/// A form and its submission: their paths, those of their lists, and the code of the error when they are missing.
fn both<'a>(form: &'a str, submission: &'a str) -> [(&'a str, &'a str, &'static str); 2] {
    let submissions = submission.rsplit_once('/').unwrap().0;
    [(submission, submissions, "submission_not_found"), (form, FORMS, "form_not_found")]
}

/// Starts a server; returns the paths of a form and of a submission with metadata.
async fn start() -> (Server, String, String) {
    let (server, form) = Server::with_form().await;
    let body = json!({"answers": {"q1": "Ada"}, "metadata": {"a": "b"}});
    let submission = format!("{}/{}", path(&form), server.create(path(&form), body).await);
    (server, format!("{FORMS}/{form}"), submission)
}

async fn restore(server: &Server, path: &str) -> TestResponse {
    server.call(Method::POST, format!("{path}/restore")).send().await
}

#[tokio::test]
async fn what_is_deleted_is_listed_in_the_trash_until_it_is_restored_or_purged() {
    let (server, form, submission) = start().await;
    server.clock.set(DELETED);
    for (path, list, code) in both(&form, &submission) {
        let before = server.read(path).await;
        let live = server.read(list).await;
        server.remove(path).await;
        let history = format!("{path}/{}", if path == form { "versions" } else { "history" });
        for call in [
            server.get(path),
            server.delete(path),
            server.patch(path, json!({})),
            server.get(history),
            server.get(path.replace("submissions", "responses")),
        ] {
            call.send().await.expect_problem(404, code);
        }
        let trash = format!("{list}?trashed=true");
        let rows = if path == form { "forms" } else { "submissions" };
        let mut entry = live[rows][0].clone();
        entry["deleted_at"] = json!(DELETED);
        assert_eq!(server.read(list).await[rows], json!([]));
        for trash in [trash.clone(), trash.replace("submissions", "responses")] {
            assert_eq!(server.read(trash).await[rows], json!([entry]));
        }
        assert_eq!(restore(&server, path).await.expect(200), before);
        restore(&server, path).await.expect_problem(409, "not_in_trash");
        assert_eq!((server.read(path).await, server.read(list).await), (before, live));
        assert_eq!(server.read(&trash).await[rows], json!([]));
    }
    server.read(&submission).await;
}

#[tokio::test]
async fn what_is_purged_is_gone_inside_and_outside_the_trash() {
    for trashed in [false, true] {
        let (server, form, submission) = start().await;
        for (path, _, code) in both(&form, &submission) {
            if trashed {
                server.remove(path).await;
            }
            let purge = format!("{path}?purge=true");
            server.remove(&purge).await;
            for gone in [server.get(path), server.delete(&purge)] {
                gone.send().await.expect_problem(404, code);
            }
            restore(&server, path).await.expect_problem(404, code);
            if path == submission {
                assert_eq!(server.read(&form).await["response_count"], 0);
            }
        }
    }
}

#[tokio::test]
async fn the_trash_is_emptied_after_the_configured_days() {
    for place in 0..2 {
        let (server, form, submission) = start().await;
        server.patch(&submission, json!({"answers": {"q1": "Eve"}})).send().await.expect(200);
        let (path, _, code) = both(&form, &submission)[place];
        let other_key = server.other_workspace().await;
        let other = server.post(FORMS, json!({"title": "Other"})).key(&other_key).send().await.expect(201);
        // The second deletion counts.
        server.remove(path).await;
        restore(&server, path).await.expect(200);
        server.clock.set("2026-11-20T09:00:00.005Z");
        server.remove(path).await;
        let other = format!("{FORMS}/{}", other["id"].as_str().unwrap());
        assert_eq!(server.delete(other).key(&other_key).send().await.status, 204);
        // The limit is exact to the millisecond.
        for (time, erased) in [("09:00:00.005", 0), ("09:00:00.006", 2)] {
            server.clock.set(&format!("2026-12-20T{time}Z"));
            assert_eq!(server.app.empty_trash(30).await.unwrap(), erased);
        }
        restore(&server, path).await.expect_problem(404, code);
    }
}

#[tokio::test]
async fn a_restore_request_has_an_empty_body() {
    let (server, form, submission) = start().await;
    for path in [submission, form] {
        server.delete(&path).send().await;
        let restore =
            |body: &'static str| server.call(Method::POST, format!("{path}/restore")).body(body).send();
        restore(r#"{"status":"draft"}"#).await.expect_errors(&[("/status", "unknown_field")]);
        restore("[]").await.expect_errors(&[("", "type_mismatch")]);
        assert_eq!(restore("{").await.code(), "malformed_json");
        restore(" {} ").await.expect(200);
        server.delete(&path).send().await;
        restore("").await.expect(200);
    }
}

#[tokio::test]
async fn a_deleted_submission_does_not_count_towards_the_response_limit() {
    let (server, form) = Server::with_form().await;
    let settings =
        |settings: Value| server.patch(format!("/api/v1/forms/{form}"), json!({"settings": settings})).send();
    settings(json!({"max_responses": 1})).await.expect(200);
    let first = server.submit(&form, json!({"q1": "Ada"})).await;
    let one = format!("{}/{first}", path(&form));
    let submit = || server.post(path(&form), json!({"answers": {"q1": "Bob"}})).send();
    assert_eq!(submit().await.code(), "form_full");
    server.remove(&one).await;
    let second = submit().await.expect(201);
    let restore = || server.call(Method::POST, format!("{one}/restore")).send();
    assert_eq!(restore().await.code(), "form_full");
    let other = format!("{}/{}?purge=true", path(&form), second["id"].as_str().unwrap());
    server.remove(other).await;
    // A closed form still allows the restore.
    settings(json!({"closed": true})).await.expect(200);
    restore().await.expect(200);
    assert_eq!(server.get(format!("/api/v1/forms/{form}")).send().await.json()["response_count"], 1);
}
