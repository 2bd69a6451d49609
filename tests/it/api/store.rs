//! The state of the store, and its verification.

use crate::harness::prelude::*;
use crate::store::wait_until;

const STORE: &str = "/api/v1/store";

#[tokio::test]
async fn the_store_shows_its_submissions_and_its_verification() {
    let (server, form) = Server::with_form().await;
    let first = server.submit(&form, json!({"q1": "one"})).await;
    server.submit(&form, json!({"q1": "two"})).await;
    server.delete(format!("/api/v1/forms/{form}/submissions/{first}")).send().await;
    let before = server.read(STORE).await;
    assert_eq!((&before["submissions"], &before["verifying"]), (&json!(1), &json!(false)), "{before}");
    assert!(before["opened_at"].is_string() && before["verified_at"].is_null(), "{before}");
    let begun = server.post(format!("{STORE}/verify"), json!({})).send().await;
    assert_eq!(begun.status, 202, "{}", begun.text());
    wait_until(async || server.read(STORE).await["verifying"] == false).await;
    let after = server.read(STORE).await;
    assert_eq!(after["verification"]["damage"], json!([]), "{after}");
    // A database has rows, and no journal.
    let read = ["writes", "rows"].map(|part| after["verification"][part].as_u64().unwrap());
    assert!(after["verified_at"].is_string() && read.iter().sum::<u64>() > 3, "{after}");
}
