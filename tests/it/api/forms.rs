//! Creating, changing and listing forms over HTTP, beyond the specification's examples.

use crate::harness::prelude::*;

#[tokio::test]
async fn publishing_sets_status_and_time_and_a_patch_without_a_change_does_nothing() {
    let server = Server::start().await;
    let path = format!("{FORMS}/{}", server.draft_form(json!([{"type": "email", "title": "a"}])).await);
    server.clock.set("2026-11-20T10:00:00Z");
    let publish = json!({"status": "published", "description": "d"});
    let first = server.patch(&path, publish).send().await.expect(200);
    assert_eq!((&first["accepting"], first.get("accepting_reason")), (&json!(true), None));
    assert_eq!([&first["updated_at"], &first["published_at"]], ["2026-11-20T10:00:00.000Z"; 2]);
    assert_eq!((&first["created_at"], &first["version"]), (&json!(NOW), &json!(1)));
    server.clock.set("2026-11-20T11:00:00Z");
    for same in [
        json!({}),
        json!({"title": "Visit"}),
        json!({"status": "published"}),
        json!({"description": "d"}),
        json!({"questions": [{"id": "q1", "type": "email", "title": "a", "required": false}]}),
    ] {
        assert_eq!(server.patch(&path, same).send().await.expect(200), first);
    }
    assert_eq!(server.read(&path).await, first);
    let back = server.patch(&path, json!({"status": "draft"})).send().await.expect(200);
    assert_eq!(back["published_at"], first["published_at"]);
    assert_eq!(back["updated_at"], "2026-11-20T11:00:00.000Z");
}

#[tokio::test]
async fn a_merge_patch_is_accepted_with_both_media_types() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    let path = format!("{FORMS}/{form}");
    for kind in ["application/merge-patch+json", "application/json; charset=utf-8", "Application/JSON"] {
        let change = json!({"description": kind});
        let body = server.patch(&path, change).header("content-type", kind).send().await.expect(200);
        assert_eq!(body["description"], kind);
    }
    let removed = server.patch(&path, json!({"description": null})).send().await.expect(200);
    assert_eq!(removed.get("description"), None);
    let kind = "application/json-patch+json";
    let response = server.patch(&path, json!({})).header("content-type", kind).send().await;
    assert_eq!(response.code(), "unsupported_media_type");
    let compressed = server.patch(&path, json!({})).header("content-encoding", "gzip").send().await;
    assert_eq!(compressed.code(), "unsupported_media_type");
}

#[tokio::test]
async fn a_removed_question_comes_back_with_its_type_and_its_answers() {
    let (server, form) = Server::with_form().await;
    let path = format!("{FORMS}/{form}");
    server.submit(&form, json!({"q1": "Ann"})).await;
    let change = json!({"questions": [
        {"id": "q3", "type": "rating", "title": "How was it?"},
        {"type": "short_text", "title": "Why?"},
    ]});
    let body = server.patch(&path, change.clone()).send().await.expect(200);
    let ids: Vec<_> = body["questions"].as_array().unwrap().iter().map(|question| &question["id"]).collect();
    assert_eq!((&body["version"], ids), (&json!(2), vec![&json!("q3"), &json!("q4")]));
    let back = |kind: &str| json!({"questions": [{"id": "q1", "type": kind, "title": "Your name?"}]});
    let refused = server.patch(&path, back("email")).send().await;
    refused.expect_errors(&[("/questions/0/id", "retired_question_id")]);
    let error = &refused.json()["errors"][0];
    assert_eq!(error["message"], "`q1` belonged to a question of type `short_text` that was removed");
    assert_eq!(error["help"], "choose another id, or the type `short_text`");
    let found = format!("{path}/submissions?filter[q1]=Ann");
    assert_eq!(server.get(&found).send().await.code(), "invalid_query");
    assert_eq!(server.patch(&path, back("short_text")).send().await.expect(200)["version"], 3);
    assert_eq!(server.get(&found).send().await.expect(200)["submissions"][0]["answers"]["q1"], "Ann");
    // A question that came back can go and come back again.
    server.patch(&path, change).send().await.expect(200);
    server.patch(&path, back("short_text")).send().await.expect(200);
}

