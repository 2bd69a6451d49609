//! Revisions, versions, settings, slug and trash of a form over HTTP, and when it accepts answers.

use axum::http::Method;
use forms::cpu_pool::PoolLimits;
use serde_json::{Value, json};

use crate::harness::{NOW, Server, TestResponse, questions};

const FORMS: &str = "/api/v1/forms";

#[tokio::test]
async fn a_change_can_require_the_revision_in_the_etag() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    let path = format!("{FORMS}/{form}");
    let first = server.get(&path).send().await;
    assert_eq!(first.header("etag"), Some("\"r1\""));
    let rename = |title: &str, seen: &str| {
        server.patch(&path, json!({"title": title})).header("if-match", seen).send()
    };
    let renamed = rename("One", "\"r1\"").await;
    assert_eq!(
        (renamed.expect(200)["title"].as_str(), renamed.header("etag")),
        (Some("One"), Some("\"r2\""))
    );
    let stale = rename("Two", "\"r1\"").await;
    assert_eq!((stale.status.as_u16(), stale.code().as_str()), (412, "version_mismatch"));
    assert_eq!(rename("Two", "r2").await.code(), "invalid_header");
    assert_eq!(
        rename("One", "*").await.header("etag"),
        Some("\"r2\""),
        "an edit without a change raised the revision"
    );
    // Submissions do not change the revision.
    server.patch(&path, json!({"status": "published"})).send().await.expect(200);
    server.submit(&form, json!({"q1": "Ada"})).await;
    assert_eq!(server.get(&path).send().await.header("etag"), Some("\"r3\""));
    let delete = |seen: &str| server.call(Method::DELETE, &path).header("if-match", seen).send();
    assert_eq!(delete("\"r2\"").await.code(), "version_mismatch");
    let purge = server.call(Method::DELETE, format!("{path}?purge=true")).header("if-match", "\"r2\"");
    assert_eq!(purge.send().await.code(), "version_mismatch");
    assert_eq!(delete("\"r2\", \"r3\"").await.status, 204);
}

#[tokio::test]
async fn every_version_can_be_read() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let path = format!("{FORMS}/{form}");
    server.clock.set("2026-11-20T10:00:00Z");
    let change = json!({"questions": [{"id": "q1", "type": "short_text", "title": "Name?"}]});
    server.patch(&path, change).send().await.expect(200);
    let second = json!({
        "version": 2, "created_at": "2026-11-20T10:00:00.000Z",
        "questions": [{"id": "q1", "type": "short_text", "title": "Name?", "required": false}],
    });
    let list = server.get(format!("{path}/versions")).send().await.expect(200);
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
    let page = server.get(format!("{path}/versions?limit=1")).send().await;
    let next = page.header("link").unwrap().split_once('>').unwrap().0.trim_start_matches('<').to_owned();
    let rest = server.get(&next).send().await;
    assert_eq!((rest.expect(200)["versions"][0]["version"].as_u64(), rest.header("link")), (Some(1), None));
    let (_, cursor) = next.split_once("cursor=").unwrap();
    let other = format!("{FORMS}/{}/versions?cursor={cursor}", server.draft_form(json!([])).await);
    assert_eq!(server.get(other).send().await.code(), "invalid_cursor");
}

