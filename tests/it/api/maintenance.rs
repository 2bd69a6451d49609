//! Maintenance does not erase data right after the clock has jumped forwards.

use forms::app::MaintenanceOutcome;

use crate::harness::prelude::*;
use crate::store::wait_until;

const DAYS: u32 = 30;

/// Starts a server whose maintenance has run, with a form in the trash since [`NOW`].
async fn with_trash() -> Server {
    let server = Server::start().await;
    assert_eq!(server.app.maintain(DAYS).await.unwrap(), MaintenanceOutcome::Erased(0));
    let form = server.draft_form(json!([])).await;
    server.call(Method::DELETE, format!("/api/v1/forms/{form}")).send().await;
    server
}

async fn count_trashed(server: &Server) -> usize {
    server.read("/api/v1/forms?trashed=true").await["forms"].as_array().unwrap().len()
}

#[tokio::test]
async fn after_a_clock_jump_nothing_is_erased_for_24_hours() {
    let mut server = with_trash().await;
    for hour in 0..24 {
        server.clock.set(&format!("2026-12-25T{hour:02}:00:00.000Z"));
        let maintained = server.app.maintain(DAYS).await.unwrap();
        assert_eq!(maintained, MaintenanceOutcome::Waiting { millis: (24 - hour) * 3_600_000 });
        assert_eq!(count_trashed(&server).await, 1, "hour {hour}");
        if hour % 5 == 0 {
            // Restarts do not shorten the wait.
            server = server.reopened().await;
            assert_eq!(server.app.maintain(DAYS).await.unwrap(), maintained);
        }
    }
    server.clock.set("2026-12-26T00:00:00.000Z");
    assert_eq!(server.app.maintain(DAYS).await.unwrap(), MaintenanceOutcome::Erased(1));
    assert_eq!(count_trashed(&server).await, 0);
}

#[tokio::test]
async fn a_clock_that_was_wrong_and_is_corrected_erases_nothing() {
    let server = with_trash().await;
    server.clock.set("2036-01-01T00:00:00.000Z");
    assert!(matches!(server.app.maintain(DAYS).await.unwrap(), MaintenanceOutcome::Waiting { .. }));
    server.clock.set("2026-11-20T10:00:00.000Z");
    assert!(matches!(server.app.maintain(DAYS).await.unwrap(), MaintenanceOutcome::Waiting { .. }));
    assert_eq!(count_trashed(&server).await, 1);
}

#[tokio::test]
async fn a_server_that_runs_every_day_empties_its_trash_on_time() {
    let server = with_trash().await;
    for day in 0..30 {
        let (month, day) = if day < 10 { (11, 21 + day) } else { (12, day - 9) };
        server.clock.set(&format!("2026-{month}-{day:02}T08:59:00.000Z"));
        assert_eq!(server.app.maintain(DAYS).await.unwrap(), MaintenanceOutcome::Erased(0));
    }
    server.clock.set("2026-12-20T09:00:00.001Z");
    assert_eq!(server.app.maintain(DAYS).await.unwrap(), MaintenanceOutcome::Erased(1));
}

#[tokio::test]
async fn expired_idempotency_keys_are_erased_while_the_trash_waits() {
    let server = with_trash().await;
    let is_replayed = async || {
        let call = server.post("/api/v1/forms", json!({"title": "Once"})).header("idempotency-key", "1");
        call.send().await.header("idempotency-replayed").is_some()
    };
    assert_eq!([is_replayed().await, is_replayed().await], [false, true]);
    server.clock.set("2026-12-25T00:00:00.000Z");
    assert!(matches!(server.app.maintain(DAYS).await.unwrap(), MaintenanceOutcome::Waiting { .. }));
    // With the clock back, the request is replayed as long as its key is stored.
    server.clock.set(NOW);
    wait_until(async || !is_replayed().await).await;
}
