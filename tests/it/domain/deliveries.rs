//! Attempts of deliveries: the schedule, paced waits, redeliveries and pauses, on a simulated clock.

use forms::clock::DAY_MILLIS;
use forms::domain::delivery::attempt::{
    Attempt, AttemptResult, DEFAULT_SCHEDULE, MAX_PACED_WAIT, Outcome, SendReport,
};
use forms::domain::delivery::classify::{HttpAnswer, classify_webhook};
use forms::domain::delivery::error_code::ErrorCode;
use forms::domain::delivery::health::Health;
use forms::domain::delivery::{Delivery, DeliveryError, DeliveryStatus};

use super::*;

const HOUR: i64 = 3_600_000;

/// A delivery of an event at 0.
fn new_delivery() -> Delivery {
    Delivery::of_completed(FormId::ZERO, SubmissionId::first_of(0), 1)
}

fn report(outcome: Outcome) -> SendReport {
    SendReport::new(outcome, 12)
}

fn error() -> DeliveryError {
    DeliveryError { http_status: Some(500), ..ErrorCode::HttpError.error("no") }
}

fn failure(is_slow: bool) -> SendReport {
    report(Outcome::Retryable { error: error(), is_slow })
}

fn paced(wait_ms: i64) -> SendReport {
    report(Outcome::Paced { wait_ms, error: error() })
}

/// Attempts `delivery` at `now` with the outcome in `report`.
fn attempt(delivery: &Delivery, report: &SendReport, jitter: f64, now: Timestamp) -> Delivery {
    let finished = delivery.finish_attempt(report, &DEFAULT_SCHEDULE, jitter, now);
    assert_eq!(finished.attempts, delivery.attempts + 1);
    finished
}

/// The invariants I2 to I4 of a delivery and its log.
fn assert_invariants(delivery: &Delivery, log: &[Attempt]) {
    let is_due = matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::InFlight);
    assert_eq!(delivery.next_attempt_at.is_some(), is_due, "{delivery:?}");
    assert_eq!(delivery.finished_at.is_some(), delivery.status.is_final(), "{delivery:?}");
    let numbers: Vec<_> = log.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (1..=delivery.attempts).collect::<Vec<_>>());
    let is_delivered = log.iter().any(|attempt| attempt.result == AttemptResult::Delivered);
    assert_eq!(is_delivered, delivery.status == DeliveryStatus::Delivered);
}

#[test]
fn the_schedule_has_ten_attempts_within_76_hours_and_jitter() {
    for jitter in [0.8, 1.0, 1.2] {
        let (mut delivery, mut now) = (new_delivery(), at(0));
        for wait in DEFAULT_SCHEDULE {
            delivery = attempt(&delivery, &failure(false), jitter, now);
            let expected = (wait as f64 * jitter).round() as i64;
            assert_eq!(delivery.next_attempt_at, Some(at(now.millis() + expected)));
            assert_eq!(delivery.status, DeliveryStatus::Pending);
            now = delivery.next_attempt_at.unwrap();
        }
        let total = (75 * HOUR + 35 * 60_000 + 5_000) as f64;
        assert!((now.millis() as f64 - total * jitter).abs() < 10.0);
        delivery = attempt(&delivery, &failure(false), jitter, now);
        assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Dead, 10));
        assert_eq!((delivery.next_attempt_at, delivery.finished_at), (None, Some(now)));
        assert_eq!(delivery.last_error, Some(error()));
    }
    let only = new_delivery().finish_attempt(&failure(false), &[], 1.0, at(1));
    assert_eq!(only.status, DeliveryStatus::Dead, "without a schedule one attempt is made");
}

#[test]
fn overload_waits_at_least_a_minute() {
    let slow = attempt(&new_delivery(), &failure(true), 0.8, at(0));
    assert_eq!(slow.next_attempt_at, Some(at(60_000)));
    let later = Delivery { attempts: 1, ..new_delivery() };
    assert_eq!(attempt(&later, &failure(true), 1.0, at(0)).next_attempt_at, Some(at(300_000)));
}

