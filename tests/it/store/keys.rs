//! Bootstrap and the closed store; API keys: creation, listing, rotation, deletion and use; and deletion of workspaces.

use std::sync::Arc;

use forms::domain::form::admission::Refusal;
use forms::domain::form::filter::FormFilter;
use forms::domain::workspace::{ApiKey, Scope, Workspace};
use forms::secret::{KeyId, KeyText};
use forms::store::{NewKey, StepResult, Store, StoreHealth};

use super::{
    SeededRandom, StoreFixture, at, create_draft, done, find_form, form_id, insert_workspace, key_id,
    missing, new_draft, new_submission, new_workspace, published_form, submit, wait_until, workspace,
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

async fn insert_step(store: &dyn Store, key: ApiKey) -> StepResult<ApiKey> {
    store.insert_key(NewKey { key, idempotency_key: None }).await.unwrap()
}

async fn insert(store: &dyn Store, key: ApiKey) -> ApiKey {
    done(insert_step(store, key).await)
}

/// The ids of the keys of a workspace, with the times of their last use.
async fn list(store: &dyn Store, ws: u64) -> Vec<(KeyId, Option<i64>)> {
    let keys = store.list_keys(workspace(ws)).await.unwrap();
    assert!(keys.iter().all(|(key, _)| key.workspace == workspace(ws)));
    keys.iter().map(|(key, used)| (key.id, used.map(|used| used.millis() - at(0).millis()))).collect()
}

pub(super) async fn an_empty_store_is_bootstrapped_once(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    assert_eq!(store.health(), StoreHealth::Ready);
    let key = KeyText::draw(&SeededRandom::new(3));
    let first = Workspace { id: workspace(1), name: "default".into(), created_at: at(0) };
    let second = Workspace { id: workspace(2), name: "other".into(), created_at: at(0) };
    let api_key = |ws: &Workspace| ApiKey {
        scopes: vec![Scope::Admin, Scope::Operator],
        ..ApiKey::admin(ws.id, key.id(), key.hash(), at(0))
    };
    assert!(store.bootstrap(first.clone(), api_key(&first)).await.unwrap());
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
    assert_eq!(store.find_workspace(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.find_workspace(second.id).await.unwrap(), None);
    let signing_key = store.signing_key().await.unwrap();
    let store = fixture.reopen(store).await;
    assert_eq!(store.signing_key().await.unwrap(), signing_key);
    assert_eq!(store.find_key(key.id()).await.unwrap().as_deref(), Some(&api_key(&first)));
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
}

pub(super) async fn keys_are_listed_newest_first_within_their_workspace(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
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
    // Not deleted from another workspace.
    missing(store.delete_key(workspace(2), key_id("a"), at(5)).await.unwrap());
    // An id is never given twice, and a key needs a workspace.
    assert!(matches!(insert_step(&*store, api_key(2, "a", 5)).await, StepResult::Recheck));
    missing(insert_step(&*store, api_key(9, "e", 5)).await);
    assert_eq!(list(&*store, 1).await, ids(&first));
    done(store.delete_key(workspace(1), key_id("a"), at(5)).await.unwrap());
    assert_eq!(store.find_key(key_id("a")).await.unwrap(), None);
    let store = fixture.rebuild(store).await;
    assert_eq!((list(&*store, 1).await, list(&*store, 2).await), (ids(&first[1..]), ids(&second)));
    assert_eq!(store.find_key(key_id("b")).await.unwrap().as_deref(), Some(&api_key(1, "b", 2)));
}

pub(super) async fn uses_are_recorded_for_existing_keys(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
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
    let store = fixture.reopen(store).await;
    assert_eq!(list(&*store, 1).await, expected);
    // A key that gets the id of another one later was never used.
    done(store.delete_key(workspace(1), key_id("a"), at(5)).await.unwrap());
    for id in ["a", "none"] {
        insert(&*store, api_key(1, id, 2)).await;
    }
    assert_eq!(list(&*store, 1).await[..2], [(key_id("none"), None), (key_id("a"), None)]);
}

pub(super) async fn a_deleted_workspace_is_gone_at_once(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    for number in 1..=2 {
        insert_workspace(&*store, number, 0).await;
    }
    let form = published_form(&*store, 11).await;
    submit(&*store, form, "{}", 0).await;
    let kept = create_draft(&*store, 2, 14, 0).await;
    let delete = async |store: &dyn Store, number, own| {
        store.delete_workspace(workspace(number), workspace(own)).await.unwrap()
    };
    // Only from another workspace, which must exist.
    for own in [1, 9] {
        let refused = delete(&*store, 1, own).await;
        assert!(matches!(refused, StepResult::Refused(Refusal::WorkspaceInUse)), "{refused:?}");
    }
    missing(delete(&*store, 9, 1).await);
    done(delete(&*store, 1, 2).await);
    let assert_gone = async |store: &dyn Store| {
        missing(delete(store, 1, 2).await);
        assert_eq!(store.find_workspace(workspace(1)).await.unwrap(), None);
        assert_eq!(store.find_key(key_id("w1")).await.unwrap(), None);
        assert_eq!(list(store, 1).await, []);
        // A request that was received before adds nothing.
        missing(store.insert_form(new_draft(1, 20, 0)).await.unwrap());
        missing(insert_step(store, api_key(1, "z", 0)).await);
        assert!(matches!(store.insert_workspace(new_workspace(1, 0)).await.unwrap(), StepResult::Recheck));
    };
    assert_gone(&*store).await;
    // Stopped before the purge is complete, and without its index.
    let store = fixture.rebuild(store).await;
    assert_gone(&*store).await;
    // Until the rows of a form are erased, no form can have its id.
    wait_until(async || {
        !matches!(store.insert_form(new_draft(2, 11, 0)).await.unwrap(), StepResult::Recheck)
    })
    .await;
    let all = store.list_forms(workspace(1), &FormFilter::default(), None, 10).await.unwrap();
    assert!(all.rows.is_empty() && find_form(&*store, form).await.is_none());
    missing(store.accept_submission(new_submission(form, "{}"), at(1)).await.unwrap());
    assert_eq!(store.count_submissions(workspace(2).form(form)).await.unwrap(), 0);
    assert!(store.find_form(workspace(2).form(kept)).await.unwrap().is_some());
    assert_eq!(list(&*store, 2).await.len(), 1);
}
