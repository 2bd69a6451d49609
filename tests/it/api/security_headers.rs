//! The security headers of every kind of response: operations, problems, and refusals without a handler.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use forms::api::Code;
use forms::config::HttpSettings;
use forms::http::starting;
use forms::store::StoreHealth;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::headers::other_headers;
use super::problem_codes::provoke;
use crate::harness::{Call, ListeningServer, Server, TestResponse, parse_response, questions};

/// Checks the headers of a response, and that its media type has a charset if it is a text.
#[track_caller]
fn check(response: &TestResponse, place: &str) {
    let others = other_headers(response);
    let unexpected = ["server", "x-powered-by", "set-cookie", "access-control", "strict-transport", "vary"];
    assert!(!unexpected.iter().any(|name| others.contains(name)), "{place}: {others}");
    let known = ["application/json", "application/problem+json", "text/plain; charset=utf-8"];
    match response.header("content-type") {
        Some(kind) => assert!(known.contains(&kind), "{place}: {kind}"),
        None => assert_eq!(response.text(), "", "{place}"),
    }
}

#[tokio::test]
async fn every_operation_has_them() {
    let server = Server::start().await;
    let document = server.get("/api/v1/openapi.json").send().await.expect(200);
    let other_parameter = regex::Regex::new(r"\{\w+\}").unwrap();
    let mut succeeded = 0;
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let form = server.published_form(questions()).await;
            let submission = server.submit(&form, json!({"q1": "Ada"})).await;
            let path = template.replace("{form}", &form).replace("{submission}", &submission);
            let path = path.replace("{version}", "1").replace("{code}", "internal");
            let path = other_parameter.replace_all(&path, "unknown");
            let method: Method = method.to_uppercase().parse().unwrap();
            let call = server.call(method.clone(), &*path);
            let content = operation["requestBody"]["content"].as_object().into_iter().flatten();
            let call = match content.map(|(_, content)| content["example"].clone()).next() {
                Some(body) => call.json(body),
                None => call,
            };
            let response = call.send().await;
            succeeded += usize::from(response.status.is_success());
            check(&response, &format!("{method} {path}"));
            let keyless = server.call_without_key(method.clone(), &*path).send().await;
            check(&keyless, &format!("{method} {path} without a key"));
        }
    }
    assert!(succeeded > 20, "only {succeeded} operations succeeded");
}

#[tokio::test]
async fn every_problem_has_them() {
    for code in Code::ALL.iter().copied() {
        check(&provoke(code).await, code.name());
    }
}

/// Takes a connection, with a request that waits for its body.
async fn begin_request(server: &Server, wire: &ListeningServer) -> TcpStream {
    let mut stream = wire.connect().await;
    let head = format!(
        "POST /api/v1/forms HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 5\r\n\r\n",
        server.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut begun = [0; 25];
    stream.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

/// Sends `bytes` over a new connection, and checks the response.
async fn refuse(wire: &ListeningServer, bytes: &[u8], status: u16) {
    let response = parse_response(&wire.exchange(bytes).await);
    assert_eq!(response.status.as_u16(), status, "{}", response.text());
    check(&response, &status.to_string());
}

#[tokio::test]
async fn every_refusal_over_a_socket_has_them() {
    let settings = HttpSettings {
        head_timeout: Duration::from_millis(200),
        max_connections: 1,
        max_body: 10,
        max_definition: 10,
        ..HttpSettings::default()
    };
    let server = Server::with_settings(settings).await;
    let wire = server.listen().await;
    let get = |path: &str, headers: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n").into_bytes()
    };
    let post = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", server.key);
    let too_large = format!(
        "POST /api/v1/forms HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{post}Content-Length: 11\r\n\r\n12345678901"
    );
    refuse(&wire, b"GET / HTTP/1.1\r\n", 408).await;
    refuse(&wire, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400).await;
    refuse(&wire, &get("/", ""), 404).await;
    refuse(&wire, b"PUT /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 405).await;
    refuse(&wire, too_large.as_bytes(), 413).await;
    refuse(&wire, &get(&format!("/{}", "x".repeat(9_000)), ""), 414).await;
    refuse(&wire, &get("/", &format!("X-Filler: {}\r\n", "x".repeat(40_000))), 431).await;
    let _taken = begin_request(&server, &wire).await;
    refuse(&wire, &get("/", ""), 503).await;
}

#[tokio::test]
async fn a_starting_server_has_them() {
    let health = || StoreHealth::Rebuilding { done: 0, total: 0 };
    let service = starting(HttpSettings::default(), Arc::new(health));
    for (path, status) in [("/healthz", 200), ("/readyz", 503), ("/api/v1/forms", 503)] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = Call::new(service.clone(), request).send().await;
        assert_eq!(response.status.as_u16(), status, "{path}");
        check(&response, path);
    }
    let request = Request::put("/readyz").body(Body::empty()).unwrap();
    check(&Call::new(service, request).send().await, "PUT /readyz");
}

#[tokio::test]
async fn the_refusal_when_all_connections_are_taken_has_cors_headers_and_the_base_url() {
    let settings = HttpSettings {
        trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()],
        cors_origins: vec!["https://app.example.com".parse().unwrap()],
        ..HttpSettings::default()
    };
    let server = Server::with_settings(HttpSettings { max_connections: 1, ..settings }).await;
    let wire = server.listen().await;
    let _taken = begin_request(&server, &wire).await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example.com\r\nX-Forwarded-Prefix: /forms\r\n\r\n";
    let response = parse_response(&wire.exchange(request.as_bytes()).await);
    assert_eq!(response.header("access-control-allow-origin"), Some("https://app.example.com"));
    assert_eq!(response.header("vary"), Some("origin"));
    assert_eq!(response.json()["type"], "/forms/problems/overloaded");
}