#[test]
fn a_paced_answer_costs_no_attempt_until_there_are_too_many() {
    let mut delivery = new_delivery();
    for number in 1..=200 {
        delivery = attempt(&delivery, &paced(2_000), 0.8, at(1_000));
        assert_eq!((delivery.uncounted, delivery.attempts), (number, number));
        assert_eq!(delivery.next_attempt_at, Some(at(3_000)));
    }
    delivery = attempt(&delivery, &paced(2_000), 1.0, at(1_000));
    assert_eq!(
        (delivery.uncounted, delivery.next_attempt_at),
        (200, Some(at(61_000))),
        "counts as a failure"
    );
    delivery = attempt(&delivery, &failure(false), 1.0, at(0));
    assert_eq!(delivery.next_attempt_at, Some(at(300_000)), "the second failure");
    let last = attempt(&new_delivery(), &paced(9 * HOUR), 1.0, at(0));
    assert_eq!(last.next_attempt_at, Some(at(HOUR)), "a wait is at most an hour");
    let old = attempt(&new_delivery(), &paced(HOUR), 1.0, at(7 * DAY_MILLIS));
    assert_eq!((old.uncounted, old.next_attempt_at), (0, Some(at(7 * DAY_MILLIS + HOUR))));
}

#[test]
fn no_wait_is_longer_than_its_own_length_whatever_the_clock_did() {
    let failed = attempt(&new_delivery(), &failure(false), 1.0, at(DAY_MILLIS));
    assert_eq!((failed.next_attempt_at, failed.wait_ms), (Some(at(DAY_MILLIS + 5_000)), 5_000));
    assert_eq!(failed.due_at(at(DAY_MILLIS)), failed.next_attempt_at);
    assert_eq!(failed.due_at(at(DAY_MILLIS - 1)), Some(at(DAY_MILLIS - 1)), "the clock was set back");
    assert_eq!(failed.due_at(at(0)), Some(at(0)));
}

#[test]
fn invariants_hold_through_any_sequence_of_outcomes() {
    let mut state = 7_u64;
    let mut next = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..2_000 {
        let (mut delivery, mut log, mut now) = (new_delivery(), Vec::new(), at(0));
        while !delivery.status.is_final() {
            now = now.max(delivery.next_attempt_at.unwrap());
            let begun = delivery;
            let outcome = match next(11) {
                0 => Outcome::Delivered,
                1..=4 => {
                    Outcome::Paced { wait_ms: i64::try_from(next(5_000_000)).unwrap() - 100, error: error() }
                }
                5 => Outcome::Permanent { error: error() },
                _ => Outcome::Retryable { error: error(), is_slow: next(2) == 0 },
            };
            let report = report(outcome);
            log.push(begun.log_attempt(now, &report));
            delivery = begun.finish_attempt(&report, &DEFAULT_SCHEDULE, 0.8 + next(41) as f64 / 100.0, now);
            assert_eq!(delivery.last_error.is_none(), delivery.status == DeliveryStatus::Delivered);
            assert_invariants(&delivery, &log);
            assert!(delivery.next_attempt_at.is_none_or(|next| next >= now), "time goes backwards");
        }
        let failed = log.iter().filter(|attempt| attempt.result == AttemptResult::Failed).count();
        assert!(failed <= DEFAULT_SCHEDULE.len() + 1, "{failed} failures");
    }
}

/// Health after a first failed attempt of each of `count` deliveries, the last at `now`.
fn failing(count: u32, now: Timestamp) -> Health {
    let begun = attempt(&new_delivery(), &failure(false), 1.0, at(0));
    let earlier =
        (1..count).fold(Health::default(), |health, _| health.after(&begun, &failure(false), at(0)));
    earlier.after(&begun, &failure(false), now)
}

#[test]
fn an_integration_is_paused_after_120_hours_and_5_failed_deliveries() {
    assert_eq!(failing(4, at(119 * HOUR)).paused, None);
    assert_eq!(failing(5, at(119 * HOUR)).paused, None);
    assert_eq!(failing(4, at(120 * HOUR)).paused, None);
    let paused = failing(5, at(120 * HOUR));
    assert_eq!(paused.paused.as_deref(), Some("no delivery has succeeded since 1970-01-01T00:00:00.000Z"));
    assert_eq!((paused.failing_since, paused.failures), (Some(at(0)), 5));
    assert_eq!(paused.resumed(), Health::default());

    // Attempts of one delivery are one failure.
    let (mut health, mut one) = (Health::default(), new_delivery());
    for number in 0..10 {
        one = attempt(&one, &failure(false), 1.0, at(0));
        health = health.after(&one, &failure(false), at(number * 20 * HOUR));
    }
    assert_eq!((health.failures, health.paused), (1, None));
}

