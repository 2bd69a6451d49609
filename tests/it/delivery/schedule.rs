//! What is attempted when, and when an integration is paused: on a clock that the test sets.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use forms::clock::{Clock, SystemClock};
use forms::delivery::{Answer, Sender};
use forms::domain::delivery::attempt::{DEFAULT_SCHEDULE, Outcome, SendReport};
use forms::domain::delivery::classify::HttpAnswer;
use forms::domain::integration::outbound::HttpRequest;
use serde_json::json;

use super::rig::Rig;

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
async fn a_failed_delivery_is_tried_again_by_schedule_dies_and_can_be_sent_again() {
    let sender = Scripted::new(500, None);
    let rig = rig(&sender).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    for step in DEFAULT_SCHEDULE {
        let wait = rig.next_attempt().await.unwrap();
        assert!((step * 8 / 10..=step * 12 / 10).contains(&wait), "{wait} instead of {step}");
    }
    assert_eq!(rig.next_attempt().await, None);
    let dead = rig.expect_failure("dead", "http_error").await;
    assert_eq!((&dead["attempts"], &rig.health("hook").await["state"]), (&json!(10), &json!("failing")));
    sender.answer(200);
    rig.redeliver(&dead).await.expect(200);
    rig.server.deliver().await;
    assert_eq!(rig.delivery().await["status"], "delivered");
    assert_eq!(rig.health("hook").await["state"], "ok");
    let attempts = rig.attempts(&dead).await;
    assert!(attempts.iter().map(|attempt| attempt["number"].as_u64().unwrap()).eq(1..=11), "{attempts:?}");
    let requests = sender.requests();
    assert_eq!(requests.len(), 11);
    for request in &requests {
        assert_eq!(request.body, requests[0].body);
        assert_eq!(webhook_id(request), webhook_id(&requests[0]));
    }
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
    rig.deliver_after(119_000).await;
    assert_eq!(sender.requests().len(), 1);
    sender.answer(200);
    rig.deliver_after(1_000).await;
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
    for enabled in [false, true] {
        rig.server.clock.advance(1);
        rig.change("hook", json!({"enabled": enabled})).await;
    }
    rig.server.deliver().await;
    // What was asked to come later still does.
    assert_eq!(rig.deliveries("status=delivered").await.len(), 1);
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
