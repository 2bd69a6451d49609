//! Metadata, edits and history of submissions over HTTP.

use futures_util::future::join_all;

use super::filters::path;
use crate::harness::prelude::*;

#[tokio::test]
async fn metadata_is_returned_byte_for_byte() {
    let (server, form) = Server::with_form().await;
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
    let list = server.read(path(&form)).await;
    assert_eq!(list["submissions"][0].get("metadata"), None, "metadata was returned although none was sent");
}

#[tokio::test]
async fn metadata_is_a_flat_object_of_at_most_20_texts() {
    let (server, form) = Server::with_form().await;
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
            Some(error) => response.expect_errors(&[error]),
        }
    }
    let key = format!("{long}x");
    let body = json!({"answers": {"q1": "Ada"}, "metadata": {&key: "v"}});
    let refused = server.post(path(&form), body).send().await;
    refused.expect_errors(&[(&format!("/metadata/{key}"), "too_long")]);
}

#[tokio::test]
async fn an_edit_changes_the_fields_it_names_and_keeps_the_old_content_in_the_history() {
    let (server, form) = Server::with_form().await;
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
    assert_eq!(server.read(path(&form)).await["submissions"][0], expected);
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
    let rest = server.read(page.next_page().unwrap()).await;
    assert_eq!(rest, json!({"history": [replaced[1]]}));
    let other = server.submit(&form, json!({"q1": "Bob"})).await;
    let untouched = server.get(format!("{}/{other}/history", path(&form))).send().await;
    assert_eq!(untouched.expect(200), json!({"history": []}));
}

#[tokio::test]
async fn every_problem_of_an_edit_is_reported_with_its_pointer() {
    let (server, form) = Server::with_form().await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({"q1": "Ada"})).await);
    let before = server.get(&one).send().await;
    for (body, expected) in [
        (json!([]), &[("", "type_mismatch")][..]),
        (json!({"answers": null}), &[("/answers", "type_mismatch")]),
        (
            json!({"answers": [], "metadata": "x"}),
            &[("/answers", "type_mismatch"), ("/metadata", "type_mismatch")],
        ),
        (json!({"status": "completed"}), &[("/status", "unknown_field")]),
        (json!({"answers": {"q1": null}}), &[("/answers/q1", "required")]),
        (json!({"answers": {"q2": null, "emial": null}}), &[("/answers/emial", "unknown_question")]),
        (
            json!({"answers": {"q8": 1, "q9": null}}),
            &[("/answers/q9", "unknown_question"), ("/answers/q8", "unknown_question")],
        ),
        (
            json!({"answers": {"q1": null}, "status": "completed"}),
            &[("/status", "unknown_field"), ("/answers/q1", "required")],
        ),
        (
            json!({"answers": {"q2": "nobody", "q3": 9, "q9": 1}, "metadata": {"a": 1}}),
            &[
                ("/answers/q2", "invalid_email"),
                ("/answers/q3", "out_of_range"),
                ("/answers/q9", "unknown_question"),
                ("/metadata/a", "type_mismatch"),
            ],
        ),
    ] {
        server.patch(&one, body).send().await.expect_errors(expected);
    }
    assert_eq!(server.patch(&one, json!({})).body("{").send().await.code(), "malformed_json");
    let text = server.patch(&one, json!({})).header("content-type", "text/plain").send().await;
    assert_eq!(text.code(), "unsupported_media_type");
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
    edit(json!({"q2": "2026-11-19"})).await.expect_errors(&[("/answers/q2", "out_of_range")]);
    edit(json!({"stars": 5})).await.expect_errors(&[("/answers/stars", "unknown_question")]);
    // An answer to a question that is no longer shown must be removed; one that is shown again gets its default.
    let hidden = edit(json!({"q3": false})).await;
    let second = &hidden.expect(422)["errors"][1];
    assert_eq!(second["message"], "\"What?\" is not asked with these answers");
    assert_eq!(second["help"], "send `null` for it");
    hidden.expect_errors(
        &["/answers/source", "/answers/more"].map(|pointer| (pointer, "question_not_visible")),
    );
    let without = edit(json!({"q3": false, "source": null, "more": null})).await.expect(200);
    assert_eq!(without["answers"], json!({"q1": "Eve", "q2": "2026-11-20", "q3": false}));
    let with = edit(json!({"q3": true})).await.expect(200);
    assert_eq!(with["answers"]["source"], "web");
}

#[tokio::test]
async fn concurrent_edits_of_a_submission_or_a_form_are_all_applied() {
    const CLIENTS: u64 = 64;
    let server = Server::start().await;
    let questions = (1..=CLIENTS).map(|_| json!({"type": "number", "title": "N"})).collect();
    let form = server.published_form(questions).await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({})).await);
    let edit = |number| server.patch(&one, json!({"answers": {format!("q{number}"): number}})).send();
    join_all((1..=CLIENTS).map(edit)).await;
    let answers: Value = (1..=CLIENTS).map(|number| (format!("q{number}"), json!(number))).collect();
    assert_eq!(server.read(&one).await["answers"], answers);
    let history = server.read(format!("{one}/history")).await;
    assert_eq!(history["history"].as_array().unwrap().len() as u64, CLIENTS);
    let form = format!("{FORMS}/{form}");
    let rename = |number| server.patch(&form, json!({"title": format!("Title {number}")})).send();
    join_all((1..=CLIENTS).map(rename)).await;
    let tag = format!("\"r{}\"", 2 + CLIENTS);
    assert_eq!(server.get(&form).send().await.header("etag"), Some(&*tag));
}
