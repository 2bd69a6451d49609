//! Values of the index that are damaged or gone: never given out, never taken for absent, and whole again soon.

use std::ops::Bound;
use std::time::Duration;

use axum::http::StatusCode;
use forms::store::sled::engine::index::{Change, Index};
use forms::store::sled::engine::tx::Direction;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::harness::{Server, questions};

const PATIENCE: Duration = Duration::from_secs(60);

/// Changes the first row under `kind`.
fn change(index: &dyn Index, kind: u8, change: impl Fn(Vec<u8>) -> Option<Vec<u8>>) {
    let mut first = None;
    let start = [kind];
    let visited =
        index.range(Bound::Included(&start), Bound::Unbounded, Direction::Ascending, &mut |key, cell| {
            first = Some((key.to_vec(), cell.to_vec()));
            false
        });
    visited.unwrap();
    let (key, cell) = first.filter(|(key, _)| key[0] == kind).expect("there is such a row");
    let cell = change(cell);
    index.apply(&mut [Change { key: &key, cell: cell.as_deref() }].into_iter()).unwrap();
}

/// Reads until the answer is another than that the store is unavailable. Nobody writes meanwhile.
async fn healed(server: &Server, path: &str) -> Value {
    let reading = async {
        loop {
            let answer = server.get(path).send().await;
            if answer.status != StatusCode::SERVICE_UNAVAILABLE {
                return answer.expect(200);
            }
            yield_now().await;
        }
    };
    timeout(PATIENCE, reading).await.expect("the index is proved and built anew")
}

#[tokio::test]
async fn a_damaged_submission_is_unavailable_until_the_index_is_built_anew() {
    let server = Server::start().await;
    let form = server.published(questions()).await;
    let submission = server.submit(&form, json!({"q1": "hello"})).await;
    let flipped = |mut cell: Vec<u8>| {
        cell[10] ^= 1;
        Some(cell)
    };
    let server = server.with_index(|index| change(index, b'S', flipped)).await;
    let path = format!("/api/v1/forms/{form}/submissions/{submission}");
    let answer = server.get(&path).send().await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (503, "store_unavailable"));
    assert!(!answer.text().contains("hello"));
    assert_eq!(healed(&server, &path).await["answers"], json!({"q1": "hello"}));
}

#[tokio::test]
async fn a_form_whose_questions_are_gone_is_unavailable_until_the_index_is_built_anew() {
    let server = Server::start().await;
    let path = format!("/api/v1/forms/{}", server.draft(questions()).await);
    let server = server.with_index(|index| change(index, b'D', |_| None)).await;
    let answer = server.get(&path).send().await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (503, "store_unavailable"));
    assert_eq!(healed(&server, &path).await["questions"].as_array().unwrap().len(), 3);
}
