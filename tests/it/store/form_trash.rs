//! Trashing, restoring, listing and purging of forms.

use forms::domain::form::Form;
use forms::domain::form::admission::Refusal;
use forms::domain::form::filter::FormFilter;
use forms::domain::revision::ExpectedRevision;
use forms::store::{IdempotentOperation, StepResult};

use super::{
    StoreFixture, at, create_draft, current, form_id, idempotency_key, insert_workspace, list_newest,
    new_draft, new_submission, patch, published_form, submit, trash_form, update_form, workspace,
};

pub(super) async fn a_trashed_form_is_not_found(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let id = submit(&*store, form, "{}", 0).await;
    assert!(matches!(
        store.trash_form(workspace(1).form(form), ExpectedRevision::Any, at(5)).await.unwrap(),
        StepResult::Done(())
    ));
    assert!(matches!(
        store.trash_form(workspace(1).form(form), ExpectedRevision::Any, at(6)).await.unwrap(),
        StepResult::Missing
    ));
    assert!(store.find_form(workspace(1).form(form)).await.unwrap().is_none());
    assert!(store.list_forms(workspace(1), &FormFilter::default(), None, 10).await.unwrap().rows.is_empty());
    assert!(store.find_submission(workspace(1).form(form).submission(id)).await.unwrap().is_none());
    assert!(list_newest(&*store, workspace(1), form, None, 10).await.is_none());
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 1);
    let sent = store.accept_submission(new_submission(form, "{}"), at(0)).await.unwrap();
    assert!(matches!(sent, StepResult::Missing));
    let edit =
        update_form(&*store, workspace(1), form, patch(r#"{"title":"x"}"#), ExpectedRevision::Any, at(0))
            .await;
    assert!(matches!(edit, StepResult::Missing));
    assert!(
        matches!(
            store.purge_form(workspace(1).form(form), ExpectedRevision::Any).await.unwrap(),
            StepResult::Done(())
        ),
        "a form in the trash was not purged"
    );
}

pub(super) async fn a_restored_form_has_all_its_data(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let id = submit(&*store, form, "{}", 0).await;
    let before = current(&*store, workspace(1), form).await.unwrap();
    let restore = |key, millis| {
        store.restore_form(
            workspace(1).form(form),
            idempotency_key(IdempotentOperation::RestoreForm(form), key, 5),
            at(millis),
        )
    };
    assert!(matches!(restore(1, 1).await.unwrap(), StepResult::Refused(Refusal::NotInTrash)));
    trash_form(&*store, form, 5).await;
    let StepResult::Done(back) = restore(2, 6).await.unwrap() else { panic!("not restored") };
    assert_eq!(*back.form, Form { revision: 4, ..Form::clone(&before.form) });
    assert!(matches!(restore(2, 7).await.unwrap(), StepResult::Replayed(again) if again.form == back.form));
    assert!(matches!(restore(3, 7).await.unwrap(), StepResult::Refused(Refusal::NotInTrash)));
    let other = store.restore_form(workspace(2).form(form), None, at(7)).await.unwrap();
    assert!(matches!(other, StepResult::Missing));
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    let found = current(&*store, workspace(1), form).await.unwrap();
    assert_eq!((found.form, found.version.number), (back.form, before.version.number));
    assert!(store.find_submission(workspace(1).form(form).submission(id)).await.unwrap().is_some());
    let listed = store.list_forms(workspace(1), &FormFilter::default(), None, 9).await.unwrap();
    assert_eq!(listed.rows.iter().map(|(form, count)| (form.id, *count)).collect::<Vec<_>>(), [(form, 1)]);
    let in_trash = FormFilter { trashed: true, ..FormFilter::default() };
    assert_eq!(store.count_forms(workspace(1), &in_trash).await.unwrap(), Some(0));
    assert!(matches!(
        store.purge_form(workspace(1).form(form), ExpectedRevision::Any).await.unwrap(),
        StepResult::Done(())
    ));
    assert!(matches!(
        store.restore_form(workspace(1).form(form), None, at(9)).await.unwrap(),
        StepResult::Missing
    ));
}

pub(super) async fn forms_in_the_trash_are_listed_and_erased_by_time_of_deletion(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    for number in 1..=2 {
        insert_workspace(&*store, number, 0).await;
    }
    for (form, deleted) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        create_draft(&*store, 1, form, form as i64).await;
        trash_form(&*store, form_id(form), deleted).await;
    }
    let kept = create_draft(&*store, 1, 5, 0).await;
    let foreign = create_draft(&*store, 2, 6, 0).await;
    store.trash_form(workspace(2).form(foreign), ExpectedRevision::Any, at(1)).await.unwrap();
    let in_trash = FormFilter { trashed: true, ..FormFilter::default() };
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_forms(workspace(1), &in_trash, after, 2).await.unwrap().rows;
        let Some((last, _)) = page.last() else { break };
        after = Some((last.deleted_at.unwrap(), last.id));
        listed.extend(page.iter().map(|(form, _)| form.id));
    }
    assert_eq!(listed, [1, 3, 4, 2].map(form_id));
    assert_eq!(store.count_forms(workspace(1), &in_trash).await.unwrap(), Some(4));
    assert_eq!(store.empty_trash(at(20)).await.unwrap(), 3, "the trash of every workspace is emptied");
    assert_eq!(store.empty_trash(at(20)).await.unwrap(), 0);
    let left = store.list_forms(workspace(1), &in_trash, None, 9).await.unwrap();
    assert_eq!(left.rows.iter().map(|(form, _)| form.id).collect::<Vec<_>>(), [1, 3].map(form_id));
    for gone in [2, 4] {
        let step = store.restore_form(workspace(1).form(form_id(gone)), None, at(40)).await.unwrap();
        assert!(matches!(step, StepResult::Missing));
    }
    assert!(store.find_form(workspace(1).form(kept)).await.unwrap().is_some());
}

pub(super) async fn a_purged_form_cannot_be_restored(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let kept = published_form(&*store, 12).await;
    for number in 0..350 {
        submit(&*store, form, "{}", number).await;
    }
    let id = submit(&*store, kept, "{}", 0).await;
    assert!(matches!(
        store.purge_form(workspace(1).form(form), ExpectedRevision::Any).await.unwrap(),
        StepResult::Done(())
    ));
    assert!(matches!(
        store.purge_form(workspace(1).form(form), ExpectedRevision::Any).await.unwrap(),
        StepResult::Missing
    ));
    assert!(store.find_form(workspace(1).form(form)).await.unwrap().is_none());
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert!(store.find_form(workspace(1).form(form)).await.unwrap().is_none());
    // A background job erases the rest, also after a restart; until it is done the id cannot be used again.
    let gone = async {
        while matches!(store.insert_form(new_draft(1, 11, 0)).await.unwrap(), StepResult::Recheck) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), gone).await.unwrap();
    assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 0);
    assert!(list_newest(&*store, workspace(1), form, None, 10).await.unwrap().rows.is_empty());
    assert!(store.find_submission(workspace(1).form(kept).submission(id)).await.unwrap().is_some());
}
