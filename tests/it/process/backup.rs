//! Backups of a server under load: whole, or not there, whoever is killed meanwhile.
//!
//! The long form: `FORMS_KILLS=20 cargo test --release --test it process::backup`.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Stdio};

use super::common::server::{Server, operator_key};
use super::recorder::Recorder;
use super::{forms, forms_on, start, with_data};
use crate::engine::random::Random;

/// Rounds unless `FORMS_KILLS` is set.
const ROUNDS: u64 = 3;

#[test]
fn a_backup_under_load_has_all_that_was_acknowledged_before_it_or_does_not_exist() {
    let rounds = std::env::var("FORMS_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    with_data(async |data| {
        let first = start(data);
        let mut recorder = Recorder::new(&first, data).await;
        first.kill().unwrap();
        let (archive, restored) = (data.with_extension("tar"), data.with_extension("restored"));
        let mut whole = 0;
        for round in 0..rounds {
            let server = start(data);
            let before: HashSet<_> = recorder.ids().map(str::to_owned).collect();
            let mut backup = begin(&server, data, &archive);
            let enough = Random::new(round).below(800);
            let ended = recorder.store_until(server, enough, |server| match round % 3 {
                0 => finish(backup, server),
                1 => {
                    backup.kill().unwrap();
                    finish(backup, server)
                }
                _ => {
                    server.kill().unwrap();
                    backup.wait().unwrap().success()
                }
            });
            // A client that was killed may have given the archive its name just before.
            assert!(!ended.await || archive.exists(), "round {round}");
            if archive.exists() {
                restore(&archive, &restored);
                let server = start(&restored);
                let found = recorder.shown_with(&server, operator_key(&restored).unwrap()).await;
                assert!(before.is_subset(&found), "round {round}: {} of {}", found.len(), before.len());
                server.kill().unwrap();
                std::fs::remove_dir_all(&restored).unwrap();
                std::fs::remove_file(&archive).unwrap();
                whole += 1;
            }
        }
        assert!(whole > 0);
        println!("{whole} whole backups in {rounds} rounds, {} submissions", recorder.count());
    });
}

fn begin(server: &Server, data: &Path, archive: &Path) -> Child {
    let mut command = forms_on(server, data);
    command.args(["store", "backup", "--to"]).arg(archive);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits for the backup, then kills the server; returns whether the backup was made.
fn finish(mut backup: Child, server: Server) -> bool {
    let status = backup.wait().unwrap();
    server.kill().unwrap();
    status.success()
}

fn restore(archive: &Path, into: &Path) {
    let output =
        forms(into).args(["store", "restore"]).arg(archive).arg("--data").arg(into).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
