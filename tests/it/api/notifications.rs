//! `notifications` of a form, the short way to write `email` integrations.

use crate::harness::prelude::*;

fn definition(notifications: Value) -> Value {
    json!({"title": "Survey", "questions": questions(), "notifications": notifications})
}

#[tokio::test]
async fn notifications_are_shown_as_they_were_written_and_are_email_integrations() {
    let server = Server::start().await;
    let written = json!([
        "team@example.com",
        {"email": "boss@example.com", "subject": "{{ form.title }}", "body": "{{ answers.q1 }}", "when": {"q3": {"lte": 2}}},
    ]);
    let mut sent = definition(written.clone());
    sent["integrations"] = json!([{"type": "webhook", "url": "https://example.com/hook", "name": "crm"}]);
    let created = server.post("/api/v1/forms", sent).send().await.expect(201);
    let path = format!("/api/v1/forms/{}", created["id"].as_str().unwrap());
    for shown in [created, server.read(&path).await] {
        assert_eq!(shown["notifications"], written);
        assert_eq!(shown["integrations"].as_array().unwrap().len(), 1);
    }
    let all = server.read(format!("{path}/integrations")).await;
    let all = all["integrations"].as_array().unwrap();
    let names: Vec<_> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["crm", "notify-team-example-com", "notify-boss-example-com"]);
    assert_eq!((&all[1]["type"], &all[1]["to"]), (&json!("email"), &json!(["team@example.com"])));
}

#[tokio::test]
async fn each_list_replaces_its_own() {
    let server = Server::start().await;
    let form =
        server.post("/api/v1/forms", definition(json!(["a@example.com", "b@example.com"]))).send().await;
    let path = format!("/api/v1/forms/{}", form.expect(201)["id"].as_str().unwrap());
    let patch = |body: Value| server.patch(&path, body).send();
    let ids = || async {
        let all = server.read(format!("{path}/integrations")).await;
        let id =
            |one: &Value| (one["name"].as_str().unwrap().to_owned(), one["id"].as_str().unwrap().to_owned());
        all["integrations"].as_array().unwrap().iter().map(id).collect::<Vec<_>>()
    };
    let before = ids().await;
    let shown = patch(json!({"integrations": [{"type": "csv_file", "path": "a.csv"}]})).await.expect(200);
    assert_eq!(shown["notifications"], json!(["a@example.com", "b@example.com"]));
    let shown = patch(json!({"notifications": [{"email": "b@example.com"}]})).await.expect(200);
    assert_eq!(
        (&shown["notifications"], shown["integrations"].as_array().unwrap().len()),
        (&json!([{"email": "b@example.com"}]), 1)
    );
    assert_eq!(ids().await[1], before[1], "matched by name");
    // What was shown changes nothing.
    let version = shown["updated_at"].clone();
    let again =
        patch(json!({"notifications": shown["notifications"], "integrations": shown["integrations"]})).await;
    assert_eq!(again.expect(200)["updated_at"], version);
    let none = patch(json!({"notifications": null})).await.expect(200);
    assert!(none.get("notifications").is_none() && none["integrations"].is_array());
}

#[tokio::test]
async fn errors_are_at_what_was_written() {
    let server = Server::start().await;
    let with = |name: &str, value: Value| json!([{"email": "a@example.com", name: value}]);
    let many = (0..21).map(|number| format!("a{number}@example.com"));
    for (notifications, expected) in [
        (json!(["team"]), &[("/notifications/0", "invalid_range")][..]),
        (
            json!([{"email": "a@example.com"}, {"email": "b@b"}]),
            &[("/notifications/1/email", "invalid_range")],
        ),
        (
            json!([{"mail": "a@example.com"}]),
            &[("/notifications/0/email", "missing_field"), ("/notifications/0/mail", "unknown_field")],
        ),
        (json!(["a@example.com", "A@example.com"]), &[("/notifications/1", "duplicate_name")]),
        (with("subject", json!("{{ form.title")), &[("/notifications/0/subject", "invalid_template")]),
        (with("body", json!("{% set a = 1 %}")), &[("/notifications/0/body", "invalid_template")]),
        (with("when", json!({"q9": 1})), &[("/notifications/0/when/q9", "unknown_reference")]),
        (json!("a@example.com"), &[("/notifications", "type_mismatch")]),
        (json!([5]), &[("/notifications/0", "type_mismatch")]),
        (many.collect(), &[("/notifications", "too_many")]),
    ] {
        server.post("/api/v1/forms", definition(notifications)).send().await.expect_errors(expected);
    }
    let mut both = definition(json!(["a@example.com"]));
    both["integrations"] = json!([{"type": "csv_file", "name": "notify-a-example-com", "path": "a.csv"}]);
    let refused = server.post("/api/v1/forms", both).send().await.expect(422);
    assert_eq!(refused["errors"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn mail_needs_one_kind_of_recipient_and_questions_that_exist() {
    let (server, form) = Server::with_form().await;
    let path = format!("/api/v1/forms/{form}/integrations");
    for (mut members, at, code) in [
        (json!({}), "/to", "missing_field"),
        (json!({"to": ["a@example.com"], "to_question": "q2"}), "/to_question", "invalid_range"),
        (json!({"to_question": "q1"}), "/to_question", "unknown_reference"),
        (json!({"to": ["a@a.org"], "reply_to_question": "q9"}), "/reply_to_question", "unknown_reference"),
        (json!({"to": ["Ann <a@example.com>"]}), "/to/0", "invalid_range"),
        (json!({"to": ["a@example.com\r\nBcc: b@example.com"]}), "/to/0", "invalid_range"),
        (json!({"to": []}), "/to", "empty"),
    ] {
        members["type"] = json!("email");
        server.post(&path, members).send().await.expect_errors(&[(at, code)]);
    }
    server.post(&path, json!({"type": "email", "to_question": "q2"})).send().await.expect(201);
    let form = format!("/api/v1/forms/{form}");
    let mut kept = questions();
    kept.as_array_mut().unwrap().remove(1);
    let refused = server.patch(&form, json!({"questions": kept})).send().await;
    refused.expect_errors(&[("/integrations/0/to_question", "unknown_reference")]);
}

#[tokio::test]
async fn a_notification_that_is_changed_beyond_its_short_form_becomes_an_integration() {
    let server = Server::start().await;
    let form = server.post("/api/v1/forms", definition(json!(["a@example.com"]))).send().await.expect(201);
    let path = format!("/api/v1/forms/{}", form["id"].as_str().unwrap());
    let one = format!("{path}/integrations/notify-a-example-com");
    let patch = |body: Value| server.patch(&one, body).send();
    patch(json!({"subject": "Hello"})).await.expect(200);
    let shown = server.read(&path).await;
    assert_eq!(shown["notifications"], json!([{"email": "a@example.com", "subject": "Hello"}]));
    patch(json!({"enabled": false})).await.expect(200);
    let shown = server.read(&path).await;
    assert!(shown.get("notifications").is_none());
    assert_eq!(shown["integrations"][0]["name"], "notify-a-example-com");
}
