//! What is attempted when, and when an integration is paused: on a clock that the test sets.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::http::Method;
use forms::clock::{Clock, SystemClock};
use forms::delivery::{Answer, SendLimits, Sender};
use forms::domain::delivery::attempt::{DEFAULT_SCHEDULE, Outcome, SendReport};
use forms::domain::delivery::classify::HttpAnswer;
use forms::domain::integration::outbound::HttpRequest;
use serde_json::json;

use super::receiver::{Receiver, Reply};
use super::rig::Rig;

const HOUR: i64 = 3_600_000;

/// Answers with a status and a `Retry-After` that the test sets, and records the requests.
struct Scripted {
    status: AtomicU16,
    retry_after: Option<&'static str>,
    requests: Mutex<Vec<HttpRequest>>,
}

impl Scripted {
    fn new(status: u16, retry_after: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self { status: status.into(), retry_after, requests: Mutex::default() })
    }

    fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl Sender for Scripted {
    async fn send(&self, request: &HttpRequest) -> SendReport {
        self.requests.lock().unwrap().push(request.clone());
        let status = self.status.load(Ordering::Relaxed);
        let headers: Vec<_> =
            self.retry_after.map(|text| ("retry-after", text.to_owned())).into_iter().collect();
        let answer = HttpAnswer { status, headers: &headers, body: "", now: SystemClock.now() };
        SendReport { http_status: Some(status), ..SendReport::new((request.classify)(&answer).outcome, 1) }
    }

    async fn call(&self, _: &HttpRequest, _: usize) -> Result<Answer, Outcome> {
        unreachable!("webhooks only")
    }
}

async fn rig(sender: &Arc<Scripted>) -> Rig {
    let rig = Rig::with_sender(sender.clone()).await;
    rig.webhook("hook", "https://hook.example/").await;
    rig
}

fn webhook_id(request: &HttpRequest) -> String {
    let header = request.headers.iter().find(|(name, _)| name == "webhook-id");
    header.unwrap().1.reveal().clone()
}

#[tokio::test]
async fn a_failed_delivery_is_tried_again_as_the_schedule_says_and_is_dead_after_the_last() {
    let sender = Scripted::new(500, None);
    let rig = rig(&sender).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    for step in DEFAULT_SCHEDULE {
        let wait = rig.next_attempt().await.unwrap();
        assert!((step * 8 / 10..=step * 12 / 10).contains(&wait), "{wait} instead of {step}");
    }
    assert_eq!(rig.next_attempt().await, None);
    let delivery = rig.delivery().await;
    assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!("dead"), &json!(10)));
    assert_eq!(delivery["last_error"]["code"], "http_error");
    let requests = sender.requests();
    assert_eq!(requests.len(), 10);
    for request in &requests {
        assert_eq!(request.body, requests[0].body);
        assert_eq!(webhook_id(request), webhook_id(&requests[0]));
    }
}

#[tokio::test]
async fn a_delivery_that_succeeds_later_makes_its_integration_healthy() {
    let sender = Scripted::new(503, None);
    let rig = rig(&sender).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    assert_eq!(rig.health("hook").await["state"], "failing");
    sender.answer(200);
    rig.next_attempt().await;
    assert_eq!(rig.delivery().await["status"], "delivered");
    assert_eq!(rig.health("hook").await["state"], "ok");
}

#[tokio::test]
async fn a_receiver_that_asks_to_be_called_later_is_not_called_before_and_loses_no_attempt() {
    let sender = Scripted::new(429, Some("120"));
    let rig = rig(&sender).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    assert_eq!(sender.requests().len(), 1);
    // The whole queue waits.
    rig.submit("Bea").await;
    rig.server.clock.advance(119_000);
    rig.server.deliver().await;
    assert_eq!(sender.requests().len(), 1);
    sender.answer(200);
    rig.server.clock.advance(1_000);
    rig.server.deliver().await;
    assert_eq!(sender.requests().len(), 3);
    let delivered = rig.deliveries("status=delivered").await;
    assert_eq!(delivered.len(), 2);
    let attempts = rig.attempts(&delivered[1]).await;
    assert_eq!((&attempts[0]["result"], &attempts[1]["result"]), (&json!("paced"), &json!("delivered")));
}

