//! Versions, settings, slug and trash of a form over HTTP, and when it accepts answers.

use crate::harness::prelude::*;

#[tokio::test]
async fn every_version_can_be_read() {
    let (server, form) = Server::with_form().await;
    let path = format!("{FORMS}/{form}");
    server.clock.set("2026-11-20T10:00:00Z");
    let change = json!({"questions": [{"id": "q1", "type": "short_text", "title": "Name?"}]});
    server.patch(&path, change).send().await.expect(200);
    let second = json!({
        "version": 2, "created_at": "2026-11-20T10:00:00.000Z",
        "questions": [{"id": "q1", "type": "short_text", "title": "Name?", "required": false}],
    });
    let list = server.read(format!("{path}/versions")).await;
    let versions = list["versions"].as_array().unwrap();
    assert_eq!((versions.len(), &versions[0]), (2, &second));
    assert_eq!([&versions[1]["version"], &versions[1]["created_at"]], [&json!(1), &json!(NOW)]);
    assert_eq!(versions[1]["questions"].as_array().unwrap().len(), 3);
    for version in versions {
        let one = server.get(format!("{path}/versions/{}", version["version"])).send().await;
        assert_eq!(one.expect(200), *version);
    }
    for unknown in ["0", "3", "-1", "one", "4294967296", "+1", "01"] {
        let response = server.get(format!("{path}/versions/{unknown}")).send().await;
        assert_eq!(response.code(), "version_not_found", "{unknown}");
    }
}

#[tokio::test]
async fn settings_are_merged_stored_and_returned() {
    let server = Server::start().await;
    let settings = json!({
        "opens_at": "2026-11-20T10:00:00+01:00", "closes_at": "2026-11-21T00:00:00Z", "max_responses": 5,
        "confirmation": {"message": "Thanks"}, "language": "en", "closed_message": "Too late",
    });
    let sent = json!({"title": "Visit", "questions": questions(), "settings": settings});
    let made = server.post(FORMS, sent).send().await;
    assert_eq!(made.fields(), ["id", "title", "status", "questions", "settings", "created_at"]);
    let mut kept = settings.clone();
    (kept["opens_at"], kept["closes_at"]) = (json!(NOW), json!("2026-11-21T00:00:00.000Z"));
    assert_eq!(made.expect(201)["settings"], kept);
    let path = format!("{FORMS}/{}", made.json()["id"].as_str().unwrap());
    let patch = |settings: Value| server.patch(&path, json!({"settings": settings})).send();
    let same = patch(json!({"max_responses": 5, "confirmation": {}, "closed": null})).await;
    assert_eq!((&same.expect(200)["settings"], same.header("etag")), (&kept, Some("\"r1\"")));
    let redirected = json!({"message": null, "redirect_url": "https://example.com/thanks"});
    let changed =
        patch(json!({"confirmation": redirected, "closes_at": null, "closed": true})).await.expect(200);
    kept["confirmation"] = json!({"redirect_url": "https://example.com/thanks"});
    kept.as_object_mut().unwrap().remove("closes_at");
    kept["closed"] = json!(true);
    assert_eq!(changed["settings"], kept);
    // A refused change keeps the old settings.
    let refused = patch(json!({"closes_at": "2026-11-19T00:00:00Z"})).await;
    refused.expect_errors(&[("/settings/closes_at", "invalid_range")]);
    assert_eq!(server.read(&path).await["settings"], kept);
    let none = server.patch(&path, json!({"settings": null})).send().await.expect(200);
    assert_eq!(none["settings"], json!({}));
}

#[tokio::test]
async fn a_setting_is_returned_even_if_it_has_its_default_value() {
    let server = Server::start().await;
    for (name, value) in
        [("unknown_answers", json!("reject")), ("closed", json!(false)), ("language", json!("en"))]
    {
        let settings = json!({name: value});
        let sent = json!({"title": "Visit", "questions": questions(), "settings": settings});
        let path = format!("{FORMS}/{}", server.create(FORMS, sent).await);
        assert_eq!(server.read(&path).await["settings"], settings);
        for patch in [json!({name: null}), settings] {
            let changed = server.patch(&path, json!({"settings": patch})).send().await.expect(200);
            assert_eq!(changed["settings"].get(name), Some(&patch[name]).filter(|value| !value.is_null()));
        }
    }
}

