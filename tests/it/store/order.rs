//! Ids and counters are exact, whatever the clock does.

use std::sync::Arc;

use forms::secret::KeyText;

use super::{Bench, NOON, Scrambled, all, at, newest, published, submit, submit_together, workspace};

pub(super) async fn times_that_come_again_keep_every_submission(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    let mut expected = Vec::new();
    // The last two rounds are at a time that was there already, then at one that was not.
    for millis in [0, 100_000, 200_000, 0, 100_000, 100_000, 200_000, 300_000] {
        expected.extend(submit_together(&store, form, 20, millis).await);
    }
    expected.sort_unstable();
    expected.reverse();
    for limit in [1, 9, 200] {
        assert_eq!(all(&*store, form, limit).await, expected, "pages of {limit}");
    }
}

pub(super) async fn a_clock_that_jumps_within_a_group_loses_nothing(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    submit_together(&store, form, 20, 200_000).await;
    for moments in [vec![0], vec![0, 199_999, 200_010], vec![300_000, 0, 300_000, 1, 199_998, 300_010]] {
        let mut tasks = tokio::task::JoinSet::new();
        for millis in moments.into_iter().flat_map(|millis| [millis; 20]) {
            let store = Arc::clone(&store);
            tasks.spawn(async move { submit(&*store, form, "{}", millis).await });
        }
        tasks.join_all().await;
        let count = store.count_submissions(workspace(1), form).await.unwrap();
        for limit in [1, 9, 200] {
            let seen = all(&*store, form, limit).await;
            assert!(seen.is_sorted_by(|one, next| one > next), "pages of {limit}: {seen:?}");
            assert_eq!(seen.len() as u64, count, "pages of {limit}");
        }
    }
}

pub(super) async fn times_that_come_again_are_the_times_of_what_comes(bench: &impl Bench) {
    let store = bench.open();
    let form = published(&*store, 11).await;
    // Rows side by side, each over some milliseconds.
    for round in 0..40 {
        submit_together(&store, form, 20, 200_000 + round * 5).await;
    }
    submit(&*store, form, "{}", 0).await;
    for millis in [200_002, 200_033, 200_100] {
        let late = submit(&*store, form, "{}", millis).await.millis() - NOON - millis;
        assert!((0..10).contains(&late), "{late} ms late");
    }
    assert_eq!(all(&*store, form, 50).await.len(), 804);
}

pub(super) async fn ids_rise_and_counters_are_exact_with_many_writers(bench: &impl Bench) {
    let store = bench.open();
    let forms = [published(&*store, 11).await, published(&*store, 12).await];
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut last = None;
            for round in 0..20 {
                let id = submit(&*store, forms[number % 2], "{\"q1\":\"x\"}", round).await;
                assert!(last < Some(id), "ids of one writer rise");
                // What was answered can be read at once.
                assert!(store.find_submission(workspace(1), forms[number % 2], id).await.unwrap().is_some());
                last = Some(id);
            }
        });
    }
    tasks.join_all().await;
    for form in forms {
        assert_eq!(store.count_submissions(workspace(1), form).await.unwrap(), 640);
        let all = newest(&*store, workspace(1), form, None, 1_000).await.unwrap().rows;
        assert_eq!(all.len(), 640);
        assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id));
    }
}

pub(super) async fn a_clock_that_steps_back_is_ridden_out_or_followed(bench: &impl Bench) {
    let store = bench.open();
    let key = KeyText::draw(&Scrambled::new(3));
    forms::app::bootstrap(&*store, &key, &Scrambled::new(4), at(0)).await.unwrap();
    let signing_key = store.signing_key().await.unwrap();
    let form = published(&*store, 11).await;
    let first = submit(&*store, form, "{}", 100_000).await;
    let ridden_out = submit(&*store, form, "{}", 40_000).await;
    assert!(ridden_out > first && ridden_out.millis() == first.millis());
    assert_eq!(store.signing_key().await.unwrap(), signing_key);
    let followed = submit(&*store, form, "{}", 39_999).await;
    assert_eq!(followed.millis(), NOON + 39_999);
    assert_ne!(store.signing_key().await.unwrap(), signing_key, "cursors from before must end");
    let next = submit(&*store, form, "{}", 40_000).await;
    assert!(next > followed && next < first);
}
