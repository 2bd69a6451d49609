//! The request log and the data it must not contain.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::prelude::*;

/// Captures the log of this thread as JSON lines.
#[derive(Clone, Default)]
pub(super) struct LogCapture(Arc<Mutex<Vec<u8>>>);

impl LogCapture {
    pub(super) fn start() -> (Self, DefaultGuard) {
        // With a single subscriber, `tracing` caches whether an event is enabled from the first thread that
        // reaches it, and the threads of most tests have no subscriber.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
        let lines = Self::default();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
        let subscriber = subscriber.json().flatten_event(true).with_writer(lines.clone()).finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines of the request `id`.
    fn of_request(&self, id: &str) -> Vec<Value> {
        let lines = self.text();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["request_id"] == id).collect()
    }
}

impl Write for LogCapture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogCapture {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_request_is_logged_with_the_address_of_its_client() {
    let trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let server = Server::with_settings(HttpSettings { trusted_proxies, ..HttpSettings::default() }).await;
    let (lines, _guard) = LogCapture::start();
    for (id, peer, client) in
        [("one", "10.0.0.1", "192.0.2.1"), ("two", "192.0.2.9", "192.0.2.9"), ("three", "::1", "::1")]
    {
        let call = server.get("/api/v1/forms").with_client_address(peer).header("x-request-id", id);
        call.header("x-forwarded-for", "192.0.2.1").send().await.expect(200);
        assert_eq!(lines.of_request(id)[0]["client"], client);
    }
    server.get("/api/v1/forms").header("x-request-id", "four").send().await.expect(200);
    assert_eq!(lines.of_request("four")[0]["client"], Value::Null);
}

#[tokio::test]
async fn a_request_is_logged_in_one_line_with_its_path_and_without_its_content() {
    let (server, form) = Server::with_form().await;
    let (lines, _guard) = LogCapture::start();
    let path = format!("/api/v1/forms/{form}/submissions");
    let answers = json!({"answers": {"q1": "canary-answer"}});
    let call = server.post(&path, answers).header("idempotency-key", "canary-retry");
    call.header("x-request-id", "one").send().await.expect(201);
    let refused = json!({"answers": {"q1": 1, "canary-question": "canary-answer"}});
    server.post(&path, refused).header("x-request-id", "two").send().await.expect(422);
    let guess = server.get("/api/v1/forms?cursor=canary-query").key("canary-key");
    guess.header("x-request-id", "three").send().await.expect(401);
    let logged = |id: &str| match lines.of_request(id).as_slice() {
        [line] => [&line["level"], &line["method"], &line["path"], &line["status"]].map(Value::to_string),
        other => panic!("{other:?}"),
    };
    let submissions = json!(path).to_string();
    assert_eq!(logged("one"), ["\"DEBUG\"", "\"POST\"", &submissions, "201"]);
    assert_eq!(logged("two"), ["\"INFO\"", "\"POST\"", &submissions, "422"]);
    assert_eq!(logged("three"), ["\"INFO\"", "\"GET\"", "\"/api/v1/forms\"", "401"]);
    for secret in ["canary", &server.key[11..]] {
        assert!(!lines.text().contains(secret), "{}", lines.text());
    }
}

#[tokio::test]
async fn overload_is_logged_at_debug_level_only() {
    let limits = PoolLimits { jobs: 0, max_wait: Duration::ZERO, ..PoolLimits::default() };
    let server = Server::start().await.with_pool(limits).await;
    let (lines, _guard) = LogCapture::start();
    let form = server.post("/api/v1/forms", json!({"title": "Visit"}));
    form.header("x-request-id", "four").send().await.expect(503);
    let levels: Vec<_> = lines.of_request("four").into_iter().map(|line| line["level"].clone()).collect();
    assert_eq!(levels, ["DEBUG"]);
}

#[tokio::test]
async fn the_cause_of_an_internal_error_is_logged_once() {
    let server = Server::start().await;
    let (lines, _guard) = LogCapture::start();
    server.clock.set("1969-12-31T23:59:59Z");
    let form = json!({"title": "Visit", "questions": []});
    server.post("/api/v1/forms", form).header("x-request-id", "five").send().await.expect(500);
    let lines = lines.of_request("five");
    let causes: Vec<_> = lines.iter().filter_map(|line| line["cause"].as_str()).collect();
    assert_eq!(causes, ["panicked: the clock is broken"]);
}

#[tokio::test]
async fn a_change_of_keys_or_workspaces_is_logged_once_and_not_when_it_is_replayed() {
    let server = Server::start().await;
    let (lines, _guard) = LogCapture::start();
    let key = json!({"name": "ci", "scopes": ["read"]});
    let created = server.post("/api/v1/keys", key.clone()).header("idempotency-key", "one").send().await;
    let rotate = format!("/api/v1/keys/{}/rotate", created.expect(201)["id"].as_str().unwrap());
    let workspace = json!({"name": "Sales"});
    for (path, body, status) in
        [("/api/v1/keys", key, 201), (&rotate, json!({}), 200), ("/api/v1/workspaces", workspace, 201)]
    {
        for _ in 0..2 {
            server.post(path, body.clone()).header("idempotency-key", "one").send().await.expect(status);
        }
    }
    let by = format!("key_{}", &server.key[3..11]);
    for message in ["an API key was created", "an API key was rotated", "a workspace was created"] {
        let text = lines.text();
        let logged: Vec<_> = text.lines().filter(|line| line.contains(message)).collect();
        assert!(logged.len() == 1 && logged[0].contains(&by), "{message}: {logged:?}");
    }
}
