//! Creating and listing submissions over HTTP, beyond the specification's examples.

use axum::http::Method;
use serde_json::json;

use crate::harness::{NOW, Server, TestResponse, fields, questions};

fn path(form: &str) -> String {
    format!("/api/v1/forms/{form}/submissions")
}

/// The raw JSON of the field `answers` in `text`.
fn answers_text(text: &str) -> &str {
    let members = forms::domain::json::parse_object(text).unwrap();
    let (.., range) = members.into_iter().find(|(name, ..)| name == "answers").unwrap();
    &text[range]
}

#[tokio::test]
async fn answers_are_echoed_and_returned_byte_for_byte() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let sent = "{ \"q3\" : 5.0e0,\"q1\":\"Ad\\u0061 \\uD83D\\uDE00\", \"q2\":\"\" }";
    let call = server.post(path(&form), json!({})).body(format!("{{\"answers\":{sent}}}"));
    let made = call.send().await;
    assert_eq!(answers_text(made.text()), sent);
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    let read = server.get(format!("{}/{id}", path(&form))).send().await;
    assert_eq!(answers_text(read.text()), sent);
    assert_eq!(read.fields(), ["id", "form_id", "status", "answers", "submitted_at", "form_version"]);
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_stores_nothing() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let try_out = |answers| server.post(format!("{}?dry_run=true", path(&form)), json!({"answers": answers}));
    let fine = try_out(json!({"q1": "Ada"})).send().await;
    let would_be = json!({
        "id": "sub_00000000000000000000000000", "form_id": form, "status": "completed", "answers": {"q1": "Ada"},
        "submitted_at": NOW,
    });
    assert_eq!(fine.expect(200), would_be);
    let made = server.post(path(&form), json!({"answers": {"q1": "Ada"}})).send().await;
    assert_eq!(fine.fields(), made.fields());
    server
        .call(Method::DELETE, format!("{}/{}", path(&form), made.expect(201)["id"].as_str().unwrap()))
        .send()
        .await;
    assert_eq!(try_out(json!({"q1": 1})).send().await.expect(422)["errors"][0]["code"], "type_mismatch");
    assert_eq!(server.get(path(&form)).send().await.expect(200)["submissions"], json!([]));
}

#[tokio::test]
async fn all_problems_of_a_submission_are_reported_together() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let answers = json!({"q2": "nobody", "q3": 9, "q4": "?"});
    let body = server.post(path(&form), json!({"answers": answers})).send().await.expect(422);
    let found: Vec<_> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["pointer"].as_str().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("/answers/q1", "required"),
            ("/answers/q2", "invalid_email"),
            ("/answers/q3", "out_of_range"),
            ("/answers/q4", "unknown_question"),
        ]
    );
    assert_eq!(body["detail"], "4 answers need attention");
    // Problems outside the answers do not hide problems of the answers.
    let around = json!({"answers": {"q1": 5}, "metadata": {"a": 1}, "x": 1});
    let body = server.post(path(&form), around).send().await.expect(422);
    let pointers = body["errors"].as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap());
    let mut pointers: Vec<_> = pointers.collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/answers/q1", "/metadata/a", "/x"]);
    assert_eq!(body["detail"], "3 problems in the submission");
    let body = server.post(path(&form), json!({"answer": {}})).send().await.expect(422);
    assert_eq!(body["detail"], "2 problems in the submission");
}

#[tokio::test]
async fn the_list_is_paged_newest_first_during_writes() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let mut made = Vec::new();
    for second in 0..5 {
        server.clock.set(&format!("2026-11-20T09:00:0{second}Z"));
        made.push(server.submit(&form, json!({"q1": "Ada"})).await);
    }
    let (mut next, mut seen) = (format!("{}?limit=2", path(&form)), Vec::new());
    loop {
        let response = server.get(&next).send().await;
        let body = response.expect(200);
        for submission in body["submissions"].as_array().unwrap() {
            seen.push(submission["id"].as_str().unwrap().to_owned());
        }
        server.submit(&form, json!({"q1": "Late"})).await;
        let Some(cursor) = body["next_cursor"].as_str() else { break };
        next = format!("{}?limit=2&cursor={cursor}", path(&form));
        assert_eq!(response.header("link").unwrap(), format!("<{next}>; rel=\"next\""));
    }
    made.reverse();
    assert_eq!(seen, made);
}

