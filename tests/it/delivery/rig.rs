//! A server with a form whose submissions are delivered.

use std::sync::Arc;

use axum::http::Method;
use forms::clock::{Clock, Timestamp};
use forms::delivery::{SendLimits, Sender, SystemLookup};
use serde_json::{Value, json};

use super::sender;
use crate::harness::{Server, TestResponse, questions};

/// A server with a published form.
pub(super) struct Rig {
    pub(super) server: Server,
    pub(super) form: String,
}

impl Rig {
    /// Starts a server that delivers through `sender`.
    pub(super) async fn with_sender(sender: Arc<dyn Sender>) -> Self {
        Self::on(Server::start().await.with_sender(sender)).await
    }

    /// Starts a server on the embedded store that delivers over HTTP.
    pub(super) async fn embedded() -> Self {
        let sender = sender(SystemLookup, SendLimits::default());
        Self::on(Server::embedded().await.with_sender(Arc::new(sender))).await
    }

    async fn on(server: Server) -> Self {
        let form = server.published_form(questions()).await;
        Self { server, form }
    }

    /// Starts a server that delivers over HTTP.
    pub(super) async fn over_http(limits: SendLimits) -> Self {
        Self::with_sender(Arc::new(sender(SystemLookup, limits))).await
    }

    /// Creates another published form.
    pub(super) async fn add_form(&mut self) {
        self.form = self.server.published_form(questions()).await;
    }

    /// Adds a webhook to the form.
    pub(super) async fn webhook(&self, name: &str, url: &str) -> Value {
        let webhook = json!({"type": "webhook", "name": name, "url": url});
        self.server.integrate(&self.form, webhook).await
    }

    pub(super) async fn submit(&self, name: &str) -> String {
        self.server.submit(&self.form, json!({"q1": name})).await
    }

    /// All deliveries that match the query, newest first.
    pub(super) async fn deliveries(&self, query: &str) -> Vec<Value> {
        let found = self.server.get(format!("/api/v1/deliveries?limit=100&{query}")).send().await.expect(200);
        found["deliveries"].as_array().unwrap().clone()
    }

    /// The only delivery.
    pub(super) async fn delivery(&self) -> Value {
        let mut found = self.deliveries("").await;
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    pub(super) async fn attempts(&self, delivery: &Value) -> Vec<Value> {
        let path = format!("/api/v1/deliveries/{}/attempts", delivery["id"].as_str().unwrap());
        let found = self.server.get(path).send().await.expect(200);
        found["attempts"].as_array().unwrap().clone()
    }

    /// Fails unless the only delivery has this status and error code; returns it.
    pub(super) async fn expect_failure(&self, status: &str, code: &str) -> Value {
        let delivery = self.delivery().await;
        assert_eq!((&delivery["status"], &delivery["last_error"]["code"]), (&json!(status), &json!(code)));
        delivery
    }

    /// Sends a delivery again by hand.
    pub(super) async fn redeliver(&self, delivery: &Value) -> TestResponse {
        let path = format!("/api/v1/deliveries/{}/redeliver", delivery["id"].as_str().unwrap());
        self.server.call(Method::POST, path).send().await
    }

    pub(super) async fn change_form(&self, change: Value) {
        self.server.patch(format!("/api/v1/forms/{}", self.form), change).send().await.expect(200);
    }

    /// Changes an integration of the form.
    pub(super) async fn change(&self, name: &str, change: Value) -> Value {
        let path = format!("/api/v1/forms/{}/integrations/{name}", self.form);
        self.server.patch(path, change).send().await.expect(200)
    }

    /// Sends a test event to an integration, and returns the attempt.
    pub(super) async fn test(&self, name: &str) -> Value {
        let path = format!("/api/v1/forms/{}/integrations/{name}/test", self.form);
        self.server.call(Method::POST, path).send().await.expect(200)
    }

    /// Delivers what is due after some milliseconds.
    pub(super) async fn deliver_after(&self, millis: i64) {
        self.server.clock.advance(millis);
        self.server.deliver().await;
    }

    pub(super) async fn health(&self, name: &str) -> Value {
        let path = format!("/api/v1/forms/{}/integrations/{name}", self.form);
        self.server.get(path).send().await.expect(200)["health"].clone()
    }

    /// Moves the clock to the next attempt of the only delivery and makes it; returns the wait in milliseconds, or `None` if
    /// there is no other attempt.
    pub(super) async fn next_attempt(&self) -> Option<i64> {
        let delivery = self.delivery().await;
        let due = Timestamp::parse(delivery["next_attempt_at"].as_str()?).unwrap();
        let wait = due.millis() - self.server.clock.now().millis();
        let before = self.attempts(&delivery).await.len();
        self.deliver_after(wait - 1).await;
        assert_eq!(self.attempts(&delivery).await.len(), before, "an attempt was made too early");
        self.deliver_after(1).await;
        assert_eq!(self.attempts(&delivery).await.len(), before + 1);
        Some(wait)
    }
}
