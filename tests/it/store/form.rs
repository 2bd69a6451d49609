//! Forms: creation, lists, changes, slugs and versions.

use std::sync::Arc;

use forms::clock::DAY_MILLIS;
use forms::cpu_pool::CpuPool;
use forms::domain::form::admission::{AcceptingReason, Refusal};
use forms::domain::form::filter::FormFilter;
use forms::domain::form::{Form, FormStatus};
use forms::domain::revision::ExpectedRevision;
use forms::id::DeliveryId;
use forms::store::{FormUpdate, IdempotentOperation, StepResult, Store, VersionCache};
use serde_json::Value;

use super::{
    NOON, StoreFixture, at, create_draft, current, definition, form_id, idempotency_key, new_form, patch,
    publish, sample_definition, submit, trash_form, update_form, workspace,
};

pub(super) async fn a_form_is_stored_with_every_field(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let id = create_draft(&*store, 1, 11, 5).await;
    let before = current(&*store, workspace(1), id).await.unwrap();
    assert_eq!((before.form.title.as_str(), before.form.description.as_deref()), ("Lunch", Some("Soup?")));
    assert_eq!((before.form.status, before.form.revision, before.form.version), (FormStatus::Draft, 1, 1));
    assert_eq!((before.form.created_at, before.form.updated_at), (at(5), at(5)));
    assert_eq!((before.version.questions[0].id.as_deref(), before.version.number), (Some("q1"), 1));
    store.close().await.unwrap();
    drop(store);
    let after = current(&*fixture.open(), workspace(1), id).await.unwrap();
    assert_eq!(after.form, before.form);
    assert_eq!(after.version.created_at, before.version.created_at);
    let canonical = |version| serde_json::to_string(version).unwrap();
    assert_eq!(canonical(&after.version.questions), canonical(&before.version.questions));
}

pub(super) async fn a_stored_form_that_is_no_longer_valid_is_read(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let mut old = sample_definition();
    let text = "a\u{7}\u{9b}";
    old.title = text.to_owned();
    for question in &mut old.questions {
        (question.title, question.description) = (text.to_owned(), Some(text.to_owned()));
    }
    let asked = old.questions.len();
    assert!(matches!(store.insert_form(new_form(1, 11, old, 0)).await.unwrap(), StepResult::Done(_)));
    store.close().await.unwrap();
    drop(store);
    let read = current(&*fixture.open(), workspace(1), form_id(11)).await.unwrap();
    assert_eq!((read.form.title.as_str(), read.version.questions.len()), (text, asked));
    for question in &read.version.questions {
        assert_eq!((question.title.as_str(), question.description.as_deref()), (text, Some(text)));
    }
}

pub(super) async fn forms_are_paged_newest_first(fixture: &impl StoreFixture) {
    let store = fixture.open();
    // Two forms are created in the same millisecond, and the ids are not in order of creation.
    for (form, millis) in [(3, 10), (9, 20), (1, 20), (5, 30)] {
        create_draft(&*store, 1, form, millis).await;
    }
    submit_twice(&*store).await;
    let all = store.list_forms(workspace(1), &FormFilter::default(), None, 10).await.unwrap().rows;
    let listed: Vec<_> = all.iter().map(|(form, count)| (form.id, *count)).collect();
    assert_eq!(listed, [(form_id(5), 2), (form_id(9), 0), (form_id(1), 0), (form_id(3), 0)]);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_forms(workspace(1), &FormFilter::default(), after, 1).await.unwrap().rows;
        let Some((form, _)) = page.first() else { break };
        after = Some((form.created_at, form.id));
        paged.push(form.id);
    }
    assert_eq!(paged, [form_id(5), form_id(9), form_id(1), form_id(3)]);
}

async fn submit_twice(store: &dyn Store) {
    publish(store, 1, form_id(5)).await;
    submit(store, form_id(5), "{}", 40).await;
    submit(store, form_id(5), "{}", 41).await;
}

