//! The life of a form over HTTP: revisions, versions, the trash, when it takes answers.

use axum::http::Method;
use serde_json::json;

use crate::harness::{NOW, Server, questions};

const FORMS: &str = "/api/v1/forms";

#[tokio::test]
async fn a_form_carries_its_revision_and_a_change_may_ask_for_it() {
    let server = Server::start().await;
    let form = server.draft(questions()).await;
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
    assert_eq!(rename("One", "*").await.header("etag"), Some("\"r2\""), "nothing has changed");
    // Answers do not move it.
    server.patch(&path, json!({"status": "published"})).send().await.expect(200);
    server.submit(&form, json!({"q1": "Ada"})).await;
    assert_eq!(server.get(&path).send().await.header("etag"), Some("\"r3\""));
    let delete = |seen: &str| server.call(Method::DELETE, &path).header("if-match", seen).send();
    assert_eq!(delete("\"r2\"").await.code(), "version_mismatch");
    assert_eq!(delete("\"r2\", \"r3\"").await.status, 204);
}

#[tokio::test]
async fn every_version_can_be_read_again() {
    let server = Server::start().await;
    let form = server.published(questions()).await;
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
    for unknown in ["0", "3", "-1", "one", "4294967296"] {
        let answer = server.get(format!("{path}/versions/{unknown}")).send().await;
        assert_eq!(answer.code(), "version_not_found", "{unknown}");
    }
    let page = server.get(format!("{path}/versions?limit=1")).send().await;
    let next = page.header("link").unwrap().split_once('>').unwrap().0.trim_start_matches('<').to_owned();
    let rest = server.get(&next).send().await;
    assert_eq!((rest.expect(200)["versions"][0]["version"].as_u64(), rest.header("link")), (Some(1), None));
    let (_, cursor) = next.split_once("cursor=").unwrap();
    let other = format!("{FORMS}/{}/versions?cursor={cursor}", server.draft(json!([])).await);
    assert_eq!(server.get(other).send().await.code(), "invalid_cursor");
}