#[tokio::test]
async fn every_problem_of_settings_is_reported_with_its_pointer() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    let (url, redirect) = ("confirmation/redirect_url", |confirmation| json!({"confirmation": confirmation}));
    let cases = [
        (json!({"opens_at": "tomorrow"}), "opens_at", "invalid_datetime"),
        (json!({"closes_at": "2026-11-20T09:00:00"}), "closes_at", "invalid_datetime"),
        (json!({"closes_at": 5}), "closes_at", "type_mismatch"),
        (json!({"closed": "yes"}), "closed", "type_mismatch"),
        (json!({"closed_message": " "}), "closed_message", "empty"),
        (json!({"unknown_answers": "ignore"}), "unknown_answers", "invalid_range"),
        (json!({"unknown_answers": true}), "unknown_answers", "type_mismatch"),
        (json!({"max_responses": 0}), "max_responses", "invalid_range"),
        (json!({"max_responses": 1.5}), "max_responses", "invalid_range"),
        (json!({"language": "x".repeat(36)}), "language", "too_long"),
        (json!({"confirmation": "Thanks"}), "confirmation", "type_mismatch"),
        (json!({"confirmation": {"text": "a"}}), "confirmation/text", "unknown_field"),
        (redirect(json!({"message": "a", "redirect_url": "https://a.b"})), url, "invalid_range"),
        (redirect(json!({"redirect_url": "javascript:alert(1)"})), url, "invalid_url"),
        (redirect(json!({"redirect_url": "https://"})), url, "invalid_url"),
        (redirect(json!({"redirect_url": "https://a b"})), url, "invalid_url"),
        (json!({"notify": true}), "notify", "unknown_field"),
        (json!({"language": "\"><script>"}), "language", "invalid_range"),
        (json!({"language": "de_AT"}), "language", "invalid_range"),
        (json!({"origins": ["https://a;script-src"]}), "origins/0", "invalid_url"),
        (json!({"public": "yes"}), "public", "type_mismatch"),
        (json!({"layout": "cards"}), "layout", "invalid_range"),
        (json!({"origins": ["https://a.b/c"]}), "origins/0", "invalid_url"),
        (json!({"origins": ["null"]}), "origins/0", "invalid_url"),
        (json!({"origins": ["https://a.b", "*"]}), "origins/1", "invalid_url"),
        (json!({"origins": vec!["https://a.b"; 21]}), "origins", "too_many"),
        (json!({"theme": {"accent": "red"}}), "theme/accent", "invalid_range"),
        (json!({"theme": {"accent": "#ffff00"}}), "theme/accent", "invalid_range"),
        (json!({"theme": {"accent_dark": "#000080"}}), "theme/accent_dark", "invalid_range"),
        (json!({"theme": {"logo": "https://a.b/c.png"}}), "theme/logo", "invalid_url"),
        (json!({"theme": {"logo": "data:text/html;base64,PGI+"}}), "theme/logo", "invalid_url"),
        (json!({"retention_days": 3_651}), "retention_days", "invalid_range"),
    ];
    for (settings, place, code) in cases {
        let body = json!({"title": "", "questions": [], "settings": settings});
        for call in [server.post(FORMS, body.clone()), server.patch(format!("{FORMS}/{form}"), body)] {
            let expected = [("/title", "empty"), (&*format!("/settings/{place}"), code)];
            call.send().await.expect_errors(&expected);
        }
    }
    let body = json!({"title": "Visit", "settings": 5});
    assert_eq!(server.post(FORMS, body).send().await.expect(422)["errors"][0]["pointer"], "/settings");
}

