//! Workspaces: creation, listing and deletion.

use forms::domain::workspace::MAX_WORKSPACES;

use crate::harness::prelude::*;

const WORKSPACES: &str = "/api/v1/workspaces";

/// Creates a workspace and returns its id and its first key.
async fn create(server: &Server, name: &str) -> (String, String) {
    let made = server.post(WORKSPACES, json!({"name": name})).send().await.expect(201);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

async fn names(server: &Server) -> Vec<Value> {
    let list = server.read(WORKSPACES).await;
    list["workspaces"].as_array().unwrap().iter().map(|workspace| workspace["name"].clone()).collect()
}

#[tokio::test]
async fn a_created_workspace_is_empty_and_has_an_admin_key() {
    let server = Server::start().await;
    server.published_form(questions()).await;
    server.clock.set("2026-11-20T09:05:00Z");
    let response = server.post(WORKSPACES, json!({"name": "Marketing"})).send().await;
    let made = response.expect(201);
    assert_eq!(response.fields(), ["id", "name", "created_at", "key"]);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!(response.header("location"), Some(format!("{WORKSPACES}/{id}").as_str()));
    let whoami = server.get("/api/v1/whoami").key(key).send().await.expect(200);
    assert_eq!(whoami["workspace"], json!({"id": id, "name": "Marketing"}));
    assert_eq!((&whoami["key"]["name"], &whoami["key"]["scopes"]), (&json!("admin"), &json!(["admin"])));
    assert_eq!(server.get("/api/v1/forms").key(key).send().await.expect(200), json!({"forms": []}));
    let keys = server.get("/api/v1/keys").key(key).send().await.expect(200);
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    assert_eq!(names(&server).await, ["Marketing", "default"]);
}

#[tokio::test]
async fn the_name_of_a_workspace_is_checked() {
    let server = Server::start().await;
    for (body, pointer, code) in [
        (json!({}), "/name", "missing_field"),
        (json!({"name": " "}), "/name", "empty"),
        (json!({"name": "x".repeat(301)}), "/name", "too_long"),
        (json!({"name": "W", "title": "T"}), "/title", "unknown_field"),
        (json!({"name": "W", "id": "ws_000000000000"}), "/id", "read_only_field"),
    ] {
        server.post(WORKSPACES, body).send().await.expect_errors(&[(pointer, code)]);
    }
    assert_eq!(names(&server).await, ["default"]);
}

#[tokio::test]
async fn deleting_a_workspace_ends_its_keys_at_once() {
    let server = Server::start().await;
    let kept = server.published_form(questions()).await;
    let (id, key) = create(&server, "Gone").await;
    let body = json!({"name": "CI", "scopes": ["read"]});
    let second = server.post("/api/v1/keys", body).key(&key).send().await.expect(201);
    let second = second["key"].as_str().unwrap();
    let form = json!({"title": "F", "slug": "f", "questions": questions()});
    server.post("/api/v1/forms", form).key(&key).send().await.expect(201);
    server.remove(format!("{WORKSPACES}/{id}")).await;
    for key in [&key, second] {
        assert_eq!(server.get("/api/v1/forms").key(key).send().await.status, 401);
    }
    let body = json!({"name": "CI", "scopes": ["read"], "workspace": id});
    let refused = server.post("/api/v1/keys", body).send().await;
    refused.expect_errors(&[("/workspace", "unknown_reference")]);
    assert_eq!(names(&server).await, ["default"]);
    server.read(format!("/api/v1/forms/{kept}")).await;
}

#[tokio::test]
async fn the_workspace_of_the_own_key_cannot_be_deleted() {
    let server = Server::start().await;
    let whoami = server.read("/api/v1/whoami").await;
    let own = whoami["workspace"]["id"].as_str().unwrap();
    let (other, _) = create(&server, "Other").await;
    let body = json!({"name": "Second operator", "scopes": ["operator"], "workspace": other});
    let made = server.post("/api/v1/keys", body).send().await.expect(201);
    let second = made["key"].as_str().unwrap();
    let delete =
        async |id: &str, key: &str| server.delete(format!("{WORKSPACES}/{id}")).key(key).send().await;
    assert_eq!(delete(own, &server.key).await.code(), "workspace_in_use");
    assert_eq!(delete(own, second).await.status, 204);
    assert_eq!(delete(&other, second).await.code(), "workspace_in_use");
    assert_eq!(server.get("/api/v1/whoami").send().await.status, 401);
}

#[tokio::test]
async fn a_server_has_at_most_a_thousand_workspaces() {
    let server = Server::start().await;
    for _ in 0..MAX_WORKSPACES - 1 {
        server.other_workspace().await;
    }
    let refused = server.post(WORKSPACES, json!({"name": "W"})).send().await;
    refused.expect_errors(&[("", "too_many")]);
    assert_eq!(names(&server).await.len(), MAX_WORKSPACES);
}