#[test]
fn success_resets_the_health_and_waits_leave_it() {
    let begun = attempt(&new_delivery(), &failure(false), 1.0, at(0));
    let failing = failing(3, at(HOUR));
    assert_eq!(failing.after(&begun, &paced(1), at(500 * HOUR)), failing);
    let healthy = failing.after(&begun, &report(Outcome::Delivered), at(2 * HOUR));
    assert_eq!(healthy, Health { last_success_at: Some(at(2 * HOUR)), ..Health::default() });
}

#[test]
fn a_receiver_that_is_gone_is_not_called_again() {
    let begun = attempt(&new_delivery(), &failure(false), 1.0, at(0));
    let gone = Health::default().after(&begun, &report(Outcome::Gone { error: error() }), at(HOUR));
    assert_eq!(gone.paused.as_deref(), Some("no"));
    assert_eq!(gone.failing_since, Some(at(HOUR)));
    // An attempt that was in flight meanwhile does not end the pause.
    assert!(gone.after(&begun, &report(Outcome::Delivered), at(HOUR)).paused.is_some());
}

/// The class of a webhook's answer at 2026-11-20 09:00 UTC.
fn class(status: u16, retry_after: Option<&str>) -> String {
    let headers: Vec<_> = retry_after.map(|text| ("retry-after", text.to_owned())).into_iter().collect();
    let now = Timestamp::parse("2026-11-20T09:00:00Z").unwrap();
    let answer = HttpAnswer { status, headers: &headers, body: "", now };
    match classify_webhook(&answer).outcome {
        Outcome::Delivered => "delivered".to_owned(),
        Outcome::Paced { wait_ms, .. } => format!("paced {wait_ms}"),
        Outcome::Retryable { error, is_slow } => {
            assert_eq!(error.http_status, Some(status));
            format!("{}{}", error.code, if is_slow { " slow" } else { "" })
        }
        Outcome::Gone { .. } => "gone".to_owned(),
        Outcome::Permanent { error } => panic!("{error:?}"),
    }
}

#[test]
fn each_status_has_its_class() {
    for (statuses, expected) in [
        (&[200, 201, 202, 204, 299][..], "delivered"),
        (&[301, 302, 304, 307, 308], "redirect"),
        (&[100, 199, 400, 401, 403, 404, 408, 413, 425, 451, 500, 501, 503, 505, 600, 999], "http_error"),
        (&[502, 504, 520, 522, 524, 529], "http_error slow"),
        (&[410], "gone"),
        (&[429], "paced 60000"),
    ] {
        for status in statuses {
            assert_eq!(class(*status, None), expected, "{status}");
        }
    }
    assert_eq!(class(503, Some("120")), "paced 120000");
    assert_eq!(class(503, Some("soon")), "http_error");
    assert_eq!(class(500, Some("120")), "http_error");
    assert_eq!(class(410, Some("120")), "gone");
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    for (text, expected) in [
        ("0", 1_000),
        (" 90 ", 90_000),
        ("1.5", 1_500),
        ("86400", MAX_PACED_WAIT),
        ("99999999999999999999999999", MAX_PACED_WAIT),
        ("Fri, 20 Nov 2026 09:01:30 GMT", 90_000),
        ("Fri, 20 Nov 2026 08:00:00 GMT", 1_000),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_PACED_WAIT),
    ] {
        assert_eq!(class(429, Some(text)), format!("paced {expected}"), "{text}");
    }
    for text in "-5|+5|NaN|inf|1e3|1.2.3|.||tomorrow|Fri, 32 Nov 2026 09:01:30 GMT".split('|') {
        assert_eq!(class(429, Some(text)), "paced 60000", "{text}");
    }
}
