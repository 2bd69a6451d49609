//! API keys: creation, listing, rotation, deletion and use; and deletion of workspaces.

use std::sync::Arc;
use std::time::Duration;

use forms::domain::form::admission::{IDEMPOTENCY_RECORD_MILLIS, IdempotencyRecord, Refusal};
use forms::domain::form::filter::FormFilter;
use forms::domain::workspace::{ApiKey, Rotation, Scope};
use forms::secret::KeyId;
use forms::store::{IdempotencyKey, IdempotentOperation, NewKey, NewWorkspace, StepResult, Store};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::{
    StoreFixture, at, create_draft, definition, form_id, idempotency_key, insert_workspace, key_id,
    new_draft, new_form, new_submission, new_workspace, published_form, submit, trash_form, workspace,
};

fn api_key(ws: u64, id: &str, millis: i64) -> ApiKey {
    ApiKey {
        id: key_id(id),
        workspace: workspace(ws),
        name: format!("key {id}"),
        hash: [7; 32],
        scopes: vec![Scope::Read, Scope::Submit],
        forms: Some(vec![form_id(3)]),
        created_at: at(millis),
        expires_at: Some(at(1_000_000)),
        ends_at: None,
    }
}

async fn insert(store: &dyn Store, key: ApiKey) -> ApiKey {
    match store.insert_key(NewKey { key, idempotency_key: None }).await.unwrap() {
        StepResult::Done(key) => key,
        other => panic!("{other:?}"),
    }
}

/// The ids of the keys of a workspace, with the times of their last use.
async fn list(store: &dyn Store, ws: u64) -> Vec<(KeyId, Option<i64>)> {
    let keys = store.list_keys(workspace(ws)).await.unwrap();
    assert!(keys.iter().all(|(key, _)| key.workspace == workspace(ws)));
    keys.iter().map(|(key, used)| (key.id, used.map(|used| used.millis() - at(0).millis()))).collect()
}

async fn rotate(
    store: &dyn Store,
    (ws, key): (u64, &str),
    (new, grace_millis): (&str, i64),
    idempotency_key: Option<IdempotencyKey>,
    millis: i64,
) -> StepResult<ApiKey> {
    let rotation = Rotation { id: key_id(new), hash: [8; 32], grace_millis };
    store.rotate_key(workspace(ws), key_id(key), rotation, idempotency_key, at(millis)).await.unwrap()
}

pub(super) async fn keys_are_listed_newest_first_within_their_workspace(fixture: &impl StoreFixture) {
    let store = fixture.open();
    for number in 1..=2 {
        insert_workspace(&*store, number, 0).await;
    }
    insert(&*store, api_key(1, "b", 2)).await;
    insert(&*store, api_key(1, "a", 3)).await;
    insert(&*store, api_key(2, "c", 4)).await;
    let (first, second) = ([("a", None), ("b", None), ("w1", None)], [("c", None), ("w2", None)]);
    let ids = |keys: &[(&str, Option<i64>)]| -> Vec<_> {
        keys.iter().map(|(id, used)| (key_id(id), *used)).collect()
    };
    assert_eq!((list(&*store, 1).await, list(&*store, 2).await), (ids(&first), ids(&second)));
    assert_eq!(list(&*store, 3).await, []);
    // Neither deleted nor rotated from another workspace.
    let step = store.delete_key(workspace(2), key_id("a"), at(5)).await.unwrap();
    assert!(matches!(step, StepResult::Missing));
    assert!(matches!(rotate(&*store, (2, "a"), ("d", 0), None, 5).await, StepResult::Missing));
    // An id is never given twice, and a key needs a workspace.
    let again = NewKey { key: api_key(2, "a", 5), idempotency_key: None };
    assert!(matches!(store.insert_key(again).await.unwrap(), StepResult::Recheck));
    let homeless = NewKey { key: api_key(9, "e", 5), idempotency_key: None };
    assert!(matches!(store.insert_key(homeless).await.unwrap(), StepResult::Missing));
    assert_eq!(list(&*store, 1).await, ids(&first));
    let step = store.delete_key(workspace(1), key_id("a"), at(5)).await.unwrap();
    assert!(matches!(step, StepResult::Done(())));
    assert_eq!(store.find_key(key_id("a")).await.unwrap(), None);
    store.close().await.unwrap();
    drop(store);
    fixture.remove_index();
    let store = fixture.open();
    assert_eq!((list(&*store, 1).await, list(&*store, 2).await), (ids(&first[1..]), ids(&second)));
    assert_eq!(store.find_key(key_id("b")).await.unwrap().as_deref(), Some(&api_key(1, "b", 2)));
}