#[tokio::test]
async fn a_deleted_form_is_listed_in_the_trash_and_can_be_restored() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let submission = server.submit(&form, json!({"q1": "Ada"})).await;
    let path = format!("{FORMS}/{form}");
    let before = server.get(&path).send().await.expect(200);
    let deleted = "2026-11-20T10:00:00.000Z";
    server.clock.set(deleted);
    assert_eq!(server.call(Method::DELETE, &path).send().await.status, 204);
    let entry = json!({
        "id": form, "title": "Visit", "status": "published", "response_count": 1,
        "created_at": NOW, "updated_at": NOW, "deleted_at": deleted,
    });
    let trash = server.get(format!("{FORMS}?trashed=true")).send().await;
    assert_eq!(trash.expect(200), json!({"forms": [entry]}));
    let restore = |key: &'static str| {
        server.call(Method::POST, format!("{path}/restore")).header("idempotency-key", key).send()
    };
    let restored = restore("1").await;
    assert_eq!((restored.expect(200), restored.header("etag")), (before.clone(), Some("\"r4\"")));
    let again = restore("1").await;
    assert_eq!((again.expect(200), again.header("idempotency-replayed")), (before, Some("true")));
    let refused = restore("2").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (409, "not_in_trash"));
    server.get(format!("{path}/submissions/{submission}")).send().await.expect(200);
    assert_eq!(server.get(format!("{FORMS}?trashed=true")).send().await.expect(200), json!({"forms": []}));
}

#[tokio::test]
async fn a_restore_request_has_an_empty_body() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let (one, submission) = (format!("{FORMS}/{form}"), server.submit(&form, json!({"q1": "Ada"})).await);
    for path in [format!("{one}/submissions/{submission}"), one] {
        server.call(Method::DELETE, &path).send().await;
        let restore =
            |body: &'static str| server.call(Method::POST, format!("{path}/restore")).body(body).send();
        let refused = restore(r#"{"status":"draft"}"#).await;
        let error = &refused.expect(422)["errors"][0];
        assert_eq!([&error["pointer"], &error["code"]], ["/status", "unknown_field"]);
        assert_eq!(restore("[]").await.expect(422)["errors"][0]["code"], "type_mismatch");
        assert_eq!(restore("{").await.code(), "malformed_json");
        restore(" {} ").await.expect(200);
        server.call(Method::DELETE, &path).send().await;
        restore("").await.expect(200);
    }
}

#[tokio::test]
async fn a_restore_is_replayed_only_for_an_identical_body() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    let (one, submission) = (format!("{FORMS}/{form}"), server.submit(&form, json!({"q1": "Ada"})).await);
    for path in [format!("{one}/submissions/{submission}"), one] {
        server.call(Method::DELETE, &path).send().await;
        let restore = |body: &'static str| {
            let call = server.call(Method::POST, format!("{path}/restore"));
            call.header("idempotency-key", "1").body(body).send()
        };
        restore("{}").await.expect(200);
        assert_eq!(restore("{}").await.header("idempotency-replayed"), Some("true"));
        for other in ["", "{ }"] {
            assert_eq!(restore(other).await.code(), "idempotency_key_reused", "{other}");
        }
    }
}

#[tokio::test]
async fn a_replayed_restore_returns_its_first_response_after_later_changes() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    let path = format!("{FORMS}/{form}");
    let delete = async |server: &Server, query: &str| {
        server.call(Method::DELETE, format!("{path}{query}")).send().await;
    };
    let restore = async |server: &Server| {
        server.call(Method::POST, format!("{path}/restore")).header("idempotency-key", "1").send().await
    };
    delete(&server, "").await;
    let restored = restore(&server).await;
    restored.expect(200);
    let same = async |server: &Server| {
        let again = restore(server).await;
        assert_eq!((again.text(), again.header("etag")), (restored.text(), restored.header("etag")));
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
    };
    server.submit(&form, json!({"q1": "Bob"})).await;
    same(&server).await;
    let change = json!({"title": "Other", "slug": "other", "questions": [], "status": "draft"});
    server.patch(&path, change).send().await.expect(200);
    same(&server).await;
    let server = server.with_index(|_| ()).await;
    same(&server).await;
    delete(&server, "").await;
    same(&server).await;
    // The reopened server has compiled nothing and its pool accepts no jobs: a replay needs no compilation.
    let server = server.with_pool(PoolLimits { jobs: 0, ..PoolLimits::default() }).await;
    same(&server).await;
    assert_eq!(server.get(&path).send().await.code(), "form_not_found", "the form is not in the trash");
    // A purged form cannot be returned.
    delete(&server, "?purge=true").await;
    assert_eq!(restore(&server).await.code(), "form_not_found");
}

