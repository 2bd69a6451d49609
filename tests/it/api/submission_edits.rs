//! Metadata, edits and history of submissions over HTTP.

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::{NOW, Server, TestResponse, questions};

fn path(form: &str) -> String {
    format!("/api/v1/forms/{form}/submissions")
}

/// Pointers and codes of the errors in a 422 response.
fn errors(response: &TestResponse) -> Vec<(String, String)> {
    let body = response.expect(422);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = body["errors"].as_array().unwrap().iter();
    errors.map(|error| (text(&error["pointer"]), text(&error["code"]))).collect()
}

#[tokio::test]
async fn metadata_is_returned_byte_for_byte() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let body = r#"{"metadata": { "utm\u005fsource" : "news" }, "answers":{"q1":"Ada"}}"#;
    let metadata = r#""metadata":{ "utm\u005fsource" : "news" }"#;
    let made = server.post(path(&form), json!({})).body(body).send().await;
    assert_eq!(made.fields(), ["id", "form_id", "status", "answers", "submitted_at", "metadata"]);
    assert!(made.text().ends_with(&format!("{metadata}}}")), "{}", made.text());
    let one = format!("{}/{}", path(&form), made.expect(201)["id"].as_str().unwrap());
    for read in [one.clone(), path(&form), one.replace("submissions", "responses")] {
        let read = server.get(&read).send().await;
        assert!(read.text().contains(metadata), "{}", read.text());
    }
    let tried = server.post(format!("{}?dry_run=true", path(&form)), json!({})).body(body).send().await;
    assert_eq!(tried.fields(), made.fields());
    server.submit(&form, json!({"q1": "Bob"})).await;
    let list = server.get(path(&form)).send().await.expect(200);
    assert_eq!(list["submissions"][0].get("metadata"), None, "metadata was returned although none was sent");
}

#[tokio::test]
async fn metadata_is_a_flat_object_of_at_most_20_texts() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let names = |count| (0..count).map(|number| (format!("k{number}"), json!("v"))).collect::<Value>();
    let long = "x".repeat(64 * 1024);
    let cases = [
        (json!({}), None),
        (names(20), None),
        (names(21), Some(("/metadata", "too_many"))),
        (json!({"a": long, &long: "b"}), None),
        (json!({"a": format!("{long}x")}), Some(("/metadata/a", "too_long"))),
        (json!({"a/b": 5}), Some(("/metadata/a~1b", "type_mismatch"))),
        (json!({"a": "one\r\n\ttwo"}), None),
        (json!({"a": "\u{1b}[31m"}), Some(("/metadata/a", "invalid_character"))),
        (json!({"a\u{9b}": "b"}), Some(("/metadata/a\u{9b}", "invalid_character"))),
        (json!({"a": null}), Some(("/metadata/a", "type_mismatch"))),
        (json!({"a": {"b": "c"}}), Some(("/metadata/a", "type_mismatch"))),
        (json!("text"), Some(("/metadata", "type_mismatch"))),
        (json!(null), Some(("/metadata", "type_mismatch"))),
    ];
    for (metadata, expected) in cases {
        let body = json!({"answers": {"q1": "Ada"}, "metadata": metadata});
        let response = server.post(path(&form), body).send().await;
        match expected {
            None => assert_eq!(response.expect(201)["metadata"], metadata),
            Some((pointer, code)) => assert_eq!(errors(&response), [(pointer.to_owned(), code.to_owned())]),
        }
    }
    let key = format!("{long}x");
    let body = json!({"answers": {"q1": "Ada"}, "metadata": {&key: "v"}});
    let refused = server.post(path(&form), body).send().await;
    assert_eq!(errors(&refused), [(format!("/metadata/{key}"), "too_long".to_owned())]);
}