pub(super) async fn a_change_is_visible_at_once_and_after_reopening(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let id = create_draft(&*store, 1, 11, 0).await;
    let edit =
        patch(r#"{"title":"Dinner","questions":[{"type":"rating","title":"Stars"}],"status":"published"}"#);
    let StepResult::Done(changed) =
        update_form(&*store, workspace(1), id, edit.clone(), ExpectedRevision::Any, at(9)).await
    else {
        panic!("not changed")
    };
    assert_eq!((changed.form.revision, changed.form.version, changed.form.updated_at), (2, 2, at(9)));
    assert_eq!(changed.version.questions[0].id.as_deref(), Some("q2"));
    let found = current(&*store, workspace(1), id).await.unwrap();
    assert_eq!((found.form, found.version.number), (changed.form.clone(), 2));
    let again = patch(r#"{"title":"Dinner","status":"published"}"#);
    let StepResult::Done(same) =
        update_form(&*store, workspace(1), id, again, ExpectedRevision::Any, at(99)).await
    else {
        panic!("not the same")
    };
    assert_eq!(same.form, changed.form);
    let retired = patch(r#"{"questions":[{"id":"q1","type":"rating","title":"Stars"}]}"#);
    let refused = update_form(&*store, workspace(1), id, retired, ExpectedRevision::Any, at(99)).await;
    assert!(matches!(refused, StepResult::Refused(Refusal::InvalidDefinition(_))));
    let emptied = patch(r#"{"title":"Supper","questions":[]}"#);
    let refused = update_form(&*store, workspace(1), id, emptied, ExpectedRevision::Any, at(99)).await;
    assert!(matches!(refused, StepResult::Refused(Refusal::NoQuestions)));
    let missing = update_form(&*store, workspace(1), form_id(12), edit, ExpectedRevision::Any, at(9)).await;
    assert!(matches!(missing, StepResult::Missing));
    store.close().await.unwrap();
    drop(store);
    assert_eq!(fixture.open().find_form(workspace(1).form(id)).await.unwrap().unwrap(), changed.form);
}

pub(super) async fn the_id_of_a_removed_question_comes_back_only_with_its_type(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = create_draft(&*store, 1, 1, 0).await;
    let question = |id: &str, kind: &str| {
        patch(&format!(r#"{{"questions":[{{"id":"{id}","type":"{kind}","title":"a"}}]}}"#))
    };
    for id in ["second", "third"] {
        let change = question(id, "email");
        let step = update_form(&*store, workspace(1), form, change, ExpectedRevision::Any, at(1)).await;
        assert!(matches!(step, StepResult::Done(_)), "{step:?}");
    }
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    let change = question("second", "rating");
    let step = update_form(&*store, workspace(1), form, change, ExpectedRevision::Any, at(2)).await;
    assert!(matches!(step, StepResult::Refused(Refusal::InvalidDefinition(_))), "{step:?}");
    let change = question("second", "email");
    let step = update_form(&*store, workspace(1), form, change, ExpectedRevision::Any, at(2)).await;
    assert!(matches!(step, StepResult::Done(_)), "{step:?}");
    let unnamed = patch(r#"{"questions":[{"type":"email","title":"a"}]}"#);
    let StepResult::Done(changed) =
        update_form(&*store, workspace(1), form, unnamed, ExpectedRevision::Any, at(3)).await
    else {
        panic!("the new question was refused")
    };
    assert_eq!(changed.version.questions[0].id.as_deref(), Some("q2"));
}

pub(super) async fn a_change_applies_only_to_the_expected_revision(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let id = create_draft(&*store, 1, 11, 0).await;
    let rename = |title: &str| patch(&format!(r#"{{"title":"{title}"}}"#));
    let seen = |revisions: &[u64]| ExpectedRevision::OneOf(revisions.to_vec());
    // Of many changes that expect the same revision, one succeeds.
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..16 {
        let (store, change, expected) = (Arc::clone(&store), rename(&format!("{number}")), seen(&[1]));
        tasks.spawn(async move { update_form(&*store, workspace(1), id, change, expected, at(1)).await });
    }
    let steps = tasks.join_all().await;
    assert_eq!(steps.iter().filter(|step| matches!(step, StepResult::Done(_))).count(), 1);
    assert_eq!(
        steps.iter().filter(|step| matches!(step, StepResult::Refused(Refusal::PreconditionFailed))).count(),
        15
    );
    let same = update_form(&*store, workspace(1), id, rename("new"), seen(&[2, 9]), at(1)).await;
    assert!(matches!(same, StepResult::Done(current) if current.form.revision == 3));
    for stale in [seen(&[2]), seen(&[])] {
        let trashed = store.trash_form(workspace(1).form(id), stale.clone(), at(2)).await.unwrap();
        assert!(matches!(trashed, StepResult::Refused(Refusal::PreconditionFailed)));
        let purged = store.purge_form(workspace(1).form(id), stale).await.unwrap();
        assert!(matches!(purged, StepResult::Refused(Refusal::PreconditionFailed)));
    }
    assert!(store.find_form(workspace(1).form(id)).await.unwrap().is_some());
    let trashed = store.trash_form(workspace(1).form(id), seen(&[3]), at(2)).await.unwrap();
    assert!(matches!(trashed, StepResult::Done(())));
    let purged = store.purge_form(workspace(1).form(id), seen(&[4])).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
}

pub(super) async fn a_form_update_replaces_only_the_revision_it_was_computed_from(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    let id = create_draft(&*store, 1, 11, 0).await;
    let form = store.find_form(workspace(1).form(id)).await.unwrap().unwrap();
    let update = |title: &str| FormUpdate {
        seen_revision: form.revision,
        now: at(0),
        resumed: Vec::new(),
        form: Form { title: title.to_owned(), revision: form.revision + 1, ..Form::clone(&form) },
        version: None,
        retired: None,
        response: Some((
            idempotency_key(IdempotentOperation::CreateIntegration(id), 1, 5).unwrap(),
            format!("{title:?}"),
        )),
    };
    let replace = async |title| store.replace_form(workspace(1), update(title)).await.unwrap();
    assert!(matches!(replace("first").await, StepResult::Done(())));
    assert!(matches!(replace("second").await, StepResult::Recheck));
    let stored = store.find_form(workspace(1).form(id)).await.unwrap().unwrap();
    assert_eq!((stored.title.as_str(), stored.revision), ("first", 2));
    let other_workspace = store.replace_form(workspace(2), update("third")).await.unwrap();
    assert!(matches!(other_workspace, StepResult::Missing));
    let recorded = async |body, millis| {
        let key = idempotency_key(IdempotentOperation::CreateIntegration(id), 1, body).unwrap();
        store.find_record(&key, at(millis)).await.unwrap().map(|found| found.map(|record| record.extra))
    };
    assert_eq!(recorded(5, 1).await, Some(Ok(b"\"first\"".to_vec())));
    assert_eq!(recorded(6, 1).await, Some(Err(Refusal::KeyReused)));
    assert_eq!(recorded(5, DAY_MILLIS).await, None);
    trash_form(&*store, id, 9).await;
    assert!(matches!(replace("fourth").await, StepResult::Missing));
    let purged = store.purge_form(workspace(1).form(id), ExpectedRevision::Any).await.unwrap();
    assert!(matches!(purged, StepResult::Done(())));
    store.close().await.unwrap();
    drop(store);
    let key = idempotency_key(IdempotentOperation::CreateIntegration(id), 1, 5).unwrap();
    let reopened = fixture.open();
    let is_gone = async || reopened.find_record(&key, at(1)).await.unwrap().is_none();
    while !is_gone().await {
        tokio::task::yield_now().await;
    }
}

pub(super) async fn a_recorded_response_outlives_a_restart(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let delivery = DeliveryId::from_bytes([7; 16]);
    let key = |body| idempotency_key(IdempotentOperation::Redeliver(delivery), 1, body).unwrap();
    store.put_response(key(5), "{}".to_owned(), at(0)).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    let found = async |body| store.find_record(&key(body), at(1)).await.unwrap();
    assert_eq!(found(5).await.unwrap().unwrap().extra, b"{}");
    assert_eq!(found(6).await, Some(Err(Refusal::KeyReused)));
}

pub(super) async fn versions_are_paged_newest_first(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let id = create_draft(&*store, 1, 11, 0).await;
    for number in 2..=5 {
        let edit = patch(&format!(r#"{{"questions":[{{"type":"email","title":"{number}"}}]}}"#));
        let step = update_form(&*store, workspace(1), id, edit, ExpectedRevision::Any, at(number)).await;
        assert!(matches!(step, StepResult::Done(_)));
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = store.list_versions(workspace(1).form(id), before, 2).await.unwrap().unwrap();
        before = page.rows.last().map(|last| last.number);
        for row in page.rows {
            let found = store.find_version(workspace(1).form(id), row.number).await.unwrap().unwrap();
            assert_eq!((found.number, found.created_at), (row.number, row.created_at));
            let asked: Value = serde_json::from_str(row.questions.get()).unwrap();
            let title = asked[0]["title"].as_str().unwrap().to_owned();
            seen.push((row.number, row.created_at.millis() - NOON, title));
        }
        if page.next.is_none() {
            break;
        }
    }
    let expected = [(5, 5, "5"), (4, 4, "4"), (3, 3, "3"), (2, 2, "2"), (1, 0, "What?")];
    assert_eq!(seen, expected.map(|(number, millis, title)| (number, millis, title.to_owned())));
    assert!(store.find_version(workspace(1).form(id), 6).await.unwrap().is_none());
    assert!(store.find_version(workspace(2).form(id), 1).await.unwrap().is_none());
    assert!(store.list_versions(workspace(2).form(id), None, 2).await.unwrap().is_none());
}

pub(super) async fn a_form_list_contains_what_matches_its_filter(fixture: &impl StoreFixture) {
    let store = fixture.open();
    for number in 1..=9 {
        let id = create_draft(&*store, 1, number, number as i64).await;
        let edit = match number % 3 {
            0 => r#"{"title":"\u00c9t\u00e9 of lunch","status":"published"}"#,
            1 => r#"{"title":"Dinner"}"#,
            _ => r#"{"status":"published"}"#,
        };
        let step = update_form(&*store, workspace(1), id, patch(edit), ExpectedRevision::Any, at(20)).await;
        assert!(matches!(step, StepResult::Done(_)));
    }
    let filter = |status, title: Option<&str>| FormFilter {
        status,
        title: title.map(str::to_owned),
        ..FormFilter::default()
    };
    let cases = [
        (filter(None, None), &[9, 8, 7, 6, 5, 4, 3, 2, 1][..]),
        (filter(Some(FormStatus::Draft), None), &[7, 4, 1]),
        (filter(Some(FormStatus::Published), None), &[9, 8, 6, 5, 3, 2]),
        (filter(None, Some("LUNCH")), &[9, 8, 6, 5, 3, 2]),
        (filter(Some(FormStatus::Published), Some("été")), &[9, 6, 3]),
        (filter(Some(FormStatus::Draft), Some("lunch")), &[]),
    ];
    for (filter, expected) in cases {
        for limit in [1, 2, 3, 9] {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = store.list_forms(workspace(1), &filter, after, limit).await.unwrap().rows;
                let Some((last, _)) = page.last() else { break };
                assert!(page.len() <= limit);
                after = Some((last.created_at, last.id));
                seen.extend(page.iter().map(|(form, _)| form.id));
            }
            assert_eq!(
                seen,
                expected.iter().copied().map(form_id).collect::<Vec<_>>(),
                "{filter:?}, pages of {limit}"
            );
        }
        assert_eq!(store.count_forms(workspace(1), &filter).await.unwrap(), Some(expected.len() as u64));
    }
    assert_eq!(store.count_forms(workspace(2), &filter(None, None)).await.unwrap(), Some(0));
    for (edit, reason) in [
        (r#"{"settings":{"closed":true}}"#, AcceptingReason::Closed),
        (r#"{"settings":{"closes_at":"1970-01-01T00:00:00Z"}}"#, AcceptingReason::Expired),
        (r#"{"settings":{"opens_at":"9999-01-01T00:00:00Z"}}"#, AcceptingReason::NotOpenYet),
    ] {
        let filter =
            |reason, now| FormFilter { accepting_reason: Some((reason, at(now))), ..filter(None, None) };
        let step =
            update_form(&*store, workspace(1), form_id(9), patch(edit), ExpectedRevision::Any, at(30)).await;
        assert!(matches!(step, StepResult::Done(_)));
        let listed = store.list_forms(workspace(1), &filter(reason, 31), None, 9).await.unwrap().rows;
        assert_eq!(listed.iter().map(|(form, _)| form.id).collect::<Vec<_>>(), [form_id(9)], "{reason}");
        assert_eq!(store.count_forms(workspace(1), &filter(reason, 31)).await.unwrap(), Some(1));
        let undo = patch(r#"{"settings":{"closed":null,"opens_at":null,"closes_at":null}}"#);
        update_form(&*store, workspace(1), form_id(9), undo, ExpectedRevision::Any, at(32)).await;
        assert_eq!(store.count_forms(workspace(1), &filter(reason, 33)).await.unwrap(), Some(0));
        assert_eq!(
            store.count_forms(workspace(1), &filter(AcceptingReason::Draft, 33)).await.unwrap(),
            Some(3)
        );
    }
}

pub(super) async fn a_slug_belongs_to_one_live_form_of_a_workspace(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let named = |ws, form, slug: &str| {
        new_form(ws, form, definition(&format!(r#"{{"title":"F","slug":"{slug}"}}"#)), 0)
    };
    let holder = async |store: &dyn Store, slug: &str| store.find_slug(workspace(1), slug).await.unwrap();
    let taken_by = |refusal: &Refusal, form| matches!(refusal, Refusal::SlugTaken { holder, .. } if *holder == Some(form_id(form)));
    // Of many concurrent requests for one slug, one succeeds.
    let mut tasks = tokio::task::JoinSet::new();
    for form in 1..=64 {
        let (store, new) = (Arc::clone(&store), named(1, form, "tea"));
        tasks.spawn(async move { store.insert_form(new).await.unwrap() });
    }
    let steps = tasks.join_all().await;
    let made: Vec<_> = steps
        .iter()
        .filter_map(|step| if let StepResult::Done((id, _)) = step { Some(*id) } else { None })
        .collect();
    assert_eq!(made.len(), 1);
    assert!(
        steps
            .iter()
            .all(|step| matches!(step, StepResult::Done(_) | StepResult::Refused(Refusal::SlugTaken { .. })))
    );
    assert_eq!(holder(&*store, "tea").await, Some(made[0]));
    let other_workspace = store.insert_form(named(2, 70, "tea")).await.unwrap();
    assert!(matches!(other_workspace, StepResult::Done(_)));
    // A change of the slug frees the old one; a refused change keeps it.
    store.insert_form(named(1, 80, "cake")).await.unwrap();
    let slug = |form, slug: &str| {
        update_form(
            &*store,
            workspace(1),
            form,
            patch(&format!(r#"{{"slug":{slug}}}"#)),
            ExpectedRevision::Any,
            at(1),
        )
    };
    let StepResult::Refused(refusal) = slug(made[0], "\"cake\"").await else { panic!("not refused") };
    assert!(taken_by(&refusal, 80), "{refusal:?}");
    assert_eq!(holder(&*store, "tea").await, Some(made[0]));
    assert!(matches!(slug(made[0], "\"milk\"").await, StepResult::Done(_)));
    assert_eq!((holder(&*store, "tea").await, holder(&*store, "milk").await), (None, Some(made[0])));
    assert!(matches!(slug(made[0], "\"milk\"").await, StepResult::Done(_)));
    assert!(matches!(slug(made[0], "null").await, StepResult::Done(_)));
    assert_eq!(holder(&*store, "milk").await, None);
    // A form in the trash has no slug, and cannot be restored while another form has its former one.
    trash_form(&*store, form_id(80), 5).await;
    assert_eq!(holder(&*store, "cake").await, None);
    store.insert_form(named(1, 81, "cake")).await.unwrap();
    let StepResult::Refused(refusal) =
        store.restore_form(workspace(1).form(form_id(80)), None, at(7)).await.unwrap()
    else {
        panic!("not refused")
    };
    assert!(taken_by(&refusal, 81), "{refusal:?}");
    assert!(matches!(
        store.purge_form(workspace(1).form(form_id(81)), ExpectedRevision::Any).await.unwrap(),
        StepResult::Done(())
    ));
    assert_eq!(holder(&*store, "cake").await, None);
    store.close().await.unwrap();
    let store = fixture.open();
    let back = store.restore_form(workspace(1).form(form_id(80)), None, at(8)).await.unwrap();
    assert!(matches!(back, StepResult::Done(back) if back.form.slug.as_deref() == Some("cake")));
    assert_eq!(holder(&*store, "cake").await, Some(form_id(80)));
    // Purging a form in the trash does not free a slug that another form has now.
    trash_form(&*store, form_id(80), 9).await;
    store.insert_form(named(1, 82, "cake")).await.unwrap();
    assert!(matches!(
        store.purge_form(workspace(1).form(form_id(80)), ExpectedRevision::Any).await.unwrap(),
        StepResult::Done(())
    ));
    assert_eq!(holder(&*store, "cake").await, Some(form_id(82)));
}

pub(super) async fn a_version_that_takes_most_of_a_cache_is_kept(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let id = create_draft(&*store, 1, 11, 0).await;
    let questions = store.find_version(workspace(1).form(id), 1).await.unwrap().unwrap().questions;
    // 16 bytes of memory for each byte of JSON are three quarters of the capacity.
    let capacity = questions.get().len() as u64 * 16 * 4 / 3;
    let cache = VersionCache::new(store, CpuPool::default(), capacity);
    let found = async || cache.find(workspace(1).form(id), 1).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&found().await, &found().await));
}