#[tokio::test]
async fn a_page_has_fifty_submissions_by_default() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    for _ in 0..51 {
        server.submit(&form, json!({"q1": "Ada"})).await;
    }
    let body = server.get(path(&form)).send().await.expect(200);
    assert_eq!(body["submissions"].as_array().unwrap().len(), 50);
    assert!(body["next_cursor"].is_string());
}

#[tokio::test]
async fn a_repeated_submission_is_stored_once_under_both_paths() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let send = |name: &str, answers| {
        let call = server.post(format!("/api/v1/forms/{form}/{name}"), json!({"answers": answers}));
        call.header("idempotency-key", "order-42").send()
    };
    let first = send("submissions", json!({"q1": "Ada"})).await;
    // A replay works even if the form no longer accepts answers.
    server.patch(format!("/api/v1/forms/{form}"), json!({"status": "draft"})).send().await.expect(200);
    let again = send("responses", json!({"q1": "Ada"})).await;
    let seen = |response: &TestResponse| {
        (response.text().to_owned(), response.header("location").unwrap().to_owned())
    };
    assert_eq!((first.status.as_u16(), seen(&first)), (201, seen(&again)));
    assert_eq!(
        [&first, &again].map(|response| response.header("idempotency-replayed")),
        [None, Some("true")]
    );
    assert_eq!(send("responses", json!({"q1": "Bob"})).await.code(), "idempotency_key_reused");
    assert_eq!(server.get(path(&form)).send().await.json()["submissions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_refused_submission_does_not_use_its_idempotency_key() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let send = |answers| {
        let call = server.post(path(&form), json!({"answers": answers}));
        call.header("idempotency-key", "1").send()
    };
    send(json!({})).await.expect(422);
    let stored = send(json!({"q1": "Ada"})).await;
    assert_eq!((stored.status.as_u16(), stored.header("idempotency-replayed")), (201, None));
}

#[tokio::test]
async fn both_paths_are_the_same_operation() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let other = path(&form).replace("submissions", "responses");
    let made = server.post(&other, json!({"answers": {"q1": "Ada"}})).send().await;
    assert_eq!(fields(made.text()), ["id", "form_id", "status", "answers", "submitted_at"]);
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("location").unwrap(), format!("{}/{id}", path(&form)));
    for query in ["", "?limit=1", &format!("/{id}")] {
        let (one, two) = (format!("{}{query}", path(&form)), format!("{other}{query}"));
        assert_eq!(server.get(one).send().await.text(), server.get(two).send().await.text());
    }
}

#[tokio::test]
async fn a_submission_with_unknown_fields_is_refused() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    for (body, code, pointer) in [
        (json!([]), "type_mismatch", ""),
        (json!({}), "missing_field", "/answers"),
        (json!({"answers": 1}), "type_mismatch", "/answers"),
        (json!({"answers": {"q1": "Ada"}, "id": "sub_1"}), "unknown_field", "/id"),
    ] {
        let refused = server.post(path(&form), body).send().await.expect(422);
        assert_eq!([&refused["errors"][0]["code"], &refused["errors"][0]["pointer"]], [code, pointer]);
    }
}

#[tokio::test]
async fn a_submission_keeps_the_version_it_was_checked_against() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
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
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    server.clock.set("2026-11-20T09:00:00.000Z");
    for _ in 0..3 {
        server.submit(&form, json!({"q1": "Ada"})).await;
    }
    let page = format!("{}?limit=1", path(&form));
    let cursor = server.get(&page).send().await.expect(200)["next_cursor"].as_str().unwrap().to_owned();
    let next = format!("{page}&cursor={cursor}");
    server.get(&next).send().await.expect(200);
    server.clock.set("2026-11-20T08:00:00.000Z");
    server.submit(&form, json!({"q1": "Ada"})).await;
    assert_eq!(server.get(&next).send().await.code(), "invalid_cursor");
}

#[tokio::test]
async fn headers_without_effect_on_a_request_are_refused() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let rename = server.patch(format!("/api/v1/forms/{form}"), json!({"title": "Other"}));
    let refused = rename.header("transfer-encoding", "gzip, chunked").send().await;
    assert_eq!(refused.code(), "invalid_header");
    let read = server.get(format!("/api/v1/forms/{form}")).header("if-match", "\"r2\"").send().await;
    assert_eq!(read.code(), "invalid_header");
    let title = server.get(format!("/api/v1/forms/{form}")).send().await.expect(200)["title"].clone();
    assert_ne!(title, "Other");
}
