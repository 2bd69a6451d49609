//! Workspaces: bootstrap, API keys, isolation; and the closed store.

use forms::domain::form::filter::FormFilter;
use forms::domain::revision::ExpectedRevision;
use forms::domain::workspace::{ApiKey, Scope, Workspace};
use forms::secret::KeyText;
use forms::store::{NewKey, NewSubmission, StepResult, StoreHealth};

use super::{
    SeededRandom, StoreFixture, at, form_id, insert_workspace, key_id, list_newest, new_submission, patch,
    published_form, submit, update_form, workspace,
};

pub(super) async fn an_empty_store_is_bootstrapped_once(fixture: &impl StoreFixture) {
    let store = fixture.open();
    assert_eq!(store.health(), StoreHealth::Ready);
    let key = KeyText::draw(&SeededRandom::new(3));
    let first = Workspace { id: workspace(1), name: "default".into(), created_at: at(0) };
    let second = Workspace { id: workspace(2), name: "other".into(), created_at: at(0) };
    let api_key = |ws: &Workspace| ApiKey {
        id: key.id(),
        workspace: ws.id,
        name: "operator".into(),
        hash: key.hash(),
        scopes: vec![Scope::Admin, Scope::Operator],
        forms: None,
        created_at: at(0),
        expires_at: None,
        ends_at: None,
    };
    assert!(store.bootstrap(first.clone(), api_key(&first)).await.unwrap());
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
    assert_eq!(store.find_workspace(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.find_workspace(second.id).await.unwrap(), None);
    let signing_key = store.signing_key().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert_eq!(store.signing_key().await.unwrap(), signing_key);
    assert_eq!(store.find_key(key.id()).await.unwrap().as_deref(), Some(&api_key(&first)));
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
}

pub(super) async fn keys_are_found_by_id(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let first = insert_workspace(&*store, 5, 2).await;
    let key = ApiKey {
        id: key_id("abc"),
        workspace: workspace(5),
        name: "ci".into(),
        hash: [9; 32],
        scopes: vec![Scope::Submit],
        forms: Some(vec![form_id(7)]),
        created_at: at(7),
        expires_at: Some(at(8)),
        ends_at: None,
    };
    let step = store.insert_key(NewKey { key: key.clone(), idempotency_key: None }).await.unwrap();
    assert!(matches!(step, StepResult::Done(_)), "{step:?}");
    assert_eq!(store.find_key(key.id).await.unwrap().as_deref(), Some(&key));
    assert_eq!(store.find_key(key_id("abd")).await.unwrap(), None);
    assert_eq!(store.find_workspace(workspace(5)).await.unwrap(), Some(first));
}

pub(super) async fn a_workspace_is_not_visible_from_another(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let id = submit(&*store, form, "{}", 0).await;
    let other = workspace(2);
    assert!(store.find_form(other.form(form)).await.unwrap().is_none());
    assert!(store.list_forms(other, &FormFilter::default(), None, 10).await.unwrap().rows.is_empty());
    let edit =
        update_form(&*store, other, form, patch(r#"{"title":"x"}"#), ExpectedRevision::Any, at(0)).await;
    assert!(matches!(edit, StepResult::Missing));
    assert!(matches!(
        store.trash_form(other.form(form), ExpectedRevision::Any, at(0)).await.unwrap(),
        StepResult::Missing
    ));
    assert!(matches!(
        store.purge_form(other.form(form), ExpectedRevision::Any).await.unwrap(),
        StepResult::Missing
    ));
    let elsewhere = NewSubmission { form: other.form(form), ..new_submission(form, "{}") };
    let sent = store.accept_submission(elsewhere, at(0)).await.unwrap();
    assert!(matches!(sent, StepResult::Missing));
    assert_eq!(store.count_submissions(other.form(form)).await.unwrap(), 0);
    assert!(store.find_submission(other.form(form).submission(id)).await.unwrap().is_none());
    assert!(list_newest(&*store, other, form, None, 10).await.is_none());
    assert!(store.find_submission(workspace(1).form(form).submission(id)).await.unwrap().is_some());
}

pub(super) async fn a_closed_store_refuses_requests(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    store.close().await.unwrap();
    assert!(matches!(store.health(), StoreHealth::Stopped(_)));
    assert!(store.accept_submission(new_submission(form, "{}"), at(0)).await.is_err());
}