#[tokio::test]
async fn the_trash_is_emptied_after_the_configured_days() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
    server.call(Method::DELETE, format!("{FORMS}/{form}")).send().await;
    // The limit is exact to the millisecond.
    server.clock.set("2026-12-20T09:00:00.000Z");
    assert_eq!(server.app.empty_trash(30).await.unwrap(), 0);
    server.clock.set("2026-12-20T09:00:00.001Z");
    assert_eq!(server.app.empty_trash(30).await.unwrap(), 1);
    let response = server.call(Method::POST, format!("{FORMS}/{form}/restore")).send().await;
    assert_eq!(response.code(), "form_not_found");
}

#[tokio::test]
async fn a_list_of_forms_is_filtered_and_counted_and_its_cursor_is_valid_only_for_its_filter() {
    let server = Server::start().await;
    for title in ["Tea & cake", "Coffee", "Iced TEA & milk"] {
        server.post(FORMS, json!({"title": title})).send().await.expect(201);
    }
    server.published_form(questions()).await;
    let titles = |response: &TestResponse| {
        let forms = response.expect(200)["forms"].as_array().unwrap().clone();
        forms.iter().map(|form| form["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = server.get(format!("{FORMS}?q=tea+%26&status=draft&limit=1&count=true")).send().await;
    assert_eq!(first.header("forms-total"), Some("2"));
    let next = first.header("link").unwrap().split_once('>').unwrap().0.trim_start_matches('<').to_owned();
    let second = server.get(&next).send().await;
    assert_eq!(second.header("forms-total"), None, "the second page was counted");
    let mut found = [titles(&first), titles(&second)].concat();
    found.sort_unstable();
    assert_eq!(
        (found, second.header("link")),
        (vec!["Iced TEA & milk".to_owned(), "Tea & cake".to_owned()], None)
    );
    let (_, cursor) = next.split_once("cursor=").unwrap();
    for other in ["", "q=tea&status=draft&", "q=tea+%26&", "trashed=true&", "q=tea+%26&status=published&"] {
        let response = server.get(format!("{FORMS}?{other}cursor={cursor}")).send().await;
        assert_eq!(response.code(), "invalid_cursor", "{other}");
    }
    let all = server.get(format!("{FORMS}?count=true&limit=1")).send().await;
    assert_eq!(all.header("forms-total"), Some("4"));
    assert_eq!(server.get(FORMS).send().await.header("forms-total"), None);
    assert_eq!(titles(&server.get(format!("{FORMS}?status=published")).send().await), ["Visit"]);
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
    let refused = patch(json!({"closes_at": "2026-11-19T00:00:00Z"})).await.expect(422);
    assert_eq!(refused["errors"][0]["pointer"], "/settings/closes_at");
    assert_eq!(refused["errors"][0]["code"], "invalid_range");
    assert_eq!(server.get(&path).send().await.expect(200)["settings"], kept);
    assert_eq!(
        server.patch(&path, json!({"settings": null})).send().await.expect(200)["settings"],
        json!({})
    );
}

#[tokio::test]
async fn a_setting_is_returned_even_if_it_has_its_default_value() {
    let server = Server::start().await;
    for settings in
        [json!({"unknown_answers": "reject"}), json!({"closed": false}), json!({"language": "en"})]
    {
        let sent = json!({"title": "Visit", "questions": questions(), "settings": settings});
        let made = server.post(FORMS, sent).send().await.expect(201);
        assert_eq!(made["settings"], settings);
        let path = format!("{FORMS}/{}", made["id"].as_str().unwrap());
        assert_eq!(server.get(&path).send().await.expect(200)["settings"], settings);
        let name = settings.as_object().unwrap().keys().next().unwrap();
        let without = server.patch(&path, json!({"settings": {name: null}})).send().await.expect(200);
        assert_eq!(without["settings"], json!({}), "{name}");
        let again = server.patch(&path, json!({"settings": settings})).send().await.expect(200);
        assert_eq!(again["settings"], settings);
    }
}

#[tokio::test]
async fn every_problem_of_settings_is_reported_with_its_pointer() {
    let server = Server::start().await;
    let form = server.draft_form(questions()).await;
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
        (
            json!({"confirmation": {"message": "a", "redirect_url": "https://a.b"}}),
            "confirmation/redirect_url",
            "invalid_range",
        ),
        (
            json!({"confirmation": {"redirect_url": "javascript:alert(1)"}}),
            "confirmation/redirect_url",
            "invalid_url",
        ),
        (json!({"confirmation": {"redirect_url": "https://"}}), "confirmation/redirect_url", "invalid_url"),
        (
            json!({"confirmation": {"redirect_url": "https://a b"}}),
            "confirmation/redirect_url",
            "invalid_url",
        ),
        (json!({"public": true}), "public", "unknown_field"),
        (json!({"retention_days": 3}), "retention_days", "unknown_field"),
    ];
    for (settings, place, code) in cases {
        let expected = [("/title".to_owned(), "empty"), (format!("/settings/{place}"), code)];
        let body = json!({"title": "", "questions": [], "settings": settings});
        for call in [server.post(FORMS, body.clone()), server.patch(format!("{FORMS}/{form}"), body)] {
            let refused = call.send().await.expect(422);
            let found = refused["errors"].as_array().unwrap().iter();
            let found: Vec<_> = found
                .map(|error| (error["pointer"].as_str().unwrap().to_owned(), error["code"].as_str().unwrap()))
                .collect();
            assert_eq!(found, expected, "{settings}");
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
        let body = server.get(&path).send().await.expect(200);
        // The list shows a draft only by its status.
        let listed = server.get(FORMS).send().await.expect(200)["forms"][0]["accepting_reason"].clone();
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
        let by_id = server.get(format!("{FORMS}/{id}{below}")).send().await.expect(200);
        assert_eq!(server.get(format!("{path}{below}")).send().await.expect(200), by_id, "{below}");
    }
    assert_eq!(server.get(FORMS).send().await.expect(200)["forms"][0]["slug"], "our-visit");
    // An idempotency key treats the id and the slug as the same form.
    let body = json!({"answers": {"q1": "Bob"}});
    let send = |name: &str| {
        let call = server.post(format!("{FORMS}/{name}/submissions"), body.clone());
        call.header("idempotency-key", "1").send()
    };
    assert_eq!(send(&id).await.expect(201)["id"], send("our-visit").await.expect(201)["id"]);
    for (slug, code) in
        [(json!("Our-Visit"), "invalid_slug"), (json!(""), "invalid_slug"), (json!(5), "type_mismatch")]
    {
        let refused = server.patch(&path, json!({"slug": slug})).send().await.expect(422);
        assert_eq!(
            (&refused["errors"][0]["pointer"], &refused["errors"][0]["code"]),
            (&json!("/slug"), &json!(code))
        );
    }
    let taken = server.post(FORMS, json!({"title": "Other", "slug": "our-visit"})).send().await.expect(409);
    assert_eq!(taken["detail"], format!("slug `our-visit` already belongs to {id}"));
    assert_eq!(taken["errors"][0]["pointer"], "/slug");
    let other_workspace_key = server.other_workspace().await;
    assert_eq!(server.get(&path).key(&other_workspace_key).send().await.code(), "form_not_found");
    assert_eq!(server.call(Method::DELETE, &path).send().await.status, 204);
    assert_eq!(server.get(&path).send().await.code(), "form_not_found");
    server.call(Method::POST, format!("{FORMS}/{id}/restore")).send().await.expect(200);
    assert_eq!(server.get(&path).send().await.expect(200)["id"], *id);
}