#[tokio::test]
async fn an_integration_that_is_enabled_again_is_no_longer_paced() {
    let sender = Scripted::new(429, Some("120"));
    let rig = rig(&sender).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    rig.submit("Bea").await;
    sender.answer(200);
    let path = format!("/api/v1/forms/{}/integrations/hook", rig.form);
    for enabled in [false, true] {
        rig.server.clock.advance(1);
        let patch = json!({"enabled": enabled});
        rig.server.call(Method::PATCH, &path).json(patch).send().await.expect(200);
    }
    rig.server.deliver().await;
    // What was asked to come later still does.
    assert_eq!(rig.deliveries("status=delivered").await.len(), 1);
}

#[tokio::test]
async fn a_receiver_that_is_gone_pauses_its_integration_at_once() {
    let sender = Scripted::new(410, None);
    let rig = rig(&sender).await;
    rig.server.clock.advance(1_000);
    for name in ["Ada", "Bea", "Cleo"] {
        rig.submit(name).await;
    }
    rig.server.deliver().await;
    let asked = sender.requests().len();
    assert_eq!(rig.health("hook").await["state"], "paused");
    // What waits goes on being owed.
    rig.submit("Dora").await;
    rig.server.clock.advance(24 * HOUR);
    rig.server.deliver().await;
    assert_eq!(sender.requests().len(), asked);
    sender.answer(200);
    let path = format!("/api/v1/forms/{}/integrations/hook", rig.form);
    rig.server.call(Method::PATCH, path).json(json!({"enabled": true})).send().await.expect(200);
    // What died is revived in the background.
    while rig.deliveries("status=delivered").await.len() < 4 {
        rig.server.deliver().await;
    }
    assert_eq!(rig.health("hook").await["state"], "ok");
}

#[tokio::test]
async fn an_integration_that_fails_for_120_hours_is_paused() {
    let sender = Scripted::new(500, None);
    let rig = rig(&sender).await;
    for hour in 0..122 {
        if hour % 20 == 0 {
            rig.submit("Ada").await;
        }
        rig.server.deliver().await;
        let is_paused = rig.health("hook").await["state"] == "paused";
        if is_paused {
            assert!(hour >= 120, "paused after {hour} hours");
            let asked = sender.requests().len();
            rig.server.clock.advance(24 * HOUR);
            rig.server.deliver().await;
            assert_eq!(sender.requests().len(), asked);
            return;
        }
        rig.server.clock.advance(HOUR);
    }
    panic!("not paused");
}

#[tokio::test]
async fn each_status_has_its_effect_over_http() {
    for (status, expected, code) in [
        (200, "delivered", None),
        (201, "delivered", None),
        (204, "delivered", None),
        (301, "pending", Some("redirect")),
        (302, "pending", Some("redirect")),
        (307, "pending", Some("redirect")),
        (400, "pending", Some("http_error")),
        (404, "pending", Some("http_error")),
        (408, "pending", Some("http_error")),
        (410, "dead", Some("gone")),
        (425, "pending", Some("http_error")),
        (429, "pending", Some("rate_limited")),
        (500, "pending", Some("http_error")),
        (502, "pending", Some("http_error")),
        (503, "pending", Some("http_error")),
        (504, "pending", Some("http_error")),
    ] {
        let receiver = Receiver::start(move |_| Reply::Status(status)).await;
        let rig = Rig::over_http(SendLimits::default()).await;
        rig.webhook("hook", &receiver.url()).await;
        rig.submit("Ada").await;
        rig.server.deliver().await;
        let delivery = rig.delivery().await;
        assert_eq!(delivery["status"], expected, "{status}: {delivery}");
        assert_eq!(delivery["last_error"]["code"].as_str(), code, "{status}");
        assert_eq!(rig.attempts(&delivery).await[0]["http_status"], status);
        assert_eq!(receiver.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_panic_while_sending_ends_one_delivery_and_nothing_else() {
    struct Panicking;
    #[async_trait]
    impl Sender for Panicking {
        async fn send(&self, request: &HttpRequest) -> SendReport {
            let outcome = Outcome::Delivered;
            assert!(!String::from_utf8_lossy(&request.body).contains("Ada"), "a defect");
            SendReport::new(outcome, 1)
        }

        async fn call(&self, _: &HttpRequest, _: usize) -> Result<Answer, Outcome> {
            unreachable!("webhooks only")
        }
    }
    let rig = Rig::with_sender(Arc::new(Panicking)).await;
    rig.webhook("hook", "https://hook.example/").await;
    rig.submit("Ada").await;
    rig.submit("Bea").await;
    rig.server.deliver().await;
    let [bea, ada] = &rig.deliveries("").await[..] else { panic!("two submissions") };
    assert_eq!(bea["status"], "delivered");
    assert_eq!((&ada["status"], &ada["last_error"]["code"]), (&json!("dead"), &json!("internal_panic")));
}
