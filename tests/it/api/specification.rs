//! The bodies in the specification, field by field, over a socket.

use serde_json::{Value, json};

use crate::harness::{ListeningServer, NOW, Server, fields, questions};

async fn server() -> (Server, ListeningServer) {
    let server = Server::start().await;
    let wire = server.listen().await;
    (server, wire)
}

#[tokio::test]
async fn the_api_lists_forms_with_six_fields_each() {
    let (server, wire) = server().await;
    let form = server.published_form(questions()).await;
    server.submit(&form, json!({"q1": "Ada"})).await;
    let response = wire.call("GET", "/api/v1/forms", &server.key, None).await;
    assert_eq!(response.fields(), ["forms"]);
    let entry = json!({
        "id": form, "title": "Visit", "status": "published", "response_count": 1,
        "created_at": NOW, "updated_at": NOW,
    });
    assert_eq!(response.expect(200), json!({"forms": [entry]}));
    let list = &response.text()["{\"forms\":[".len()..response.body.len() - 2];
    assert_eq!(fields(list), ["id", "title", "status", "response_count", "created_at", "updated_at"]);
}

#[tokio::test]
async fn the_api_creates_a_draft_and_returns_five_fields() {
    let (server, wire) = server().await;
    let sent = json!({"title": "Visit", "questions": questions()});
    let response = wire.call("POST", "/api/v1/forms", &server.key, Some(sent)).await;
    let body = response.expect(201);
    assert_eq!(response.fields(), ["id", "title", "status", "questions", "created_at"]);
    assert_eq!(
        body,
        json!({
            "id": body["id"], "title": "Visit", "status": "draft",
            "questions": [
                {"id": "q1", "type": "short_text", "title": "Your name?", "required": true},
                {"id": "q2", "type": "email", "title": "Your address?", "required": false},
                {"id": "q3", "type": "rating", "title": "How was it?", "required": false},
            ],
            "created_at": NOW,
        })
    );
    let id = body["id"].as_str().unwrap();
    assert_eq!(response.header("location").unwrap(), format!("/api/v1/forms/{id}"));
}

#[tokio::test]
async fn a_form_is_read_as_specified() {
    let (server, wire) = server().await;
    let form = server.draft_form(questions()).await;
    let response = wire.call("GET", &format!("/api/v1/forms/{form}"), &server.key, None).await;
    assert_eq!(response.expect(200)["id"], form);
    assert_eq!(response.json()["status"], "draft");
}

#[tokio::test]
async fn the_api_publishes_by_patch() {
    let (server, wire) = server().await;
    let form = server.draft_form(questions()).await;
    let path = format!("/api/v1/forms/{form}");
    let change = json!({"title": "Your visit", "status": "published"});
    let body = wire.call("PATCH", &path, &server.key, Some(change)).await.expect(200);
    assert_eq!([&body["title"], &body["status"]], ["Your visit", "published"]);
}

#[tokio::test]
async fn the_api_deletes_a_form() {
    let (server, wire) = server().await;
    let form = server.draft_form(questions()).await;
    let path = format!("/api/v1/forms/{form}");
    let response = wire.call("DELETE", &path, &server.key, None).await;
    assert_eq!((response.status.as_u16(), response.text()), (204, ""));
    assert_eq!(response.header("content-length"), None, "RFC 9110 §8.6");
    assert_eq!(wire.call("GET", &path, &server.key, None).await.code(), "form_not_found");
    assert_eq!(wire.call("DELETE", &path, &server.key, None).await.code(), "form_not_found");
}

#[tokio::test]
async fn the_api_creates_a_submission_and_echoes_the_answers() {
    let (server, wire) = server().await;
    let form = server.published_form(questions()).await;
    let path = format!("/api/v1/forms/{form}/submissions");
    let answers = json!({"q1": "Ada", "q2": "ada@example.com", "q3": 5});
    let response = wire.call("POST", &path, &server.key, Some(json!({"answers": answers}))).await;
    let body = response.expect(201);
    assert_eq!(response.fields(), ["id", "form_id", "status", "answers", "submitted_at"]);
    let expected = json!({
        "id": body["id"], "form_id": form, "status": "completed", "answers": answers, "submitted_at": NOW,
    });
    assert_eq!(body, expected);
    assert_eq!(response.header("location").unwrap(), format!("{path}/{}", body["id"].as_str().unwrap()));
}

#[tokio::test]
async fn drafts_and_missing_answers_are_refused() {
    let (server, wire) = server().await;
    let draft = server.draft_form(questions()).await;
    let published = server.published_form(questions()).await;
    let send = async |form: &str, answers: Value| {
        let path = format!("/api/v1/forms/{form}/submissions");
        wire.call("POST", &path, &server.key, Some(json!({"answers": answers}))).await
    };
    let refused = send(&draft, json!({"q1": "Ada"})).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (409, "form_not_published"));
    let refused = send(&published, json!({"q3": 5})).await.expect(422);
    assert_eq!(refused["code"], "validation_failed");
    assert_eq!(
        refused["errors"],
        json!([{
            "pointer": "/answers/q1", "question": "q1", "code": "required",
            "message": "\"Your name?\" needs an answer",
        }])
    );
}

#[tokio::test]
async fn the_api_lists_submissions_under_both_names() {
    let (server, wire) = server().await;
    let form = server.published_form(questions()).await;
    let id = server.submit(&form, json!({"q1": "Ada", "q3": 4})).await;
    let submission = json!({
        "id": id, "form_id": form, "status": "completed", "answers": {"q1": "Ada", "q3": 4},
        "submitted_at": NOW, "form_version": 1,
    });
    for name in ["submissions", "responses"] {
        let response = wire.call("GET", &format!("/api/v1/forms/{form}/{name}"), &server.key, None).await;
        assert_eq!(response.expect(200), json!({"submissions": [submission], "next_cursor": null}));
    }
}

#[tokio::test]
async fn the_api_requires_a_key_for_every_request() {
    let (_server, wire) = server().await;
    let response = wire.call("GET", "/api/v1/forms", "fk_wrong", None).await;
    assert_eq!((response.status.as_u16(), response.code().as_str()), (401, "unauthorized"));
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
}
