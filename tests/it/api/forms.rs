//! Creating, changing and listing forms over HTTP, beyond the specification's examples.

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::{NOW, Server, questions};

const FORMS: &str = "/api/v1/forms";

#[tokio::test]
async fn a_draft_is_returned_with_the_reason_why_it_does_not_accept_answers() {
    let server = Server::start().await;
    let form = server.draft_form(json!([{"type": "rating", "title": "How?", "max": 3}])).await;
    let response = server.get(format!("{FORMS}/{form}")).send().await;
    let expected = json!({
        "id": form, "title": "Visit", "status": "draft", "version": 1,
        "accepting": false, "accepting_reason": "draft",
        "questions": [{"id": "q1", "type": "rating", "title": "How?", "required": false, "max": 3}],
        "settings": {}, "response_count": 0, "created_at": NOW, "updated_at": NOW,
    });
    assert_eq!(response.expect(200), expected);
}

#[tokio::test]
async fn publishing_sets_status_and_time_and_repeating_it_changes_nothing() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    let path = format!("{FORMS}/{form}");
    server.clock.set("2026-11-20T10:00:00Z");
    let first = server.patch(&path, json!({"status": "published"})).send().await.expect(200);
    assert_eq!((&first["accepting"], first.get("accepting_reason")), (&json!(true), None));
    assert_eq!([&first["updated_at"], &first["published_at"]], ["2026-11-20T10:00:00.000Z"; 2]);
    server.clock.set("2026-11-20T11:00:00Z");
    for same in [json!({"status": "published"}), json!({})] {
        assert_eq!(server.patch(&path, same).send().await.expect(200), first);
    }
    assert_eq!(server.get(&path).send().await.expect(200), first);
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
async fn new_questions_create_the_next_version_and_ids_are_never_reused() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    let path = format!("{FORMS}/{form}");
    let change = json!({"questions": [
        {"id": "q3", "type": "rating", "title": "How was it?"},
        {"type": "short_text", "title": "Why?"},
    ]});
    let body = server.patch(&path, change).send().await.expect(200);
    let ids: Vec<_> = body["questions"].as_array().unwrap().iter().map(|question| &question["id"]).collect();
    assert_eq!((&body["version"], ids), (&json!(2), vec![&json!("q3"), &json!("q4")]));
    let back = json!({"questions": [{"id": "q1", "type": "short_text", "title": "Your name?"}]});
    let refused = server.patch(&path, back).send().await.expect(422);
    assert_eq!(refused["errors"][0]["code"], "retired_question_id");
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
    assert_eq!(server.get(FORMS).send().await.expect(200), json!({"forms": []}));
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
async fn a_repeated_creation_is_replayed() {
    let server = Server::start().await;
    let send = |title: &str| {
        let call = server.post(FORMS, json!({"title": title, "questions": []}));
        call.header("idempotency-key", "order 42").send()
    };
    let first = send("Visit").await;
    server.clock.set("2026-11-20T10:00:00Z");
    let again = send("Visit").await;
    assert_eq!(again.expect(201), first.expect(201));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(
        [&first, &again].map(|response| response.header("idempotency-replayed")),
        [None, Some("true")]
    );
    assert_eq!(send("Journey").await.code(), "idempotency_key_reused");
    server.clock.set("2026-11-21T09:00:00Z");
    assert_ne!(
        send("Visit").await.expect(201)["id"],
        first.json()["id"],
        "the idempotency key did not expire after 24 hours"
    );
}

#[tokio::test]
async fn idempotency_keys_are_separate_for_each_api_key() {
    let server = Server::start().await;
    let other = server.key_with(&[::forms::domain::workspace::Scope::Write]).await;
    let send = |key: &str| {
        let call = server.post(FORMS, json!({"title": "Visit", "questions": []})).key(key);
        call.header("idempotency-key", "1").send()
    };
    assert_ne!(send(&server.key).await.json()["id"], send(&other).await.json()["id"]);
}

#[tokio::test]
async fn an_idempotency_key_is_a_single_printable_text() {
    let server = Server::start().await;
    let form = || server.post(FORMS, json!({"title": "Visit", "questions": []}));
    let longest = "x".repeat(255);
    form().header("idempotency-key", &longest).send().await.expect(201);
    for bad in ["", "a\tb", "é", &format!("{longest}x")] {
        assert_eq!(form().header("idempotency-key", bad).send().await.code(), "invalid_header", "{bad}");
    }
    let twice = form().header("idempotency-key", "a").also_header("idempotency-key", "b");
    assert_eq!(twice.send().await.code(), "invalid_header");
}