#[tokio::test]
async fn accepting_depends_on_settings_and_time() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    let path = format!("{FORMS}/{form}");
    let state = async || {
        let body = server.read(&path).await;
        // The list shows a draft only by its status.
        let listed = server.read(FORMS).await["forms"][0]["accepting_reason"].clone();
        let expected = Some(&body["accepting_reason"]).filter(|why| **why != "draft");
        assert_eq!(&listed, expected.unwrap_or(&Value::Null));
        let sent = server.post(format!("{path}/submissions"), json!({"answers": {"q1": "Ada"}})).send().await;
        assert_eq!(sent.status == 201, body["accepting"] == json!(true), "{body}");
        assert_eq!(body["accepting_reason"].is_null(), body["accepting"] == json!(true));
        body["accepting_reason"].as_str().unwrap_or("open").to_owned()
    };
    let set = |patch: Value| server.patch(&path, patch).send();
    let hours =
        json!({"opens_at": "2026-11-20T10:00:00Z", "closes_at": "2026-11-20T11:00:00Z", "max_responses": 2});
    set(json!({"settings": hours})).await.expect(200);
    assert_eq!(state().await, "draft");
    // Of several reasons the most specific one is given.
    set(json!({"settings": {"closed": true}})).await.expect(200);
    assert_eq!(state().await, "draft");
    set(json!({"status": "published"})).await.expect(200);
    assert_eq!(state().await, "closed");
    set(json!({"settings": {"closed": null}})).await.expect(200);
    for (time, expected) in [
        ("09:59:59.999", "not_open_yet"),
        ("10:00:00.000", "open"),
        ("10:59:59.999", "open"),
        ("10:59:59.999", "full"),
        ("11:00:00.000", "expired"),
    ] {
        server.clock.set(&format!("2026-11-20T{time}Z"));
        assert_eq!(state().await, expected, "at {time}");
    }
    set(json!({"settings": {"closed": true}})).await.expect(200);
    assert_eq!(state().await, "closed");
    set(json!({"settings": {"closed": null, "closes_at": null, "max_responses": 3}})).await.expect(200);
    assert_eq!(state().await, "open");
    assert_eq!(state().await, "full");
}

#[tokio::test]
async fn a_slug_can_be_used_in_place_of_an_id() {
    let server = Server::start().await;
    let sent = json!({"title": "Visit", "slug": "our-visit", "questions": questions()});
    let made = server.post(FORMS, sent).send().await;
    assert_eq!(made.fields(), ["id", "title", "slug", "status", "questions", "created_at"]);
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    let path = format!("{FORMS}/our-visit");
    assert_eq!(server.patch(&path, json!({"status": "published"})).send().await.expect(200)["id"], *id);
    let submission = server.submit("our-visit", json!({"q1": "Ada"})).await;
    for below in
        ["", "/submissions", "/responses", "/versions", "/versions/1", &format!("/submissions/{submission}")]
    {
        let by_id = server.read(format!("{FORMS}/{id}{below}")).await;
        assert_eq!(server.read(format!("{path}{below}")).await, by_id, "{below}");
    }
    assert_eq!(server.read(FORMS).await["forms"][0]["slug"], "our-visit");
    for (slug, code) in
        [(json!("Our-Visit"), "invalid_slug"), (json!(""), "invalid_slug"), (json!(5), "type_mismatch")]
    {
        server.patch(&path, json!({"slug": slug})).send().await.expect_errors(&[("/slug", code)]);
    }
    let taken = server.post(FORMS, json!({"title": "Other", "slug": "our-visit"})).send().await.expect(409);
    assert_eq!(taken["detail"], format!("slug `our-visit` already belongs to {id}"));
    assert_eq!([&taken["errors"][0]["pointer"], &taken["form_id"]], ["/slug", &*id]);
    let other_workspace_key = server.other_workspace().await;
    assert_eq!(server.get(&path).key(&other_workspace_key).send().await.code(), "form_not_found");
    server.remove(&path).await;
    assert_eq!(server.get(&path).send().await.code(), "form_not_found");
    server.call(Method::POST, format!("{FORMS}/{id}/restore")).send().await.expect(200);
    assert_eq!(server.read(&path).await["id"], *id);
}
