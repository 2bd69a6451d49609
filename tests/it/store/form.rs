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

use futures_util::future::join_all;

use super::{
    StoreFixture, all_pages, at, change_form, create_draft, definition, done, find_form, form_id,
    idempotency_key, missing, new_form, patch, purge_form, restore_form, trash_form, update_form, wait_until,
    workspace,
};

pub(super) async fn the_id_of_a_removed_question_comes_back_only_with_its_type(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = create_draft(&*store, 1, 1, 0).await;
    let question =
        |id: &str, kind: &str| format!(r#"{{"questions":[{{"id":"{id}","type":"{kind}","title":"a"}}]}}"#);
    for id in ["second", "third"] {
        done(change_form(&*store, form, &question(id, "email"), 1).await);
    }
    let store = fixture.reopen(store).await;
    let refused = change_form(&*store, form, &question("second", "rating"), 2).await;
    assert!(matches!(refused, StepResult::Refused(Refusal::InvalidDefinition(_))), "{refused:?}");
    done(change_form(&*store, form, &question("second", "email"), 2).await);
    let unnamed = r#"{"questions":[{"type":"email","title":"a"}]}"#;
    let changed = done(change_form(&*store, form, unnamed, 3).await);
    assert_eq!(changed.version.questions[0].id.as_deref(), Some("q2"));
}

pub(super) async fn a_change_applies_only_to_the_expected_revision(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let id = create_draft(&*store, 1, 11, 0).await;
    let rename = |title: &str| patch(&format!(r#"{{"title":"{title}"}}"#));
    let seen = |revisions: &[u64]| ExpectedRevision::OneOf(revisions.to_vec());
    // Of many changes that expect the same revision, one succeeds.
    let steps = (0..16)
        .map(|number| update_form(&*store, workspace(1), id, rename(&number.to_string()), seen(&[1]), at(1)));
    let steps = join_all(steps).await;
    assert_eq!(steps.iter().filter(|step| matches!(step, StepResult::Done(_))).count(), 1);
    let is_refused = |step: &&StepResult<_>| matches!(step, StepResult::Refused(Refusal::PreconditionFailed));
    assert_eq!(steps.iter().filter(is_refused).count(), 15);
    let same = update_form(&*store, workspace(1), id, rename("new"), seen(&[2, 9]), at(1)).await;
    assert!(matches!(same, StepResult::Done(current) if current.form.revision == 3));
    for stale in [seen(&[2]), seen(&[])] {
        let trashed = store.trash_form(workspace(1).form(id), stale.clone(), at(2)).await.unwrap();
        assert!(matches!(trashed, StepResult::Refused(Refusal::PreconditionFailed)));
        let purged = store.purge_form(workspace(1).form(id), stale).await.unwrap();
        assert!(matches!(purged, StepResult::Refused(Refusal::PreconditionFailed)));
    }
    assert!(find_form(&*store, id).await.is_some());
    done(store.trash_form(workspace(1).form(id), seen(&[3]), at(2)).await.unwrap());
    done(store.purge_form(workspace(1).form(id), seen(&[4])).await.unwrap());
}

pub(super) async fn a_form_update_replaces_only_the_revision_it_was_computed_from(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open().await;
    let id = create_draft(&*store, 1, 11, 0).await;
    let form = find_form(&*store, id).await.unwrap();
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
    done(replace("first").await);
    assert!(matches!(replace("second").await, StepResult::Recheck));
    let stored = find_form(&*store, id).await.unwrap();
    assert_eq!((stored.title.as_str(), stored.revision), ("first", 2));
    missing(store.replace_form(workspace(2), update("third")).await.unwrap());
    let recorded = async |body, millis| {
        let key = idempotency_key(IdempotentOperation::CreateIntegration(id), 1, body).unwrap();
        store.find_record(&key, at(millis)).await.unwrap().map(|found| found.map(|record| record.extra))
    };
    assert_eq!(recorded(5, 1).await, Some(Ok(b"\"first\"".to_vec())));
    assert_eq!(recorded(6, 1).await, Some(Err(Refusal::KeyReused)));
    assert_eq!(recorded(5, DAY_MILLIS).await, None);
    trash_form(&*store, id, 9).await;
    missing(replace("fourth").await);
    done(purge_form(&*store, id).await);
    let store = fixture.reopen(store).await;
    let key = idempotency_key(IdempotentOperation::CreateIntegration(id), 1, 5).unwrap();
    wait_until(async || store.find_record(&key, at(1)).await.unwrap().is_none()).await;
}

pub(super) async fn a_recorded_response_outlives_a_restart(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let delivery = DeliveryId::from_bytes([7; 16]);
    let key = |body| idempotency_key(IdempotentOperation::Redeliver(delivery), 1, body).unwrap();
    store.put_response(key(5), "{}".to_owned(), at(0)).await.unwrap();
    let store = fixture.reopen(store).await;
    let found = async |body| store.find_record(&key(body), at(1)).await.unwrap();
    assert_eq!(found(5).await.unwrap().unwrap().extra, b"{}");
    assert_eq!(found(6).await, Some(Err(Refusal::KeyReused)));
}

pub(super) async fn a_form_list_contains_what_matches_its_filter(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    for number in 1..=9 {
        // Two forms are created in the same millisecond.
        let id = create_draft(&*store, 1, number, number as i64 / 2).await;
        let edit = match number % 3 {
            0 => r#"{"title":"\u00c9t\u00e9 of lunch","status":"published"}"#,
            1 => r#"{"title":"Dinner"}"#,
            _ => r#"{"status":"published"}"#,
        };
        done(change_form(&*store, id, edit, 20).await);
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
            let pages = async |after| store.list_forms(workspace(1), &filter, after, limit).await.unwrap();
            let seen: Vec<_> = all_pages(pages).await.iter().map(|(form, _)| form.id).collect();
            let expected: Vec<_> = expected.iter().copied().map(form_id).collect();
            assert_eq!(seen, expected, "{filter:?}, pages of {limit}");
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
        done(change_form(&*store, form_id(9), edit, 30).await);
        let listed = store.list_forms(workspace(1), &filter(reason, 31), None, 9).await.unwrap().rows;
        assert_eq!(listed.iter().map(|(form, _)| form.id).collect::<Vec<_>>(), [form_id(9)], "{reason}");
        assert_eq!(store.count_forms(workspace(1), &filter(reason, 31)).await.unwrap(), Some(1));
        let undo = r#"{"settings":{"closed":null,"opens_at":null,"closes_at":null}}"#;
        done(change_form(&*store, form_id(9), undo, 32).await);
        for (reason, count) in [(reason, 0), (AcceptingReason::Draft, 3)] {
            assert_eq!(store.count_forms(workspace(1), &filter(reason, 33)).await.unwrap(), Some(count));
        }
    }
}

pub(super) async fn a_slug_belongs_to_one_live_form_of_a_workspace(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let named = |ws, form, slug: &str| {
        new_form(ws, form, definition(&format!(r#"{{"title":"F","slug":"{slug}"}}"#)), 0)
    };
    let holder = async |store: &dyn Store, slug: &str| store.find_slug(workspace(1), slug).await.unwrap();
    let assert_taken = |step: StepResult<()>, form| {
        let StepResult::Refused(Refusal::SlugTaken { holder, .. }) = step else { panic!("{step:?}") };
        assert_eq!(holder, Some(form_id(form)));
    };
    // Of many concurrent requests for one slug, one succeeds.
    let mut made = Vec::new();
    for step in join_all((1..=64).map(|form| store.insert_form(named(1, form, "tea")))).await {
        let step = step.unwrap();
        match step {
            StepResult::Done((id, _)) => made.push(id),
            other => assert!(matches!(other, StepResult::Refused(Refusal::SlugTaken { .. })), "{other:?}"),
        }
    }
    assert_eq!(made.len(), 1);
    assert_eq!(holder(&*store, "tea").await, Some(made[0]));
    done(store.insert_form(named(2, 70, "tea")).await.unwrap());
    // A change of the slug frees the old one; a refused change keeps it.
    store.insert_form(named(1, 80, "cake")).await.unwrap();
    let slug =
        async |slug: &str| change_form(&*store, made[0], &format!(r#"{{"slug":{slug}}}"#), 1).await.map(drop);
    assert_taken(slug("\"cake\"").await, 80);
    assert_eq!(holder(&*store, "tea").await, Some(made[0]));
    done(slug("\"milk\"").await);
    assert_eq!((holder(&*store, "tea").await, holder(&*store, "milk").await), (None, Some(made[0])));
    done(slug("\"milk\"").await);
    done(slug("null").await);
    assert_eq!(holder(&*store, "milk").await, None);
    // A form in the trash has no slug, and cannot be restored while another form has its former one.
    trash_form(&*store, form_id(80), 5).await;
    assert_eq!(holder(&*store, "cake").await, None);
    store.insert_form(named(1, 81, "cake")).await.unwrap();
    assert_taken(restore_form(&*store, form_id(80), 7).await.map(drop), 81);
    done(purge_form(&*store, form_id(81)).await);
    assert_eq!(holder(&*store, "cake").await, None);
    let store = fixture.reopen(store).await;
    let back = done(restore_form(&*store, form_id(80), 8).await);
    assert_eq!(back.form.slug.as_deref(), Some("cake"));
    assert_eq!(holder(&*store, "cake").await, Some(form_id(80)));
    // Purging a form in the trash does not free a slug that another form has now.
    trash_form(&*store, form_id(80), 9).await;
    store.insert_form(named(1, 82, "cake")).await.unwrap();
    done(purge_form(&*store, form_id(80)).await);
    assert_eq!(holder(&*store, "cake").await, Some(form_id(82)));
}

pub(super) async fn a_version_that_takes_most_of_a_cache_is_kept(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let id = create_draft(&*store, 1, 11, 0).await;
    let questions = store.find_version(workspace(1).form(id), 1).await.unwrap().unwrap().questions;
    // 16 bytes of memory for each byte of JSON are three quarters of the capacity.
    let capacity = questions.get().len() as u64 * 16 * 4 / 3;
    let cache = VersionCache::new(store, CpuPool::default(), capacity);
    let found = async || cache.find(workspace(1).form(id), 1).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&found().await, &found().await));
}
