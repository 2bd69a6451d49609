//! Copies between the stores.

use forms::domain::delivery::DeliveryStatus;
use forms::domain::delivery::attempt::Outcome;
use forms::store::{CopiedKind, DeliveryFilter, IdempotentOperation, Store, copy, is_copy_of};

use super::deliveries::*;
use super::*;
use crate::harness::postgres::cluster;

/// Fills a store with everything that a copy has to take along.
async fn fill(store: &dyn Store) -> (FormId, Vec<SubmissionId>) {
    let key = forms::secret::KeyText::draw(&SeededRandom::new(3));
    forms::app::bootstrap(store, &key, &SeededRandom::new(4), at(0)).await.unwrap();
    let (form, queues) = form_with(store, 1, &["one", "two"]).await;
    let ids = submit_many(store, form, 300, 5).await;
    done(edit_submission(store, form, ids[0], 0, r#"{"q1":"é \u0041"}"#, 6).await);
    done(edit_submission(store, form, ids[0], 1, "{}", 7).await);
    done(trash_submission(store, form, ids[1], 8).await);
    quarantine(store, form, "{}", 9).await;
    let claimed = claim(store, queues[0], 20, 2).await;
    finish(store, queues[0], claimed[..1].to_vec(), Outcome::Delivered, 21).await;
    finish(store, queues[0], claimed[1..].to_vec(), failure(), 22).await;
    let trashed = published_form(store, 2).await;
    submit(store, trashed, "{}", 30).await;
    trash_form(store, trashed, 31).await;
    let other = published_form(store, 3).await;
    let operation = IdempotentOperation::CreateSubmission(other);
    let new =
        NewSubmission { idempotency_key: idempotency_key(operation, 7, 8), ..new_submission(other, "{}") };
    done(store.accept_submission(new, at(40)).await.unwrap());
    (form, ids)
}

async fn copy_all(from: &dyn Store, to: &dyn Store) -> Vec<CopiedKind> {
    copy(from, to, |_| ()).await.unwrap()
}

fn changes(kinds: &[CopiedKind]) -> u64 {
    kinds.iter().map(|kind| kind.written + kind.deleted).sum()
}

async fn check(from: &dyn Store, to: &dyn Store) {
    let (form, ids) = fill(from).await;
    let first = copy_all(from, to).await;
    assert!(first.iter().all(|kind| kind.written == kind.count && kind.count > 0), "{first:?}");
    let second = copy_all(from, to).await;
    assert_eq!(changes(&second), 0, "{second:?}");
    assert!(first.iter().zip(&second).all(|(one, other)| one.checksum == other.checksum));
    assert!(is_copy_of(from, to).await.unwrap());
    assert_eq!(super::list_all(to, form, 70).await, super::list_all(from, form, 70).await);
    assert_eq!(count(to, form).await, 299);
    // What has changed since is copied alone.
    done(trash_submission(from, form, ids[2], 50).await);
    done(restore_submission(from, form, ids[1], 51).await);
    done(purge_submission(from, form, ids[3]).await);
    let erased: Vec<_> =
        list_deliveries(from, &DeliveryFilter { submission: Some(ids[3]), ..DeliveryFilter::default() }, 9)
            .await;
    for one in erased.iter().filter(|one| !one.event_type.is_deletion()) {
        wait_until(async || status(from, one).await == DeliveryStatus::Canceled).await;
    }
    let late = submit_with(from, form, 60, true).await;
    let third = copy_all(from, to).await;
    assert!((4..60).contains(&changes(&third)), "{third:?}");
    assert_eq!(changes(&copy_all(from, to).await), 0);
    assert_eq!((count(to, form).await, count(from, form).await), (299, 299));
    // It is a store like any other.
    assert!(submit_with(to, form, 61, true).await > late);
    assert_eq!(to.verify().await.unwrap().damage, []);
    let id = workspace(1).form(form).submission(ids[0]);
    assert_eq!(to.list_history(id, None, 9).await.unwrap(), from.list_history(id, None, 9).await.unwrap());
    assert!(done(to.restore_form(workspace(1).form(form_id(2)), None, at(70)).await.unwrap()).responses == 1);
}

#[tokio::test]
async fn a_copy_into_a_database_is_equal_and_repeated_copies_only_write_what_differs() {
    let (Some(cluster), Some(sled)) = (cluster(), sled().await) else { return };
    let postgres = Postgres(cluster.new_schema().await);
    check(&*sled.open().await, &*postgres.open().await).await;
}

#[tokio::test]
async fn a_copy_out_of_a_database_is_equal_and_repeated_copies_only_write_what_differs() {
    let (Some(cluster), Some(sled)) = (cluster(), sled().await) else { return };
    let postgres = Postgres(cluster.new_schema().await);
    check(&*postgres.open().await, &*sled.open().await).await;
}

#[tokio::test]
async fn another_store_is_no_copy() {
    let (folder, other_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (pool, random) = (CpuPool::default(), Arc::new(SeededRandom::new(2)));
    let open = SledStore::open(folder.path(), EngineOptions::default(), pool, random, Arc::new(|_| ()));
    let (one, other) = (open.unwrap(), open_store(other_folder.path()));
    fill(&one).await;
    assert!(is_copy_of(&one, &other).await.unwrap(), "it is empty");
    fill(&other).await;
    assert!(!is_copy_of(&one, &other).await.unwrap());
}
