//! Queues of one database that several servers carry out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use forms::clock::SystemClock;
use forms::delivery::{DeliveryService, DeliverySettings};
use forms::domain::delivery::attempt::Outcome;
use forms::domain::delivery::{Delivery, DeliveryStatus};
use forms::store::{ConfirmationPermit, QueueId, Room, Store};
use futures_util::future::join_all;
use tokio::time::sleep;

use super::deliveries::*;
use super::delivery_queue::sheet;
use super::{Postgres, SeededRandom, StoreFixture, at};
use crate::harness::postgres::connect;
use crate::harness::{RecordingSender, Running, VAULT, header};

async fn claim_as(store: &dyn Store, owner: u64, queue: QueueId, millis: i64, limit: usize) -> Vec<Delivery> {
    let mut room = |other, _: &_, _: &_| if other == queue { Room::For(limit) } else { Room::Full };
    let claims = store.claim_due(owner, at(millis), &mut room).await.unwrap();
    claims.batches.into_iter().flat_map(|batch| batch.deliveries).collect()
}

pub(super) async fn a_delivery_is_claimed_by_one_of_two_servers(fixture: &Postgres) {
    let servers = [fixture.open().await, fixture.open().await];
    let (form, queues) = form_with(&*servers[0], 1, &["one"]).await;
    submit_many(&*servers[0], form, 200, 5).await;
    let mut claimed = Vec::new();
    while claimed.len() < 200 {
        let both = (1..).zip(&servers).map(|(owner, store)| claim_as(&**store, owner, queues[0], 5_000, 7));
        claimed.extend(join_all(both).await.into_iter().flatten().map(|one| one.id()));
        // A server that has come too late waits for a second, unless it is woken.
        join_all(servers.iter().map(|store| store.bring_forward(at(5_000)))).await;
    }
    let distinct: BTreeSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), distinct.len()), (200, 200));
}

/// Ends the leases of all claims, past the store.
async fn end_leases(fixture: &Postgres) {
    let ended = "UPDATE deliveries SET leased_until = 1 WHERE leased_until IS NOT NULL";
    connect(&fixture.0).await.execute(ended, &[]).await.unwrap();
}

pub(super) async fn what_a_dead_server_has_claimed_is_claimed_after_its_lease(fixture: &Postgres) {
    let store = fixture.open().await;
    let (form, queues) = form_with(&*store, 1, &["one"]).await;
    submit_many(&*store, form, 3, 5).await;
    let dead = claim_as(&*store, 1, queues[0], 10, 9).await;
    assert_eq!(claim_as(&*store, 2, queues[0], 10, 9).await, []);
    end_leases(fixture).await;
    assert_eq!(status(&*store, &dead[0]).await, DeliveryStatus::Pending);
    let again = claim_as(&*store, 2, queues[0], 10, 9).await;
    assert!(again.iter().map(Delivery::id).eq(dead.iter().map(Delivery::id)));
    assert!(again.iter().all(|one| one.may_be_sent && one.attempts == 0));
    // It was only slow: the first outcome counts, and the other one is of the same attempt.
    finish(&*store, queues[0], dead[..1].to_vec(), Outcome::Delivered, 11).await;
    finish(&*store, queues[0], again.clone(), failure(), 12).await;
    let found = find(&*store, &again[0]).await;
    assert_eq!((found.status, found.attempts), (DeliveryStatus::Delivered, 1));
    assert_eq!(find(&*store, &again[1]).await.attempts, 1);
    finish(&*store, queues[0], dead, Outcome::Delivered, 13).await;
    assert_eq!(status(&*store, &again[1]).await, DeliveryStatus::Pending);
    assert_counters(&*store, form, at(14)).await;
}

pub(super) async fn a_delivery_in_order_waits_while_another_server_attempts_the_first(fixture: &Postgres) {
    let servers = [fixture.open().await, fixture.open().await];
    let (form, _) = form_with(&*servers[0], 1, &["one"]).await;
    let queue = set_integrations(&*servers[0], form, &[sheet()], 2).await[0];
    let ids = submit_many(&*servers[0], form, 3, 5).await;
    let first = claim_as(&*servers[0], 1, queue, 10, 1).await;
    assert_eq!(claim_as(&*servers[1], 2, queue, 10, 9).await, []);
    end_leases(fixture).await;
    let all = claim_as(&*servers[1], 2, queue, 2_000, 9).await;
    assert!(all.iter().map(|one| one.event).eq(completed(&ids)));
    assert!(all[0].may_be_sent && !all[1].may_be_sent);
    finish(&*servers[0], queue, first, Outcome::Delivered, 2_000).await;
    assert_eq!(claim_as(&*servers[0], 1, queue, 2_000, 9).await, [], "others are in flight");
}

pub(super) async fn deliveries_are_made_once_by_several_runners(fixture: &Postgres) {
    let store = fixture.open().await;
    let (form, _) = form_with(&*store, 1, &["one", "two"]).await;
    let sender = Arc::new(RecordingSender::default());
    let mut runners = Vec::new();
    for seed in 0..3 {
        let random = Arc::new(SeededRandom::new(100 + seed));
        let (store, clock) = (fixture.open().await, Arc::new(SystemClock));
        let settings = DeliverySettings::default();
        let service = DeliveryService::new(store, VAULT.clone(), sender.clone(), clock, random, settings);
        runners.push(Running::start(Arc::new(service), Running::TIMEOUT));
    }
    let ids = submit_many(&*store, form, 100, 5).await;
    let mut seen = Vec::new();
    while totals(&*store, form).await.iter().any(|queue| queue.pending > 0) {
        sleep(Duration::from_millis(10)).await;
    }
    join_all(runners.into_iter().map(Running::stop)).await;
    for request in sender.take() {
        seen.push((request.url.to_string(), header(&request, "webhook-id").unwrap().to_owned()));
    }
    let distinct: BTreeSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len()), (2 * ids.len(), 2 * ids.len()));
    assert!(list_all(&*store).await.iter().all(|one| one.attempts == 1));
}

pub(super) async fn a_form_permits_as_many_confirmations_from_several_servers(fixture: &Postgres) {
    let servers = [fixture.open().await, fixture.open().await];
    let (form, queues) = form_with(&*servers[0], 1, &["one"]).await;
    submit_many(&*servers[0], form, 1, 5).await;
    let one = claim(&*servers[0], queues[0], 10, 1).await.remove(0);
    let mut granted = 0;
    for round in 0..30 {
        let permits = (0..20).map(|place| {
            let mailbox = 20 * round + place;
            servers[place as usize % 2].permit_confirmation(&one, mailbox, at(10))
        });
        let permits = join_all(permits).await;
        granted +=
            permits.into_iter().filter(|permit| matches!(permit, Ok(ConfirmationPermit::Granted))).count();
    }
    assert_eq!(granted, 500);
}
