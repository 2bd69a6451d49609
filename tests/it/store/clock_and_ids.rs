//! Ids and counters are exact when the clock repeats, jumps or steps back.

use std::sync::Arc;

use forms::secret::KeyText;

use super::{
    NOON, SeededRandom, StoreFixture, at, list_all, list_newest, published_form, submit, submit_concurrently,
    workspace,
};

pub(super) async fn no_submission_is_lost_when_the_clock_repeats(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    let mut expected = Vec::new();
    // The last two rounds are at a time used before, then at a new one.
    for millis in [0, 100_000, 200_000, 0, 100_000, 100_000, 200_000, 300_000] {
        expected.extend(submit_concurrently(&store, form, 20, millis).await);
    }
    expected.sort_unstable();
    expected.reverse();
    for limit in [1, 9, 200] {
        assert_eq!(list_all(&*store, form, limit).await, expected, "pages of {limit}");
    }
}

pub(super) async fn a_clock_that_jumps_within_a_group_loses_nothing(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    submit_concurrently(&store, form, 20, 200_000).await;
    for moments in [vec![0], vec![0, 199_999, 200_010], vec![300_000, 0, 300_000, 1, 199_998, 300_010]] {
        let mut tasks = tokio::task::JoinSet::new();
        for millis in moments.into_iter().flat_map(|millis| [millis; 20]) {
            let store = Arc::clone(&store);
            tasks.spawn(async move { submit(&*store, form, "{}", millis).await });
        }
        tasks.join_all().await;
        let count = store.count_submissions(workspace(1).form(form)).await.unwrap();
        for limit in [1, 9, 200] {
            let seen = list_all(&*store, form, limit).await;
            assert!(seen.is_sorted_by(|one, next| one > next), "pages of {limit}: {seen:?}");
            assert_eq!(seen.len() as u64, count, "pages of {limit}");
        }
    }
}

pub(super) async fn submissions_get_the_current_time_when_the_clock_repeats(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let form = published_form(&*store, 11).await;
    // Adjacent rows, each spanning some milliseconds.
    for round in 0..40 {
        submit_concurrently(&store, form, 20, 200_000 + round * 5).await;
    }
    submit(&*store, form, "{}", 0).await;
    for millis in [200_002, 200_033, 200_100] {
        let late = submit(&*store, form, "{}", millis).await.millis() - NOON - millis;
        assert!((0..10).contains(&late), "{late} ms late");
    }
    assert_eq!(list_all(&*store, form, 50).await.len(), 804);
}

pub(super) async fn ids_increase_and_counters_are_exact_with_concurrent_writers(fixture: &impl StoreFixture) {
    let store = fixture.open();
    let forms = [published_form(&*store, 11).await, published_form(&*store, 12).await];
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut last = None;
            for round in 0..20 {
                let id = submit(&*store, forms[number % 2], "{\"q1\":\"x\"}", round).await;
                assert!(last < Some(id), "the ids of one writer do not increase");
                // An acknowledged submission can be read at once.
                assert!(
                    store
                        .find_submission(workspace(1).form(forms[number % 2]).submission(id))
                        .await
                        .unwrap()
                        .is_some()
                );
                last = Some(id);
            }
        });
    }
    tasks.join_all().await;
    for form in forms {
        assert_eq!(store.count_submissions(workspace(1).form(form)).await.unwrap(), 640);
        let all = list_newest(&*store, workspace(1), form, None, 1_000).await.unwrap().rows;
        assert_eq!(all.len(), 640);
        assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id));
    }
}

pub(super) async fn a_clock_that_steps_back_a_minute_is_ignored_and_more_is_followed(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open();
    let key = KeyText::draw(&SeededRandom::new(3));
    forms::app::bootstrap(&*store, &key, &SeededRandom::new(4), at(0)).await.unwrap();
    let signing_key = store.signing_key().await.unwrap();
    let [form, other] = [published_form(&*store, 11).await, published_form(&*store, 12).await];
    submit(&*store, other, "{}", 100_001).await;
    let first = submit(&*store, form, "{}", 100_000).await;
    let ignored = submit(&*store, form, "{}", 40_000).await;
    assert!(ignored > first && ignored.millis() == first.millis());
    assert_eq!(store.signing_key().await.unwrap(), signing_key);
    let followed = submit(&*store, form, "{}", 39_999).await;
    assert_eq!(followed.millis(), NOON + 39_999);
    let replaced = store.signing_key().await.unwrap();
    assert_ne!(replaced, signing_key, "cursors from before are still valid");
    let next = submit(&*store, form, "{}", 40_000).await;
    assert!(next > followed && next < first);
    // The same step back ends no cursors that were issued after it.
    assert_eq!(submit(&*store, other, "{}", 40_000).await.millis(), NOON + 40_000);
    assert_eq!(store.signing_key().await.unwrap(), replaced);
    // Another one does.
    submit(&*store, form, "{}", 200_000).await;
    submit(&*store, form, "{}", 50_000).await;
    assert_ne!(store.signing_key().await.unwrap(), replaced);
}