#[tokio::test]
async fn a_dry_run_of_a_creation_returns_an_id_of_zeros_and_stores_nothing() {
    let server = Server::start().await;
    let path = format!("{FORMS}?dry_run=true");
    let form = json!({"title": "Visit", "description": "Of today", "questions": questions()});
    let response = server.post(&path, form.clone()).header("idempotency-key", "unused").send().await;
    let tried = response.expect(200);
    assert_eq!((&tried["id"], &tried["questions"][2]["id"]), (&json!("frm_000000000000"), &json!("q3")));
    assert_eq!(server.post(&path, json!({"questions": 1})).send().await.code(), "validation_failed");
    assert_eq!(server.read(FORMS).await, json!({"forms": []}));
    let made = server.post(FORMS, form).header("idempotency-key", "unused").send().await;
    assert_eq!((made.status.as_u16(), made.fields()), (201, response.fields()));
}

#[tokio::test]
async fn a_dry_run_of_a_change_returns_the_changed_form_and_stores_nothing() {
    let server = Server::start().await;
    let (path, other) =
        (format!("{FORMS}/{}", server.draft_form(questions()).await), server.draft_form(json!([])).await);
    server.patch(format!("{FORMS}/{other}"), json!({"slug": "taken"})).send().await.expect(200);
    let before = server.get(&path).send().await;
    let tag = before.header("etag").unwrap().to_owned();
    let try_out = |change, seen: &str| {
        server.patch(format!("{path}?dry_run=true"), change).header("if-match", seen).send()
    };
    let tried = try_out(json!({"title": "Journey", "slug": "way", "questions": []}), &tag).await;
    assert_eq!(tried.header("etag"), None);
    let tried = tried.expect(200);
    assert_eq!([&tried["title"], &tried["slug"]], ["Journey", "way"]);
    assert_eq!((&tried["version"], &tried["questions"]), (&json!(2), &json!([])));
    for (change, seen, code) in [
        (json!({"title": 1}), &*tag, "validation_failed"),
        (json!({"slug": "taken"}), &tag, "slug_taken"),
        (json!({"title": "Journey"}), "\"r9\"", "version_mismatch"),
        (json!({"questions": [], "status": "published"}), &tag, "form_has_no_questions"),
    ] {
        assert_eq!(try_out(change, seen).await.code(), code);
    }
    let after = server.get(&path).send().await;
    assert_eq!((after.header("etag"), after.expect(200)), (Some(&*tag), before.expect(200)));
    server.patch(&path, json!({"slug": "way"})).send().await.expect(200);
    let duplicate = json!({"title": "Visit", "slug": "taken"});
    assert_eq!(server.post(format!("{FORMS}?dry_run=true"), duplicate).send().await.code(), "slug_taken");
}

