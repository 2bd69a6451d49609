//! Backups over the API.

use axum::response::Response;
use forms::backup::read_archive;
use forms::domain::workspace::Scope;
use http_body_util::BodyExt;

use crate::harness::prelude::*;

pub(super) const BACKUP: &str = "/api/v1/store/backup";

/// Begins a backup that has more than the pieces which wait for a client, and receives none of them.
pub(super) async fn begin_large() -> (Server, Response) {
    let server = Server::embedded().await;
    let question = json!([{"type": "long_text", "title": "Story", "max_length": 60_000}]);
    let form = server.published_form(question).await;
    for _ in 0..40 {
        server.submit(&form, json!({"q1": "x".repeat(60_000)})).await;
    }
    let first = server.get(BACKUP).response().await;
    (server, first)
}

#[tokio::test]
async fn a_backup_is_an_archive_of_what_is_stored() {
    let (server, form) = Server::embedded_with_form().await;
    server.submit(&form, json!({"q1": "hello"})).await;
    let response = server.get(BACKUP).header("accept", "application/x-tar").response().await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-tar");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let mut visited = Vec::new();
    let manifest = read_archive(&body[..], |path, _| {
        visited.push(path.to_owned());
        Ok(())
    });
    let manifest = manifest.unwrap();
    assert_eq!(visited, ["journal/00000001.log", "state"]);
    assert_eq!(
        manifest.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        visited.iter().collect::<Vec<_>>()
    );
    assert_eq!((manifest.format, manifest.version.as_str()), (1, env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn only_the_operator_gets_a_backup_and_one_at_a_time() {
    let (server, first) = begin_large().await;
    let admin = server.key_with(&[Scope::Admin]).await;
    server.get(BACKUP).key(&admin).send().await.expect_problem(403, "insufficient_scope");
    server.get(BACKUP).send().await.expect_problem(409, "backup_in_progress");
    assert!(first.into_body().collect().await.unwrap().to_bytes().len() > 2_400_000);
    // A client that goes away ends its backup.
    drop(server.get(BACKUP).response().await);
    let mut after = server.get(BACKUP).response().await;
    while after.status() == 409 {
        tokio::task::yield_now().await;
        after = server.get(BACKUP).response().await;
    }
    assert_eq!(after.status(), 200);
}