#[tokio::test]
async fn the_list_is_paged_newest_first_with_links() {
    let server = Server::start().await;
    let mut made = Vec::new();
    for minute in 0..5 {
        server.clock.set(&format!("2026-11-20T09:0{minute}:00Z"));
        made.push(server.draft_form(json!([])).await);
    }
    let (mut path, mut seen) = (format!("{FORMS}?limit=2"), Vec::new());
    loop {
        let response = server.get(&path).send().await;
        for form in response.expect(200)["forms"].as_array().unwrap() {
            seen.push(form["id"].as_str().unwrap().to_owned());
        }
        let Some(link) = response.header("link") else { break };
        let (next, relation) = link.split_once("; ").unwrap();
        assert_eq!(relation, "rel=\"next\"");
        path = next.trim_matches(['<', '>']).to_owned();
    }
    made.reverse();
    assert_eq!(seen, made);
}

#[tokio::test]
async fn unknown_and_invalid_query_parameters_are_refused() {
    let server = Server::start().await;
    const KNOWN: &str = "`limit`, `cursor`, `status`, `accepting_reason`, `q`, `trashed`, `count`";
    let form = server.published_form(questions()).await;
    let page = "`limit`: expected an integer from 1 to 1000, found";
    let unknown = |name: &str, known: &str| format!("`{name}`: unknown parameter; it takes {known}");
    let bad = [
        (Method::GET, format!("{FORMS}?limit=0"), format!("{page} `0`")),
        (Method::GET, format!("{FORMS}?limit=1001"), format!("{page} `1001`")),
        (Method::GET, format!("{FORMS}?limit=-1"), format!("{page} `-1`")),
        (Method::GET, format!("{FORMS}?limit=t%C3%A9n"), format!("{page} `t\u{e9}n`")),
        (Method::GET, format!("{FORMS}?limit="), format!("{page} ``")),
        (Method::GET, format!("{FORMS}?limit=1&limit=2"), "`limit`: given more than once".to_owned()),
        (Method::GET, format!("{FORMS}?limit=1&sort=title"), unknown("sort", KNOWN)),
        (Method::GET, format!("{FORMS}?{}", "x".repeat(90)), unknown(&"x".repeat(80), KNOWN)),
        (Method::GET, format!("{FORMS}/{form}?x"), unknown("x", "none")),
        (Method::GET, format!("{FORMS}?q=caf%E9"), "`q`: not valid UTF-8 after percent-decoding".to_owned()),
        (
            Method::GET,
            format!("{FORMS}?%FF=1"),
            "`\u{fffd}`: not valid UTF-8 after percent-decoding".to_owned(),
        ),
        (
            Method::GET,
            format!("{FORMS}?limit=0&q=caf%E9&x"),
            format!("`q`: not valid UTF-8 after percent-decoding; {page} `0`; {}", unknown("x", KNOWN)),
        ),
        (
            Method::GET,
            format!("{FORMS}?status=open"),
            "`status`: expected `draft` or `published`, found `open`".to_owned(),
        ),
        (
            Method::DELETE,
            format!("{FORMS}/{form}?purge=yes"),
            "`purge`: expected `true` or `false`, found `yes`".to_owned(),
        ),
        (
            Method::POST,
            format!("{FORMS}?dry_run=1"),
            "`dry_run`: expected `true` or `false`, found `1`".to_owned(),
        ),
        (
            Method::GET,
            format!("{FORMS}/{form}/submissions?sort=asc"),
            unknown(
                "sort",
                "`limit`, `cursor`, `trashed`, `order`, `since`, `until`, `status`, `q`, `filter[question][operator]`, `where`, `count`",
            ),
        ),
        (
            Method::POST,
            format!("{FORMS}/{form}/submissions?nofity=false"),
            unknown("nofity", "`notify`, `dry_run`"),
        ),
        (
            Method::POST,
            format!("{FORMS}/{form}/submissions?notify=no"),
            "`notify`: expected `true` or `false`, found `no`".to_owned(),
        ),
        (Method::GET, "/api/v1/whoami?verbose".to_owned(), unknown("verbose", "none")),
        (Method::GET, "/api/v1/limits?a=b".to_owned(), unknown("a", "none")),
    ];
    for (method, path, detail) in bad {
        let response = server.call(method, &path).json(json!({})).send().await;
        assert_eq!(response.code(), "invalid_query", "{path}");
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
        server.get(format!("{FORMS}?{fine}")).send().await.expect(200);
    }
}

