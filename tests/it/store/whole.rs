//! The store as a whole: its first workspace, its keys, the borders between workspaces, its end.

use forms::domain::form::filter::FormFilter;
use forms::domain::revision::ExpectedRevision;
use forms::domain::workspace::{ApiKey, Scope, Workspace};
use forms::secret::KeyText;
use forms::store::{Health, StepResult};

use super::{
    Bench, Scrambled, answers, at, change, key_id, newest, published, submit, update_form, workspace,
};

pub(super) async fn an_empty_store_takes_its_first_workspace_once(bench: &impl Bench) {
    let store = bench.open();
    assert_eq!(store.health(), Health::Ready);
    let key = KeyText::draw(&Scrambled::new(3));
    let first = Workspace { id: workspace(1), name: "default".into(), created_at: at(0) };
    let second = Workspace { id: workspace(2), name: "other".into(), created_at: at(0) };
    let api_key = |ws: &Workspace| ApiKey {
        id: key.id(),
        workspace: ws.id,
        name: "operator".into(),
        hash: key.hash(),
        scopes: vec![Scope::Admin, Scope::Operator],
        created_at: at(0),
        expires_at: None,
    };
    assert!(store.bootstrap(first.clone(), api_key(&first)).await.unwrap());
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
    assert_eq!(store.find_workspace(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.find_workspace(second.id).await.unwrap(), None);
    let signing_key = store.signing_key().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(store.signing_key().await.unwrap(), signing_key);
    assert_eq!(store.find_key(key.id()).await.unwrap().as_deref(), Some(&api_key(&first)));
    assert!(!store.bootstrap(second.clone(), api_key(&second)).await.unwrap());
}

pub(super) async fn keys_are_found_by_id(bench: &impl Bench) {
    let store = bench.open();
    let key = ApiKey {
        id: key_id("abc"),
        workspace: workspace(5),
        name: "ci".into(),
        hash: [9; 32],
        scopes: vec![Scope::Submit],
        created_at: at(7),
        expires_at: Some(at(8)),
    };
    store.insert_key(key.clone()).await.unwrap();
    assert_eq!(store.find_key(key.id).await.unwrap().as_deref(), Some(&key));
    assert_eq!(store.find_key(key_id("abd")).await.unwrap(), None);
    let other = Workspace { id: workspace(5), name: "five".into(), created_at: at(2) };
    store.insert_workspace(other.clone()).await.unwrap();
    assert_eq!(store.find_workspace(workspace(5)).await.unwrap(), Some(other));
}

pub(super) async fn nothing_of_a_workspace_is_seen_from_another(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let id = submit(&*store, form, "{}", 0).await;
    let other = workspace(2);
    assert!(store.find_form(other, form).await.unwrap().is_none());
    assert!(store.list_forms(other, &FormFilter::default(), None, 10).await.unwrap().rows.is_empty());
    let edit =
        update_form(&*store, other, form, change(r#"{"title":"x"}"#), ExpectedRevision::Any, at(0)).await;
    assert!(matches!(edit, StepResult::Missing));
    assert!(matches!(
        store.trash_form(other, form, ExpectedRevision::Any, at(0)).await.unwrap(),
        StepResult::Missing
    ));
    assert!(matches!(
        store.purge_form(other, form, ExpectedRevision::Any).await.unwrap(),
        StepResult::Missing
    ));
    let sent = store.accept_submission(other, answers(form, "{}"), at(0)).await.unwrap();
    assert!(matches!(sent, StepResult::Missing));
    assert_eq!(store.count_submissions(other, form).await.unwrap(), 0);
    assert!(store.find_submission(other, form, id).await.unwrap().is_none());
    assert!(newest(&*store, other, form, None, 10).await.is_none());
    assert!(store.find_submission(workspace(1), form, id).await.unwrap().is_some());
}

pub(super) async fn a_closed_store_serves_no_more(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    store.close().await.unwrap();
    assert!(matches!(store.health(), Health::Stopped(_)));
    assert!(store.accept_submission(workspace(1), answers(form, "{}"), at(0)).await.is_err());
}
