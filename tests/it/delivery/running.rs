//! The loop that carries out deliveries: it notices what is new, is fair to receivers, and stops in time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use forms::delivery::{Answer, SendLimits, Sender};
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::delivery::error_code::ErrorCode;
use forms::domain::integration::outbound::HttpRequest;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::receiver::{Received, Receiver, Reply};
use super::rig::Rig;
use crate::harness::Running;

fn start(rig: &Rig, grace: Duration) -> Running {
    Running::start(rig.server.app.deliveries.clone(), grace)
}

/// Reports that a request has begun, and answers when it is let go: the first as is said here, then with success.
#[derive(Default)]
struct Held {
    begun: Notify,
    release: Notify,
    first: Mutex<Option<Outcome>>,
}

#[async_trait]
impl Sender for Held {
    async fn send(&self, _request: &HttpRequest) -> SendReport {
        self.begun.notify_one();
        self.release.notified().await;
        let outcome = self.first.lock().unwrap().take().unwrap_or(Outcome::Delivered);
        SendReport { http_status: Some(200), ..SendReport::new(outcome, 1) }
    }

    async fn call(&self, _: &HttpRequest, _: usize) -> Result<Answer, Outcome> {
        unreachable!("webhooks only")
    }
}

#[tokio::test]
async fn a_receiver_that_never_answers_delays_no_other() {
    let black_hole = Receiver::start(|_| Reply::silence()).await;
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    let mut rig = Rig::over_http(SendLimits::default()).await;
    rig.webhook("hook", &black_hole.url()).await;
    for _ in 0..100 {
        rig.submit("lost").await;
    }
    rig.add_form().await;
    rig.webhook("hook", &receiver.url()).await;
    let running = start(&rig, Duration::ZERO);
    timeout(Running::TIMEOUT, black_hole.wait_for(1)).await.unwrap();
    for count in 1..=50 {
        rig.submit("Ada").await;
        timeout(Duration::from_secs(2), receiver.wait_for(count)).await.unwrap();
    }
    assert!(black_hole.requests().len() <= 2, "requests to a receiver that has not answered yet");
    running.stop().await;
}

#[tokio::test]
async fn a_busy_receiver_does_not_delay_a_new_integration_of_the_same_host() {
    let is_first = |received: &Received| received.head.starts_with("POST /first");
    let receiver =
        Receiver::start(move |received| match received.body.windows(4).any(|part| part == b"slow") {
            true if is_first(received) => Reply::silence(),
            _ => Reply::Status(200),
        });
    let receiver = receiver.await;
    let mut rig = Rig::over_http(SendLimits::default()).await;
    rig.webhook("hook", &format!("http://{}/first", receiver.address)).await;
    rig.submit("Ada").await;
    let running = start(&rig, Duration::ZERO);
    timeout(Running::TIMEOUT, receiver.wait_for(1)).await.unwrap();
    while rig.deliveries("status=delivered").await.is_empty() {
        tokio::task::yield_now().await;
    }
    // All that the receiver may be sent at the same time is.
    for _ in 0..50 {
        rig.submit("slow").await;
    }
    timeout(Running::TIMEOUT, receiver.wait_for(17)).await.unwrap();
    rig.add_form().await;
    rig.webhook("hook", &format!("http://{}/second", receiver.address)).await;
    rig.submit("Bea").await;
    let is_sent = || receiver.requests().iter().any(|received| received.head.starts_with("POST /second"));
    let sent = async {
        while !is_sent() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(5), sent).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn a_late_failure_at_the_old_settings_is_repeated_with_the_new_ones() {
    let gone = Outcome::Gone { error: ErrorCode::Gone.error("410 Gone") };
    let sender = Arc::new(Held { first: Mutex::new(Some(gone)), ..Held::default() });
    let rig = Rig::with_sender(sender.clone()).await;
    rig.webhook("hook", "https://hook.example/old").await;
    rig.submit("Ada").await;
    let running = start(&rig, Running::TIMEOUT);
    timeout(Running::TIMEOUT, sender.begun.notified()).await.unwrap();
    rig.change("hook", json!({"url": "https://hook.example/new"})).await;
    sender.release.notify_one();
    timeout(Running::TIMEOUT, sender.begun.notified()).await.unwrap();
    sender.release.notify_one();
    running.stop().await;
    assert_eq!(rig.delivery().await["status"], "delivered");
    assert_eq!(rig.health("hook").await["state"], "ok");
}

#[tokio::test]
async fn a_stop_waits_for_the_requests_in_progress() {
    let held = Arc::new(Held::default());
    let rig = Rig::with_sender(held.clone()).await;
    rig.webhook("hook", "https://hook.example/").await;
    rig.submit("Ada").await;
    let running = start(&rig, Running::TIMEOUT);
    timeout(Running::TIMEOUT, held.begun.notified()).await.unwrap();
    let stopping = tokio::spawn(running.stop());
    // Whether it comes before or after the stop, it is not begun.
    rig.server.submit(&rig.form, json!({"q1": "Bea"})).await;
    held.release.notify_one();
    timeout(Running::TIMEOUT, stopping).await.unwrap().unwrap();
    let statuses = rig.deliveries("").await.into_iter().map(|delivery| delivery["status"].clone());
    assert!(statuses.clone().any(|status| status == "delivered"), "{:?}", statuses.collect::<Vec<_>>());
    assert!(statuses.clone().all(|status| status != "in_flight"), "{:?}", statuses.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stop_cuts_off_requests_that_take_too_long_and_costs_no_attempt() {
    let held = Arc::new(Held::default());
    let rig = Rig::with_sender(held.clone()).await;
    rig.webhook("hook", "https://hook.example/").await;
    for _ in 0..5 {
        rig.submit("Ada").await;
    }
    let running = start(&rig, Duration::ZERO);
    timeout(Running::TIMEOUT, held.begun.notified()).await.unwrap();
    running.stop().await;
    let deliveries = rig.deliveries("").await;
    let is_as_before =
        |delivery: &serde_json::Value| delivery["status"] == "pending" && delivery["attempts"] == 0;
    assert!(deliveries.iter().all(is_as_before), "{deliveries:?}");
    assert_eq!(rig.attempts(&deliveries[4]).await, [] as [serde_json::Value; 0]);
    // It is due at once.
    assert_eq!(deliveries[4]["next_attempt_at"], "2026-11-20T09:00:00.000Z");
}

#[tokio::test]
async fn a_disabled_integration_waits_until_it_is_enabled() {
    let receiver = Receiver::start(|_| Reply::Status(200)).await;
    let rig = Rig::over_http(SendLimits::default()).await;
    rig.webhook("hook", &receiver.url()).await;
    rig.submit("Ada").await;
    rig.change("hook", json!({"enabled": false})).await;
    rig.server.deliver().await;
    assert_eq!(receiver.requests(), []);
    assert_eq!(rig.delivery().await["status"], "paused");
    let running = start(&rig, Running::TIMEOUT);
    rig.change("hook", json!({"enabled": true})).await;
    timeout(Running::TIMEOUT, receiver.wait_for(1)).await.unwrap();
    running.stop().await;
}