#[tokio::test]
async fn unknown_and_invalid_query_parameters_are_refused() {
    let server = Server::start().await;
    let form = format!("{FORMS}/{}", server.published_form(questions()).await);
    let known = "`limit`, `cursor`, `status`, `accepting_reason`, `q`, `trashed`, `count`";
    let of_submissions = "`limit`, `cursor`, `trashed`, `status`, `order`, `since`, `until`, `q`, \
        `filter[question][operator]`, `where`, `count`";
    let page = |found: &str| format!("`limit`: expected an integer from 1 to 1000, found `{found}`");
    let unknown = |name: &str, known: &str| format!("`{name}`: unknown parameter; it takes {known}");
    let is_flag = |name: &str, found: &str| format!("`{name}`: expected `true` or `false`, found `{found}`");
    let encoding = |name: &str| format!("`{name}`: not valid UTF-8 after percent-decoding");
    let forms = |query: &str| (Method::GET, format!("{FORMS}?{query}"));
    for ((method, path), detail) in [
        (forms("limit=0"), page("0")),
        (forms("limit=1001"), page("1001")),
        (forms("limit=-1"), page("-1")),
        (forms("limit=t%C3%A9n"), page("t\u{e9}n")),
        (forms("limit="), page("")),
        (forms("limit=1&limit=2"), "`limit`: given more than once".to_owned()),
        (forms("limit=1&sort=title"), unknown("sort", known)),
        (forms(&"x".repeat(90)), unknown(&"x".repeat(80), known)),
        (forms("q=caf%E9"), encoding("q")),
        (forms("%FF=1"), encoding("\u{fffd}")),
        (forms("limit=0&q=caf%E9&x"), [encoding("q"), page("0"), unknown("x", known)].join("; ")),
        (forms("status=open"), "`status`: expected `draft` or `published`, found `open`".to_owned()),
        ((Method::GET, format!("{form}?x")), unknown("x", "none")),
        ((Method::DELETE, format!("{form}?purge=yes")), is_flag("purge", "yes")),
        ((Method::POST, format!("{FORMS}?dry_run=1")), is_flag("dry_run", "1")),
        ((Method::GET, format!("{form}/submissions?sort=asc")), unknown("sort", of_submissions)),
        (
            (Method::POST, format!("{form}/submissions?nofity=false")),
            unknown("nofity", "`notify`, `dry_run`"),
        ),
        ((Method::POST, format!("{form}/submissions?notify=no")), is_flag("notify", "no")),
        ((Method::GET, "/api/v1/whoami?verbose".to_owned()), unknown("verbose", "none")),
        ((Method::GET, "/api/v1/limits?a=b".to_owned()), unknown("a", "none")),
    ] {
        let response = server.call(method, &path).json(json!({})).send().await;
        response.expect_problem(400, "invalid_query");
        let errors = response.json()["errors"].as_array().unwrap().clone();
        let allowed = errors.iter().find(|error| error["code"] == "unknown_field").map(|error| {
            let names = error["allowed"].as_array().cloned().unwrap_or_default();
            let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_str().unwrap())).collect();
            format!("; it takes {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })
        });
        let message = response.json()["detail"].as_str().unwrap().to_owned() + &allowed.unwrap_or_default();
        assert_eq!(message, detail, "{path}");
    }
    for fine in ["limit=1000", "q=%EF%BF%BD", "q=%zz+%C3%A9&&", ""] {
        server.read(format!("{FORMS}?{fine}")).await;
    }
}

#[tokio::test]
async fn a_definition_has_no_control_characters_except_line_breaks_and_tabs() {
    let server = Server::start().await;
    let definition = |text: &str| {
        json!({
            "title": text, "description": text, "settings": {"closed_message": text},
            "questions": [
                {"type": "long_text", "title": text, "description": text, "placeholder": text},
                {"type": "single_choice", "title": "C", "options": ["a", {"value": "b", "label": text}]},
                {"type": "rating", "title": "R", "labels": {"1": text}},
            ],
        })
    };
    for character in ['\u{1}', '\u{1b}', '\u{7f}', '\u{85}', '\u{9b}'] {
        let refused = server.post(FORMS, definition(&format!("a{character}"))).send().await;
        refused.expect_errors(
            &[
                "/title",
                "/description",
                "/settings/closed_message",
                "/questions/0/placeholder",
                "/questions/0/title",
                "/questions/0/description",
                "/questions/1/options/1/label",
                "/questions/2/labels/1",
            ]
            .map(|pointer| (pointer, "invalid_character")),
        );
    }
    let made = server.post(FORMS, definition("one\r\n\ttwo")).send().await.expect(201);
    let path = format!("{FORMS}/{}", made["id"].as_str().unwrap());
    let refused = server.patch(path, json!({"title": "\u{7}"})).send().await;
    refused.expect_errors(&[("/title", "invalid_character")]);
}

#[tokio::test]
async fn a_definition_can_be_larger_than_a_submission() {
    let (server, form) = Server::with_form().await;
    let filler = Value::from("x".repeat(1 << 20));
    let definition = json!({"title": "Visit", "questions": [], "filler": filler});
    assert_eq!(server.post(FORMS, definition).send().await.expect(422)["errors"][0]["code"], "unknown_field");
    let answers = json!({"answers": {"q1": filler}});
    let response = server.post(format!("{FORMS}/{form}/submissions"), answers).send().await;
    assert_eq!(response.code(), "body_too_large");
}