#[tokio::test]
async fn an_edit_changes_the_fields_it_names_and_keeps_the_old_content_in_the_history() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let sent = r#"{"answers":{ "q3" : 5.0e0, "q1":"Ad\u0061" },"metadata":{"a":"1","b":"2"}}"#;
    let made = server.post(path(&form), json!({})).body(sent).send().await.expect(201);
    let one = format!("{}/{}", path(&form), made["id"].as_str().unwrap());
    let before = server.get(&one).send().await;
    let edit = |body: Value| server.patch(&one, body).send();
    for unchanged in [
        json!({}),
        json!({"answers": {}, "metadata": {}}),
        json!({"answers": {"q2": null}, "metadata": {"a": "1", "c": null}}),
    ] {
        assert_eq!(
            edit(unchanged).await.text(),
            before.text(),
            "an edit without a change changed the submission"
        );
    }
    server.clock.set("2026-11-20T10:00:00Z");
    let patch = r#"{"answers":{"q2":"ada@example.com"},"metadata":{"b":null,"c":"3"}}"#;
    let call = server.patch(&one, json!({})).header("content-type", "application/merge-patch+json");
    let edited = call.body(patch).send().await;
    let mut expected = before.json();
    expected["answers"]["q2"] = json!("ada@example.com");
    expected["metadata"] = json!({"a": "1", "c": "3"});
    expected["updated_at"] = json!("2026-11-20T10:00:00.000Z");
    assert_eq!(edited.expect(200), expected);
    let kept = r#""answers":{"q3":5.0e0,"q1":"Ad\u0061","q2":"ada@example.com"}"#;
    assert!(edited.text().contains(kept), "unnamed answers were not kept byte for byte: {}", edited.text());
    assert_eq!(server.get(&one).send().await.text(), edited.text());
    assert_eq!(server.get(path(&form)).send().await.expect(200)["submissions"][0], expected);
    server.clock.set("2026-11-20T11:00:00Z");
    let without_metadata = edit(json!({"answers": {"q1": "Eve"}, "metadata": null})).await.expect(200);
    assert_eq!((without_metadata.get("metadata"), &without_metadata["answers"]["q1"]), (None, &json!("Eve")));
    assert_eq!(without_metadata["submitted_at"], NOW);
    let history = server.get(format!("{one}/history")).send().await;
    let replaced = [
        json!({"answers": expected["answers"], "metadata": expected["metadata"], "replaced_at": "2026-11-20T11:00:00.000Z"}),
        json!({"answers": made["answers"], "metadata": made["metadata"], "replaced_at": "2026-11-20T10:00:00.000Z"}),
    ];
    assert_eq!(history.expect(200), json!({"history": replaced}));
    assert!(history.text().contains(r#"{ "q3" : 5.0e0, "q1":"Ad\u0061" }"#), "{}", history.text());
    // Pages of the history, under both paths.
    let page = server.get(format!("{one}/history?limit=1").replace("submissions", "responses")).send().await;
    assert_eq!(page.expect(200)["history"], json!([replaced[0]]));
    let next = page.header("link").unwrap().split_once('>').unwrap().0.trim_start_matches('<').to_owned();
    let rest = server.get(&next).send().await;
    assert_eq!((rest.expect(200), rest.header("link")), (json!({"history": [replaced[1]]}), None));
    let other = server.submit(&form, json!({"q1": "Bob"})).await;
    let (_, cursor) = next.split_once("cursor=").unwrap();
    let other_history = format!("{}/{other}/history?cursor={cursor}", path(&form));
    assert_eq!(server.get(other_history).send().await.code(), "invalid_cursor");
    let untouched = server.get(format!("{}/{other}/history", path(&form))).send().await;
    assert_eq!(untouched.expect(200), json!({"history": []}));
}

#[tokio::test]
async fn every_problem_of_an_edit_is_reported_with_its_pointer() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({"q1": "Ada"})).await);
    let before = server.get(&one).send().await;
    for (body, expected) in [
        (json!([]), vec![("", "type_mismatch")]),
        (json!({"answers": null}), vec![("/answers", "type_mismatch")]),
        (
            json!({"answers": [], "metadata": "x"}),
            vec![("/answers", "type_mismatch"), ("/metadata", "type_mismatch")],
        ),
        (json!({"status": "completed"}), vec![("/status", "unknown_field")]),
        (json!({"answers": {"q1": null}}), vec![("/answers/q1", "required")]),
        (json!({"answers": {"q2": null, "emial": null}}), vec![("/answers/emial", "unknown_question")]),
        (
            json!({"answers": {"q8": 1, "q9": null}}),
            vec![("/answers/q9", "unknown_question"), ("/answers/q8", "unknown_question")],
        ),
        (
            json!({"answers": {"q1": null}, "status": "completed"}),
            vec![("/status", "unknown_field"), ("/answers/q1", "required")],
        ),
        (
            json!({"answers": {"q2": "nobody", "q3": 9, "q9": 1}, "metadata": {"a": 1}}),
            vec![
                ("/answers/q2", "invalid_email"),
                ("/answers/q3", "out_of_range"),
                ("/answers/q9", "unknown_question"),
                ("/metadata/a", "type_mismatch"),
            ],
        ),
    ] {
        let refused = server.patch(&one, body.clone()).send().await;
        let found = errors(&refused);
        let found: Vec<_> = found.iter().map(|(pointer, code)| (pointer.as_str(), code.as_str())).collect();
        assert_eq!(found, expected, "{body}");
    }
    assert_eq!(server.patch(&one, json!({})).body("{").send().await.code(), "malformed_json");
    assert_eq!(
        server.patch(&one, json!({})).body("{}").header("content-type", "text/plain").send().await.code(),
        "unsupported_media_type"
    );
    assert_eq!(server.get(&one).send().await.text(), before.text());
}