#[tokio::test]
async fn a_cursor_is_valid_only_for_its_list() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    for name in ["Ada", "Bob"] {
        server.submit(&form, json!({"q1": name})).await;
    }
    let page = server.get(format!("{FORMS}/{form}/submissions?limit=1")).send().await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    for path in [FORMS.to_owned(), format!("{FORMS}/{}/submissions", server.draft_form(json!([])).await)] {
        let response = server.get(format!("{path}?cursor={cursor}")).send().await;
        assert_eq!(response.code(), "invalid_cursor", "{path}");
    }
    for bad in ["", "zz", "00", &cursor[1..], &cursor[2..], &format!("{cursor}00"), "%C3%A9"] {
        let response = server.get(format!("{FORMS}/{form}/submissions?cursor={bad}")).send().await;
        assert_eq!(response.code(), "invalid_cursor", "{bad}");
    }
}

#[tokio::test]
async fn a_form_can_be_purged_inside_and_outside_the_trash() {
    let server = Server::start().await;
    for trashed in [false, true] {
        let form = server.published_form(questions()).await;
        server.submit(&form, json!({"q1": "Ada"})).await;
        let path = format!("{FORMS}/{form}");
        if trashed {
            assert_eq!(server.call(Method::DELETE, &path).send().await.status, 204);
        }
        let purge = format!("{path}?purge=true");
        assert_eq!(server.call(Method::DELETE, &purge).send().await.status, 204);
        assert_eq!(server.call(Method::DELETE, &purge).send().await.code(), "form_not_found");
        assert_eq!(server.get(&path).send().await.code(), "form_not_found");
    }
}

#[tokio::test]
async fn limits_have_the_names_of_their_flags() {
    let server = Server::start().await;
    let expected = json!({
        "max_body": 1_048_576, "max_definition": 2_097_152, "max_questions": 500, "max_options": 500, "max_title": 300,
        "max_answer": 65_536, "max_answers": 1_000, "max_uri": 8_192, "max_head": 32_768, "max_headers": 64,
        "head_timeout": 5.0, "first_byte_timeout": 10.0, "body_timeout": 15.0, "min_body_rate": 1_024,
        "idle_timeout": 60.0, "max_connections": 1_024, "max_connections_per_address": 256,
        "auth_failures": "10/min", "rate_limit": null,
    });
    assert_eq!(server.get("/api/v1/limits").send().await.expect(200), expected);
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
        let refused = server.post(FORMS, definition(&format!("a{character}"))).send().await.expect(422);
        let errors = refused["errors"].as_array().unwrap().iter();
        let mut pointers: Vec<_> = errors
            .inspect(|error| assert_eq!(error["code"], "invalid_character"))
            .map(|error| error["pointer"].as_str().unwrap())
            .collect();
        pointers.sort_unstable();
        let expected = [
            "/description",
            "/questions/0/description",
            "/questions/0/placeholder",
            "/questions/0/title",
            "/questions/1/options/1/label",
            "/questions/2/labels/1",
            "/settings/closed_message",
            "/title",
        ];
        assert_eq!(pointers, expected, "{character:?}");
    }
    let made = server.post(FORMS, definition("one\r\n\ttwo")).send().await.expect(201);
    let path = format!("{FORMS}/{}", made["id"].as_str().unwrap());
    let refused = server.patch(path, json!({"title": "\u{7}"})).send().await.expect(422);
    assert_eq!(refused["errors"][0]["pointer"], "/title");
}

#[tokio::test]
async fn a_definition_can_be_larger_than_a_submission() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let filler = Value::from("x".repeat(1 << 20));
    let definition = json!({"title": "Visit", "questions": [], "filler": filler});
    assert_eq!(server.post(FORMS, definition).send().await.expect(422)["errors"][0]["code"], "unknown_field");
    let answers = json!({"answers": {"q1": filler}});
    let response = server.post(format!("{FORMS}/{form}/submissions"), answers).send().await;
    assert_eq!(response.code(), "body_too_large");
}

#[tokio::test]
async fn concurrent_edits_of_one_form_are_all_applied() {
    const CLIENTS: usize = 32;
    let server = std::sync::Arc::new(Server::start().await);
    let path = format!("{FORMS}/{}", server.draft_form(questions()).await);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let (server, path) = (server.clone(), path.clone());
        tasks.spawn(async move {
            let patch = json!({"title": format!("Title {number}")});
            server.patch(&path, patch).send().await.expect(200);
        });
    }
    tasks.join_all().await;
    let tag = server.get(&path).send().await.header("etag").map(str::to_owned);
    assert_eq!(tag, Some(format!("\"r{}\"", 1 + CLIENTS)));
}
