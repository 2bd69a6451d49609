//! Lists of submissions with a filter by answer and time, in either order.

use std::future::poll_fn;
use std::pin::pin;

use forms::domain::submission::Submission;
use forms::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};

use super::{
    StoreFixture, all_pages, at, done, edit_submission, is_ready, list_all, list_newest, published_form,
    submit, submit_concurrently, trash_form, workspace,
};
use crate::engine::random::Random;

pub(super) async fn a_search_returns_what_matches_its_filter_in_either_order(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    for turn in 0..4 {
        submit_concurrently(&*store, form, 100, turn * 20).await;
    }
    let ids = list_all(&*store, form, 500).await;
    done(edit_submission(&*store, form, ids[50], 0, r#"{"q1":"corrected 7"}"#, 90).await);
    let stored = list_newest(&*store, form, None, 1_000).await.unwrap().rows;
    let mut random = Random::new(7);
    for _ in 0..300 {
        let mut moment = || random.once_in(2).then(|| at(random.below(120) as i64 - 5));
        let (since, until) = (moment(), moment());
        let text = random.once_in(2).then(|| random.below(10).to_string());
        let order = *random.pick(&[Order::NewestFirst, Order::OldestFirst]);
        let matches = |found: &&Submission| {
            since.is_none_or(|since| found.submitted_at() >= since)
                && until.is_none_or(|until| found.submitted_at() < until)
                && text.as_ref().is_none_or(|text| found.answers[6..].contains(text))
        };
        let mut expected: Vec<_> = stored.iter().filter(matches).map(|found| found.id).collect();
        if order == Order::OldestFirst {
            expected.reverse();
        }
        let query = SubmissionQuery { since, until, text: text.clone(), ..SubmissionQuery::default() };
        let filter = SubmissionFilter::new(&query, &[]).unwrap();
        let (form, limit) = (workspace(1).form(form), 1 + random.below(150));
        let pages = async |after| {
            let page = store.list_submissions(form, &filter, order, after, limit).await.unwrap().unwrap();
            assert!(page.rows.len() == limit || page.next.is_none(), "a page before the last one is short");
            page
        };
        let seen: Vec<_> = all_pages(pages).await.iter().map(|row| row.id).collect();
        assert_eq!(seen, expected, "{query:?} {order:?}, pages of {limit}");
        assert_eq!(store.count_filtered(form, &filter).await.unwrap(), Some(seen.len() as u64));
    }
}

pub(super) async fn a_long_search_runs_in_slices_and_can_be_cancelled(fixture: &impl StoreFixture) {
    let store = fixture.open().await;
    let form = published_form(&*store, 11).await;
    let text = format!("{{\"q1\":\"{}\"}}", "x".repeat(500_000));
    for number in 0..12 {
        submit(&*store, form, &text, number).await;
    }
    let query = SubmissionQuery { text: Some("y".to_owned()), ..SubmissionQuery::default() };
    let filter = SubmissionFilter::new(&query, &[]).unwrap();
    let mut polls = 0;
    let mut search = pin!(store.count_filtered(workspace(1).form(form), &filter));
    let counted = poll_fn(|context| {
        polls += 1;
        search.as_mut().poll(context)
    });
    assert_eq!(counted.await.unwrap(), Some(0));
    assert!(polls > 3, "6 MB were read in {polls} polls");
    // A search whose form is trashed meanwhile ends without a page.
    let mut search =
        pin!(store.list_submissions(workspace(1).form(form), &filter, Order::NewestFirst, None, 9));
    assert!(!is_ready(&mut search).await);
    trash_form(&*store, form, 20).await;
    assert_eq!(search.await.unwrap(), None);
}