#[tokio::test]
async fn an_edit_is_checked_against_the_original_version_and_date() {
    let server = Server::start().await;
    let form = server
        .published_form(json!([
            {"type": "short_text", "title": "Name?", "required": true},
            {"type": "date", "title": "When?", "min": "today"},
            {"type": "boolean", "title": "More?"},
            {"type": "hidden", "id": "source", "default": "web", "show_if": {"q3": true}},
            {"type": "short_text", "id": "more", "title": "What?", "show_if": {"q3": true}},
        ]))
        .await;
    let sent = json!({"q1": "Ada", "q2": "2026-11-21", "q3": true, "more": "Tea"});
    let one = format!("{}/{}", path(&form), server.submit(&form, sent).await);
    // Since then the form has other questions, is closed, and the date has passed.
    let change = json!({
        "questions": [{"id": "stars", "type": "rating", "title": "Stars", "required": true}],
        "settings": {"closed": true},
    });
    server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    server.clock.set("2027-03-01T00:00:00Z");
    let edit = |answers: Value| server.patch(&one, json!({"answers": answers})).send();
    let edited = edit(json!({"q1": "Eve", "q2": "2026-11-20"})).await.expect(200);
    assert_eq!((&edited["answers"]["q1"], &edited["form_version"]), (&json!("Eve"), &json!(1)));
    assert_eq!(
        errors(&edit(json!({"q2": "2026-11-19"})).await),
        [("/answers/q2".into(), "out_of_range".into())]
    );
    assert_eq!(
        errors(&edit(json!({"stars": 5})).await),
        [("/answers/stars".into(), "unknown_question".into())]
    );
    // An answer to a question that is no longer shown must be removed; one that is shown again gets its default.
    let hidden = edit(json!({"q3": false})).await;
    let second = &hidden.expect(422)["errors"][1];
    assert_eq!(second["message"], "\"What?\" is not asked with these answers");
    assert_eq!(second["help"], "send `null` for it");
    assert_eq!(
        errors(&hidden),
        ["source", "more"].map(|id| (format!("/answers/{id}"), "question_not_visible".to_owned()))
    );
    let without = edit(json!({"q3": false, "source": null, "more": null})).await.expect(200);
    assert_eq!(without["answers"], json!({"q1": "Eve", "q2": "2026-11-20", "q3": false}));
    let with = edit(json!({"q3": true})).await.expect(200);
    assert_eq!(with["answers"]["source"], "web");
}

#[tokio::test]
async fn a_replay_returns_the_submission_before_its_edits() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let send = || {
        let body = json!({"answers": {"q1": "Ada"}, "metadata": {"a": "b"}});
        server.post(path(&form), body).header("idempotency-key", "1").send()
    };
    let first = send().await;
    let one = format!("{}/{}", path(&form), first.expect(201)["id"].as_str().unwrap());
    for name in ["Eve", "Bob"] {
        server.patch(&one, json!({"answers": {"q1": name}, "metadata": null})).send().await.expect(200);
        let again = send().await;
        assert_eq!((again.text(), again.header("idempotency-replayed")), (first.text(), Some("true")));
    }
    server.call(Method::DELETE, &one).send().await;
    assert_eq!(send().await.text(), first.text());
}

