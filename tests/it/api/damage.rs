//! Damaged or missing rows of the index: never returned, never treated as absent, and restored by a rebuild.

use std::ops::Bound;

use forms::store::sled::engine::index::{Change, Index};
use forms::store::sled::engine::tx::Direction;

use crate::harness::prelude::*;
use crate::store::wait_until;

/// Changes the first row whose key begins with `kind`.
fn change(index: &dyn Index, kind: u8, change: impl Fn(Vec<u8>) -> Option<Vec<u8>>) {
    let mut first = None;
    let start = [kind];
    let visited =
        index.range(Bound::Included(&start), Bound::Unbounded, Direction::Ascending, &mut |key, cell| {
            first = Some((key.to_vec(), cell.to_vec()));
            false
        });
    visited.unwrap();
    let (key, cell) = first.filter(|(key, _)| key[0] == kind).expect("no row has this prefix");
    let cell = change(cell);
    index.apply(&mut [Change { key: &key, cell: cell.as_deref() }].into_iter()).unwrap();
}

#[tokio::test]
async fn a_damaged_or_missing_row_is_unavailable_until_the_index_is_rebuilt() {
    let flipped = |mut cell: Vec<u8>| {
        cell[10] ^= 1;
        Some(cell)
    };
    for (kind, changed) in [(b'S', flipped as fn(Vec<u8>) -> Option<Vec<u8>>), (b'D', |_| None)] {
        let (server, form) = Server::embedded_with_form().await;
        let submission = server.submit(&form, json!({"q1": "hello"})).await;
        let below = if kind == b'S' { format!("/submissions/{submission}") } else { String::new() };
        let path = format!("/api/v1/forms/{form}{below}");
        let before = server.read(&path).await;
        let server = server.with_index(|index| change(index, kind, changed)).await;
        let response = server.get(&path).send().await;
        response.expect_problem(503, "store_unavailable");
        assert!(!response.text().contains("hello"));
        wait_until(async || server.get(&path).send().await.status != 503).await;
        assert_eq!(server.read(&path).await, before);
    }
}
