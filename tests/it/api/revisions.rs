//! Revisions in entity tags, and changes that require them.

use crate::harness::prelude::*;

#[tokio::test]
async fn a_change_is_made_only_to_the_revision_that_it_names() {
    let (server, form) = Server::with_form().await;
    let path = format!("{FORMS}/{form}");
    let submission = format!("{path}/submissions/{}", server.submit(&form, json!({"q1": "Ada"})).await);
    server.integrate(&form, webhook()).await;
    let integration = format!("{path}/integrations/webhook");
    for (path, old, new, change, other) in [
        (
            &submission,
            "\"r1\"",
            "\"r2\"",
            json!({"answers": {"q1": "Eve"}}),
            json!({"answers": {"q1": "Bob"}}),
        ),
        (&integration, "\"r3\"", "\"r4\"", json!({"payload": "thin"}), json!({"payload": "full"})),
        (&path, "\"r5\"", "\"r6\"", json!({"title": "One"}), json!({"title": "Two"})),
    ] {
        let tag = async || server.get(path).send().await.header("etag").unwrap().to_owned();
        let patch =
            |body: &Value, seen: &str| server.patch(path, body.clone()).header("if-match", seen).send();
        assert_eq!(tag().await, old);
        let changed = patch(&change, old).await;
        assert_eq!((changed.status.as_u16(), changed.header("etag")), (200, Some(new)));
        let shown = server.read(path).await;
        // Refused even if it would change nothing.
        for body in [&other, &change] {
            patch(body, old).await.expect_problem(412, "version_mismatch");
        }
        patch(&change, "r2").await.expect_problem(400, "invalid_header");
        assert_eq!(patch(&change, "*").await.header("etag"), Some(new), "an edit without a change");
        let delete =
            |query: &str, seen: &str| server.delete(format!("{path}{query}")).header("if-match", seen).send();
        delete("", old).await.expect_problem(412, "version_mismatch");
        let is_purged = *path != integration;
        if is_purged {
            delete("?purge=true", old).await.expect_problem(412, "version_mismatch");
        }
        assert_eq!((server.read(path).await, tag().await), (shown, new.to_owned()));
        assert_eq!(delete("", &format!("{old}, {new}")).await.status, 204);
        if is_purged {
            delete("?purge=true", old).await.expect_problem(412, "version_mismatch");
            server.call(Method::POST, format!("{path}/restore")).send().await.expect(200);
            assert_eq!(delete("?purge=true", "*").await.status, 204);
        }
    }
}

#[tokio::test]
async fn the_revision_of_a_form_moves_with_its_integrations_and_not_with_submissions() {
    let (server, form) = Server::with_form().await;
    let path = format!("{FORMS}/{form}");
    let etag = async || server.get(&path).send().await.header("etag").unwrap().to_owned();
    server.submit(&form, json!({"q1": "Ada"})).await;
    assert_eq!(etag().await, "\"r2\"");
    server.integrate(&form, webhook()).await;
    assert_eq!(etag().await, "\"r3\"");
    let one = format!("{path}/integrations/webhook");
    server.clock.set("2026-11-20T10:00:00Z");
    let patched = server.patch(&one, json!({"payload": "thin"})).send().await;
    assert_eq!(patched.expect(200)["updated_at"], "2026-11-20T10:00:00.000Z");
    assert_eq!((patched.header("etag"), etag().await), (Some("\"r4\""), "\"r4\"".to_owned()));
    server.call(Method::POST, format!("{one}/rotate-secret")).send().await.expect(200);
    assert_eq!(etag().await, "\"r5\"");
    for method in [Method::PATCH, Method::DELETE] {
        let call = server.call(method, format!("{path}/integrations/other")).json(json!({}));
        call.header("if-match", "\"r3\"").send().await.expect_problem(404, "integration_not_found");
    }
    server.remove(&one).await;
    assert_eq!(etag().await, "\"r6\"");
}

#[tokio::test]
async fn the_etag_of_a_creation_can_be_used_for_a_change() {
    let server = Server::start().await;
    let create = async |path: &str, body: Value| {
        let made = server.post(path, body).send().await;
        let (location, tag) = (made.header("location").unwrap(), made.header("etag").unwrap());
        assert_eq!(server.get(location).send().await.header("etag"), Some(tag));
        (location.to_owned(), tag.to_owned())
    };
    let (form, tag) = create(FORMS, json!({"title": "Visit", "questions": questions()})).await;
    let publish = server.patch(&form, json!({"status": "published"})).header("if-match", &tag);
    publish.send().await.expect(200);
    create(&format!("{form}/submissions"), json!({"answers": {"q1": "Ada"}})).await;
}

#[tokio::test]
async fn if_match_accepts_a_list_of_revisions_weak_or_not() {
    let server = Server::start().await;
    let form = format!("{FORMS}/{}", server.draft_form(questions()).await);
    for (text, status) in [
        ("*", 200),
        ("\"r1\"", 200),
        ("W/\"r1\"", 200),
        ("\"r7\", \"r1\"", 200),
        (", \"r1\" ,", 200),
        ("W/\"r,x\" , \"r1\"", 200),
        ("", 412),
        ("\"\"", 412),
        ("\"1\",\"r001\",\"r+1\",\"rx\"", 412),
        ("W/\"r2\", W/\"x\"", 412),
        ("r1", 400),
        ("\"r1", 400),
        ("\"", 400),
        ("\"r1\" \"r2\"", 400),
        ("*, \"r1\"", 400),
    ] {
        let response = server.patch(&form, json!({})).header("if-match", text).send().await;
        assert_eq!(response.status.as_u16(), status, "{text}");
    }
}