#[tokio::test]
async fn concurrent_edits_of_one_submission_are_all_applied() {
    const CLIENTS: u64 = 64;
    let server = std::sync::Arc::new(Server::start().await);
    let questions = (1..=CLIENTS).map(|_| json!({"type": "number", "title": "N"})).collect();
    let form = server.published_form(questions).await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({})).await);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=CLIENTS {
        let (server, one) = (server.clone(), one.clone());
        tasks.spawn(async move {
            let answers = json!({format!("q{number}"): number});
            server.patch(&one, json!({"answers": answers})).send().await.expect(200);
        });
    }
    tasks.join_all().await;
    let answers: Value = (1..=CLIENTS).map(|number| (format!("q{number}"), json!(number))).collect();
    assert_eq!(server.get(&one).send().await.expect(200)["answers"], answers);
    let history = server.get(format!("{one}/history")).send().await.expect(200);
    assert_eq!(history["history"].as_array().unwrap().len() as u64, CLIENTS);
}

#[tokio::test]
async fn a_change_with_a_stale_revision_is_refused() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({"q1": "Ada"})).await);
    let edit = |name: &str, seen: &str| {
        server.patch(&one, json!({"answers": {"q1": name}})).header("if-match", seen).send()
    };
    assert_eq!(server.get(&one).send().await.header("etag"), Some("\"r1\""));
    let edited = edit("Eve", "\"r1\"").await;
    assert_eq!(
        (edited.expect(200)["answers"]["q1"].as_str(), edited.header("etag")),
        (Some("Eve"), Some("\"r2\""))
    );
    // Refused even if the edit would change nothing.
    for name in ["Bob", "Eve"] {
        let refused = edit(name, "\"r1\"").await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (412, "version_mismatch"), "{name}");
    }
    assert_eq!(edit("Eve", "r1").await.code(), "invalid_header");
    let delete = |query: &str, seen: &str| {
        server.call(Method::DELETE, format!("{one}{query}")).header("if-match", seen).send()
    };
    for query in ["", "?purge=true"] {
        assert_eq!(delete(query, "\"r1\"").await.code(), "version_mismatch", "{query}");
    }
    assert_eq!(server.get(&one).send().await.expect(200)["answers"]["q1"], "Eve");
    assert_eq!(delete("", "\"r2\"").await.status, 204);
    assert_eq!(delete("?purge=true", "\"r1\"").await.code(), "version_mismatch", "in the trash");
    let restored = server.call(Method::POST, format!("{one}/restore")).send().await;
    assert_eq!((restored.status.as_u16(), restored.header("etag")), (200, Some("\"r2\"")));
    assert_eq!(delete("?purge=true", "*").await.status, 204);
}

#[tokio::test]
async fn a_replay_is_the_first_response_after_later_changes() {
    let server = Server::start().await;
    let hidden = json!({"id": "h", "type": "hidden", "default": "web"});
    let form = server.published_form(json!([{"type": "short_text", "title": "Name?"}, hidden])).await;
    let send = || {
        let body = json!({"answers": {"q1": "Ada"}, "metadata": {"from": "here"}});
        server.post(path(&form), body).header("idempotency-key", "1").send()
    };
    let first = send().await;
    let id = first.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(first.expect(201)["answers"], json!({"q1": "Ada", "h": "web"}));
    let one = format!("{}/{id}", path(&form));
    let replays = async |what: &str| {
        let again = send().await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{what}");
        assert_eq!((again.status, again.text()), (first.status, first.text()), "{what}");
    };
    assert_eq!(server.call(Method::DELETE, &one).send().await.status, 204);
    replays("in the trash").await;
    server.call(Method::POST, format!("{one}/restore")).send().await.expect(200);
    replays("restored").await;
    server.patch(&one, json!({"answers": {"q1": "Eve"}, "metadata": null})).send().await.expect(200);
    replays("edited").await;
    assert_eq!(server.call(Method::DELETE, &one).send().await.status, 204);
    replays("edited and in the trash").await;
    assert_eq!(server.call(Method::DELETE, format!("{one}?purge=true")).send().await.status, 204);
    replays("erased").await;
}
