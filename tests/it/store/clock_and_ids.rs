//! Ids and counters are exact when the clock repeats, jumps or steps back.

use forms::secret::KeyText;

use super::{NOON, SeededRandom, StoreFixture, at, list_all, published_form, submit, submit_concurrently};

pub(super) async fn submissions_get_the_current_time_when_the_clock_repeats(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    // Adjacent rows, each spanning some milliseconds.
    for round in 0..40 {
        submit_concurrently(&*store, form, 20, 200_000 + round * 5).await;
    }
    submit(&*store, form, "{}", 0).await;
    for millis in [200_002, 200_033, 200_100] {
        let late = submit(&*store, form, "{}", millis).await.millis() - NOON - millis;
        assert!((0..10).contains(&late), "{late} ms late");
    }
    assert_eq!(list_all(&*store, form, 50).await.len(), 804);
}

pub(super) async fn a_clock_that_steps_back_a_minute_is_ignored_and_more_is_followed(
    fixture: &impl StoreFixture,
) {
    let store = fixture.open().await;
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
