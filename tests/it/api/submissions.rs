//! Creating and listing submissions over HTTP, beyond the specification's examples.

use super::filters::path;
use crate::harness::prelude::*;

#[tokio::test]
async fn a_dry_run_checks_everything_and_stores_nothing() {
    let (server, form) = Server::with_form().await;
    let try_out = |answers| server.post(format!("{}?dry_run=true", path(&form)), json!({"answers": answers}));
    let fine = try_out(json!({"q1": "Ada"})).send().await;
    let would_be = json!({
        "id": "sub_00000000000000000000000000", "form_id": form, "status": "completed", "answers": {"q1": "Ada"},
        "submitted_at": NOW,
    });
    assert_eq!(fine.expect(200), would_be);
    let made = server.post(path(&form), json!({"answers": {"q1": "Ada"}})).send().await;
    assert_eq!(fine.fields(), made.fields());
    let made = format!("{}/{}", path(&form), made.expect(201)["id"].as_str().unwrap());
    let shown = ["id", "form_id", "status", "answers", "submitted_at", "form_version"];
    assert_eq!(server.get(&made).send().await.fields(), shown);
    server.remove(made).await;
    assert_eq!(try_out(json!({"q1": 1})).send().await.expect(422)["errors"][0]["code"], "type_mismatch");
    assert_eq!(server.read(path(&form)).await["submissions"], json!([]));
}

#[tokio::test]
async fn all_problems_of_a_submission_are_reported_together() {
    let (server, form) = Server::with_form().await;
    let answers = json!({"q1": " ", "q2": "nobody", "q3": 9, "q4": "?", "a/b~": 1});
    let refused = server.post(path(&form), json!({"answers": answers})).send().await;
    refused.expect_errors(&[
        ("/answers/q1", "required"),
        ("/answers/q2", "invalid_email"),
        ("/answers/q3", "out_of_range"),
        ("/answers/a~1b~0", "unknown_question"),
        ("/answers/q4", "unknown_question"),
    ]);
    let body = refused.json();
    let missing = json!({
        "pointer": "/answers/q1", "question": "q1", "code": "required",
        "message": "\"Your name?\" needs an answer",
    });
    assert_eq!(body["errors"][0], missing);
    assert_eq!(body["detail"], "5 answers need attention");
    // Problems outside the answers do not hide problems of the answers.
    let around = json!({"answers": {"q1": 5}, "metadata": {"a": 1}, "x": 1});
    let refused = server.post(path(&form), around).send().await;
    let expected =
        [("/x", "unknown_field"), ("/metadata/a", "type_mismatch"), ("/answers/q1", "type_mismatch")];
    refused.expect_errors(&expected);
    assert_eq!(refused.json()["detail"], "3 problems in the submission");
    let many: Value = (0..1_001).map(|number| (format!("k{number}"), json!(null))).collect();
    let refused = server.post(path(&form), json!({"answers": many})).send().await;
    refused.expect_errors(&[("/answers", "too_many")]);
}

#[tokio::test]
async fn both_paths_are_the_same_operation() {
    let (server, form) = Server::with_form().await;
    let other = path(&form).replace("submissions", "responses");
    let made = server.post(&other, json!({"answers": {"q1": "Ada"}})).send().await;
    assert_eq!(fields(made.text()), ["id", "form_id", "status", "answers", "submitted_at"]);
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("location").unwrap(), format!("{}/{id}", path(&form)));
    for query in ["", "?limit=1", "?filter[q1]=Ada", &format!("/{id}")] {
        let (one, two) = (format!("{}{query}", path(&form)), format!("{other}{query}"));
        assert_eq!(server.get(one).send().await.text(), server.get(two).send().await.text());
    }
}

#[tokio::test]
async fn a_submission_with_unknown_fields_is_refused() {
    let (server, form) = Server::with_form().await;
    for (body, expected) in [
        (json!([]), &[("", "type_mismatch")][..]),
        (json!({}), &[("/answers", "missing_field")]),
        (json!({"answers": 1}), &[("/answers", "type_mismatch")]),
        (json!({"answers": {"q1": "Ada"}, "id": "sub_1"}), &[("/id", "unknown_field")]),
        (json!({"answer": {}}), &[("/answer", "unknown_field"), ("/answers", "missing_field")]),
    ] {
        server.post(path(&form), body).send().await.expect_errors(expected);
    }
}

#[tokio::test]
async fn a_submission_keeps_the_version_it_was_checked_against() {
    let (server, form) = Server::with_form().await;
    let old = server.submit(&form, json!({"q1": "Ada"})).await;
    let change = json!({"questions": [{"id": "q1", "type": "short_text", "title": "Name?"}]});
    server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    let new = server.submit(&form, json!({"q1": "Bob"})).await;
    for (id, version) in [(old, 1), (new, 2)] {
        let body = server.get(format!("{}/{id}", path(&form))).send().await.expect(200);
        assert_eq!(body["form_version"], version);
    }
    let entry = &server.get("/api/v1/forms").send().await.json()["forms"][0];
    assert_eq!(entry["response_count"], 2);
}

#[tokio::test]
async fn cursors_become_invalid_when_submissions_follow_a_clock_that_was_set_back() {
    let (server, form) = Server::with_form().await;
    server.clock.set("2026-11-20T09:00:00.000Z");
    for _ in 0..3 {
        server.submit(&form, json!({"q1": "Ada"})).await;
    }
    let page = format!("{}?limit=1", path(&form));
    let cursor = server.read(&page).await["next_cursor"].as_str().unwrap().to_owned();
    let next = format!("{page}&cursor={cursor}");
    server.read(&next).await;
    server.clock.set("2026-11-20T08:00:00.000Z");
    server.submit(&form, json!({"q1": "Ada"})).await;
    assert_eq!(server.get(&next).send().await.code(), "invalid_cursor");
}

#[tokio::test]
async fn headers_without_effect_on_a_request_are_refused() {
    let (server, form) = Server::with_form().await;
    let rename = server.patch(format!("/api/v1/forms/{form}"), json!({"title": "Other"}));
    let refused = rename.header("transfer-encoding", "gzip, chunked").send().await;
    assert_eq!(refused.code(), "invalid_header");
    let read = server.get(format!("/api/v1/forms/{form}")).header("if-match", "\"r2\"").send().await;
    assert_eq!(read.code(), "invalid_header");
    let title = server.read(format!("/api/v1/forms/{form}")).await["title"].clone();
    assert_ne!(title, "Other");
}
