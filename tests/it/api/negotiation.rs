//! Content negotiation: accepted types and encodings, charsets of bodies, documented defaults.

use crate::harness::prelude::*;

/// The statuses of a GET, a GET of the schema and a DELETE with this `Accept`.
async fn statuses(server: &Server, accept: &str) -> [u16; 3] {
    let form = format!("{FORMS}/{}", server.draft_form(questions()).await);
    let calls = [
        server.get(&form),
        server.get(format!("{form}/schema")),
        // Last, because it deletes the form.
        server.delete(&form),
    ];
    let mut statuses = [0; 3];
    for (call, status) in calls.into_iter().zip(&mut statuses) {
        let response = call.header("accept", accept).send().await;
        assert!(response.status.is_success() || response.code() == "not_acceptable", "{accept}");
        *status = response.status.as_u16();
    }
    statuses
}

#[tokio::test]
async fn accept_is_compared_with_the_media_type_of_the_operation() {
    let server = Server::start().await;
    for (accept, expected) in [
        ("*/*", [200, 200, 204]),
        ("application/*;q=0.1", [200, 200, 204]),
        ("application/json", [200, 200, 204]),
        ("Application/JSON; charset=utf-8", [200, 200, 204]),
        ("application/problem+json", [200, 200, 204]),
        ("application/schema+json", [406, 200, 406]),
        ("text/html, application/json;q=0.5", [200, 200, 204]),
        ("text/html", [406, 406, 406]),
        // The most specific range decides.
        ("application/json;q=0, application/problem+json;q=0.0, */*", [406, 200, 406]),
        ("application/json, */*;q=0", [200, 200, 204]),
        ("*/*;q=0", [406, 406, 406]),
        ("APPLICATION/*;q=0", [406, 406, 406]),
        ("/*", [406, 406, 406]),
        ("*", [406, 406, 406]),
        ("", [406, 406, 406]),
    ] {
        assert_eq!(statuses(&server, accept).await, expected, "{accept}");
    }
}

#[tokio::test]
async fn the_schema_is_sent_as_plain_json_to_clients_that_accept_only_that() {
    let server = Server::start().await;
    let path = format!("{FORMS}/{}/schema", server.draft_form(questions()).await);
    for (accept, kind) in [
        ("*/*", "application/schema+json"),
        ("application/schema+json", "application/schema+json"),
        ("application/json", "application/json"),
        ("application/json, application/schema+json;q=0", "application/json"),
    ] {
        let response = server.get(&path).header("accept", accept).send().await;
        assert_eq!(response.header("content-type"), Some(kind), "{accept}");
        assert_eq!(response.json()["type"], "object");
    }
}

#[tokio::test]
async fn a_body_in_another_charset_is_an_unsupported_media_type() {
    let server = Server::start().await;
    let send = |kind: &str| {
        let call = server.post(FORMS, json!({"title": "Visit"}));
        call.header("content-type", kind).send()
    };
    for good in [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "Application/Json ; Charset=Utf-8 ; profile=x",
        "application/json; profile=\"latin1\"",
    ] {
        send(good).await.expect(201);
    }
    for bad in [
        "application/json; charset=utf-16",
        "application/json; charset=latin1",
        "application/json; charset=\"iso-8859-1\"",
        "application/json; charset=utf-8; charset=utf-16",
        "application/json; charset=",
    ] {
        let response = send(bad).await;
        response.expect_problem(415, "unsupported_media_type");
        assert!(response.text().contains("UTF-8"), "{}", response.text());
    }
}

#[tokio::test]
async fn the_documented_defaults_of_parameters_are_those_of_the_server() {
    let server = Server::start().await;
    let form = format!("{FORMS}/{}", server.published_form(questions()).await);
    for _ in 0..51 {
        server.create(FORMS, json!({"title": "Visit"})).await;
        server.create(format!("{form}/submissions"), json!({"answers": {"q1": "Ada"}})).await;
    }
    let document = server.read("/api/v1/openapi.json").await;
    for (path, at) in [
        ("/api/v1/forms", FORMS.to_owned()),
        ("/api/v1/forms/{form}/versions", format!("{form}/versions")),
        ("/api/v1/forms/{form}/submissions", format!("{form}/submissions")),
    ] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        let defaults = parameters.iter().filter_map(|parameter| {
            let value = match &parameter["schema"]["default"] {
                Value::Null if parameter["schema"]["type"] == "boolean" => "false".to_owned(),
                Value::Null => return None,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some(format!("{}={value}", parameter["name"].as_str().unwrap()))
        });
        let query = defaults.collect::<Vec<_>>().join("&");
        assert_eq!(server.read(format!("{at}?{query}")).await, server.read(&at).await);
        let trashed = query.replace("trashed=false", "trashed=true");
        server.read(format!("{at}?{trashed}")).await;
    }
    let refused = server.get(format!("{form}/submissions?trashed=true&order=asc")).send().await;
    assert_eq!(refused.code(), "invalid_query");
    let refused = server.get(format!("{form}/submissions?trashed=true&count=true")).send().await;
    assert_eq!(refused.code(), "invalid_query");
}