pub(super) async fn a_rotated_key_is_replaced_and_may_stay_valid_for_a_while(fixture: &impl StoreFixture) {
    let store = fixture.open();
    insert_workspace(&*store, 1, 0).await;
    let old = insert(&*store, api_key(1, "a", 1)).await;
    let StepResult::Done(new) = rotate(&*store, (1, "a"), ("b", 50), None, 10).await else { panic!() };
    let expected = ApiKey { id: key_id("b"), hash: [8; 32], created_at: at(10), ..old.clone() };
    assert_eq!(new, expected);
    assert_eq!(store.find_key(new.id).await.unwrap().as_deref(), Some(&expected));
    let ending = ApiKey { ends_at: Some(at(60)), ..old };
    assert_eq!(store.find_key(ending.id).await.unwrap().as_deref(), Some(&ending));
    assert!(matches!(rotate(&*store, (1, "b"), ("c", 0), None, 20).await, StepResult::Done(_)));
    assert_eq!(store.find_key(new.id).await.unwrap(), None);
    let StepResult::Done(last) = rotate(&*store, (1, "c"), ("d", i64::MAX), None, 30).await else { panic!() };
    let third = store.find_key(key_id("c")).await.unwrap().unwrap();
    assert_eq!((third.end(), last.end()), (Some(at(1_000_000)), Some(at(1_000_000))));
    assert!(matches!(rotate(&*store, (1, "b"), ("e", 0), None, 40).await, StepResult::Missing));
    assert!(matches!(rotate(&*store, (1, "d"), ("c", 0), None, 40).await, StepResult::Recheck));
    assert_eq!(list(&*store, 1).await.len(), 4);
}

pub(super) async fn a_repeated_creation_of_a_key_is_replayed(fixture: &impl StoreFixture) {
    let store = fixture.open();
    insert_workspace(&*store, 1, 0).await;
    let attempt = |body| idempotency_key(IdempotentOperation::CreateKey, 1, body);
    let new = |id, body, millis| NewKey { key: api_key(1, id, millis), idempotency_key: attempt(body) };
    let found = async |body, millis| store.find_record(&attempt(body).unwrap(), at(millis)).await.unwrap();
    assert!(found(1, 0).await.is_none());
    assert!(matches!(store.insert_key(new("a", 1, 0)).await.unwrap(), StepResult::Done(_)));
    let shown = api_key(1, "a", 0).without_hash();
    let is_shown = |step: &StepResult<ApiKey>| matches!(step, StepResult::Replayed(key) if *key == shown);
    let decode = |record: IdempotencyRecord| serde_json::from_slice::<ApiKey>(&record.extra).unwrap();
    assert_eq!(found(1, 5).await.map(|found| found.map(decode)), Some(Ok(shown.clone())));
    let rotation = idempotency_key(IdempotentOperation::RotateKey(key_id("a")), 1, 1);
    let rotated = rotate(&*store, (1, "a"), ("r", 0), rotation, 5).await;
    assert!(matches!(rotated, StepResult::Done(_)));
    // Although the key is gone since.
    assert!(is_shown(&store.insert_key(new("b", 1, 6)).await.unwrap()));
    let rotated = rotate(&*store, (1, "a"), ("s", 0), rotation, 6).await;
    assert!(matches!(rotated, StepResult::Replayed(key) if key.id == key_id("r") && key.hash == [0; 32]));
    let reused = |step| matches!(step, StepResult::Refused(Refusal::KeyReused));
    assert!(matches!(found(2, 5).await, Some(Err(Refusal::KeyReused))));
    assert!(reused(store.insert_key(new("b", 2, 6)).await.unwrap()));
    assert_eq!(list(&*store, 1).await.len(), 2);
    let later = IDEMPOTENCY_RECORD_MILLIS;
    assert!(found(1, later).await.is_none());
    assert!(matches!(store.insert_key(new("b", 1, later)).await.unwrap(), StepResult::Done(_)));
}

pub(super) async fn a_repeated_creation_of_a_workspace_is_replayed(fixture: &impl StoreFixture) {
    let store = fixture.open();
    insert_workspace(&*store, 1, 0).await;
    let new = |number, body| NewWorkspace {
        idempotency_key: idempotency_key(IdempotentOperation::CreateWorkspace, 1, body),
        ..new_workspace(number, 5)
    };
    let StepResult::Done(made) = store.insert_workspace(new(2, 1)).await.unwrap() else { panic!() };
    let step = store.delete_workspace(workspace(2), workspace(1)).await.unwrap();
    assert!(matches!(step, StepResult::Done(())));
    let replayed = store.insert_workspace(new(3, 1)).await.unwrap();
    assert!(matches!(replayed, StepResult::Replayed(workspace) if workspace == made));
    let reused = store.insert_workspace(new(3, 2)).await.unwrap();
    assert!(matches!(reused, StepResult::Refused(Refusal::KeyReused)));
    assert_eq!(store.list_workspaces().await.unwrap().len(), 1);
}

pub(super) async fn uses_are_recorded_for_existing_keys(fixture: &impl StoreFixture) {
    let store = fixture.open();
    insert_workspace(&*store, 1, 0).await;
    insert(&*store, api_key(1, "a", 1)).await;
    let cached = store.find_key(key_id("a")).await.unwrap().unwrap();
    let uses = [("a", 60), ("w1", 120), ("none", 60)];
    let uses = uses.map(|(key, millis)| (key_id(key), at(millis))).to_vec();
    store.record_key_uses(uses).await.unwrap();
    let expected = [(key_id("a"), Some(60)), (key_id("w1"), Some(120))];
    assert_eq!(list(&*store, 1).await, expected);
    let found = store.find_key(key_id("a")).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&cached, &found), "a use made cached keys outdated");
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert_eq!(list(&*store, 1).await, expected);
    // A key that gets the id of another one later was never used.
    assert!(matches!(
        store.delete_key(workspace(1), key_id("a"), at(5)).await.unwrap(),
        StepResult::Done(())
    ));
    for id in ["a", "none"] {
        insert(&*store, api_key(1, id, 2)).await;
    }
    assert_eq!(list(&*store, 1).await[..2], [(key_id("none"), None), (key_id("a"), None)]);
}

pub(super) async fn a_deleted_workspace_is_gone_at_once_and_purged_after_a_restart(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    for number in 1..=2 {
        insert_workspace(&*store, number, 0).await;
    }
    let form = published_form(&*store, 11).await;
    for number in 0..350 {
        submit(&*store, form, "{}", number).await;
    }
    let slug = definition(r#"{"title":"Tea","slug":"tea"}"#);
    assert!(matches!(store.insert_form(new_form(1, 12, slug, 0)).await.unwrap(), StepResult::Done(_)));
    trash_form(&*store, create_draft(&*store, 1, 13, 0).await, 1).await;
    // More than one slice of the purge erases.
    for number in 100..250 {
        create_draft(&*store, 1, number, 0).await;
    }
    let kept = create_draft(&*store, 2, 14, 0).await;
    let delete = async |store: &dyn Store, number, own| {
        store.delete_workspace(workspace(number), workspace(own)).await.unwrap()
    };
    // Only from another workspace, which must exist.
    for own in [1, 9] {
        let refused = delete(&*store, 1, own).await;
        assert!(matches!(refused, StepResult::Refused(Refusal::WorkspaceInUse)), "{refused:?}");
    }
    assert!(matches!(delete(&*store, 9, 1).await, StepResult::Missing));
    assert!(matches!(delete(&*store, 1, 2).await, StepResult::Done(())));
    let assert_gone = async |store: &dyn Store| {
        assert!(matches!(delete(store, 1, 2).await, StepResult::Missing));
        assert_eq!(store.find_workspace(workspace(1)).await.unwrap(), None);
        assert_eq!(store.find_key(key_id("w1")).await.unwrap(), None);
        assert_eq!(list(store, 1).await, []);
        // A request that was received before adds nothing.
        assert!(matches!(store.insert_form(new_draft(1, 20, 0)).await.unwrap(), StepResult::Missing));
        let key = NewKey { key: api_key(1, "z", 0), idempotency_key: None };
        assert!(matches!(store.insert_key(key).await.unwrap(), StepResult::Missing));
        assert!(matches!(store.insert_workspace(new_workspace(1, 0)).await.unwrap(), StepResult::Recheck));
    };
    assert_gone(&*store).await;
    // Stopped before the purge is complete, and without its index.
    store.close().await.unwrap();
    drop(store);
    fixture.remove_index();
    let store = fixture.open();
    assert_gone(&*store).await;
    let gone = async {
        // Until the rows of a form are erased, no form can have its id.
        for number in (11..=13).chain(100..250) {
            while matches!(store.insert_form(new_draft(2, number, 0)).await.unwrap(), StepResult::Recheck) {
                yield_now().await;
            }
        }
        while store.find_slug(workspace(1), "tea").await.unwrap().is_some() {
            yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), gone).await.unwrap();
    for trashed in [false, true] {
        let filter = FormFilter { trashed, ..FormFilter::default() };
        assert!(store.list_forms(workspace(1), &filter, None, 10).await.unwrap().rows.is_empty());
    }
    assert!(store.find_form(workspace(1).form(form)).await.unwrap().is_none());
    let sent = store.accept_submission(new_submission(form, "{}"), at(1)).await.unwrap();
    assert!(matches!(sent, StepResult::Missing));
    assert_eq!(store.count_submissions(workspace(2).form(form)).await.unwrap(), 0);
    assert!(store.find_form(workspace(2).form(kept)).await.unwrap().is_some());
    assert_eq!(list(&*store, 2).await.len(), 1);
}
