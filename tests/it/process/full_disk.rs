//! A full disk: writes are refused, reads work, and writes work again without a restart once space is free.
//!
//! The long form: `FORMS_FILLS=50 cargo test --release --test it process::full_disk`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::common::fill::expect;
use super::common::server::Server;
use super::common::wire::{Connection, request};
use super::recorder::Recorder;
use super::{serve_by, with_data};

/// Rounds with each setting unless `FORMS_FILLS` is set.
const FILLS: u64 = 1;

/// Rounds after which a new store is created, so that stored submissions alone do not fill the file system.
const ROUNDS_PER_STORE: usize = 10;

/// Connections that submit until the disk is full.
const CONNECTIONS: u64 = 64;

/// Size of the file system; the default `--min-free` is 128 MiB.
const SIZE: u64 = 512 << 20;

#[test]
fn a_disk_filled_by_another_process_under_load_does_not_stop_the_server() {
    let rounds = std::env::var("FORMS_FILLS").map_or(FILLS, |text| text.parse().unwrap());
    // The lower the reserve, the more likely the index has no space for a change that the journal already has.
    for settings in [&[][..], &["--min-free", "256KiB"]] {
        let starts = (0..rounds).step_by(ROUNDS_PER_STORE);
        let (mut stored, mut without_space) = (0, 0);
        for start in starts {
            let (more, times) =
                fill_repeatedly(settings, rounds.min(start + ROUNDS_PER_STORE as u64) - start);
            (stored, without_space) = (stored + more, without_space + times);
        }
        println!(
            "{settings:?}: {rounds} rounds, {stored} stored, {without_space} times without space for the index"
        );
    }
}

/// Runs rounds on a new store; returns the number of submissions stored, and how often the index had no space.
fn fill_repeatedly(settings: &[&str], rounds: u64) -> (usize, usize) {
    with_data(async |data| {
        fs::create_dir(data).unwrap();
        let mut server = Server::start(&mut serve_on_small_disk(data, settings)).unwrap();
        let mounted = path_in_namespace(&server, data);
        let mut recorder = Recorder::new(&server, &mounted).await.with_large_answers_only();
        for round in 0..rounds {
            let filler = mounted.join("filler");
            let removed = filler.clone();
            // In parallel to the load, which ends as soon as there is no space left.
            let begin = |server| (server, thread::spawn(move || fill(&filler)));
            let filled = recorder.store_from(CONNECTIONS, server, 100 + 97 * round as usize, begin).await;
            server = filled.0;
            filled.1.join().unwrap();
            for _ in 0..20 {
                let (status, problem) = recorder.store_one(&server).await;
                assert_eq!(
                    (status, problem["code"].as_str()),
                    (503, Some("storage_full")),
                    "{round}: {problem}"
                );
            }
            assert_eq!(readiness(&server).await, 503);
            fs::remove_file(&removed).unwrap();
            wait_until_ready(&server).await;
            assert_eq!(recorder.store_one(&server).await.0, 201, "round {round}");
            recorder.verify(&server).await;
        }
        assert_eq!(server.stop().unwrap().code(), Some(0));
        let log = fs::read_to_string(data.with_extension("log")).unwrap();
        assert!(!log.contains("Rebuilding"), "a full disk must not be taken for damage: {log}");
        (recorder.count(), log.matches("NoRoom").count())
    })
}

/// Writes to `filler` until the disk is full.
fn fill(filler: &Path) {
    let mut file = fs::File::create(filler).unwrap();
    let zeros = vec![0; 4 << 20];
    for size in [4 << 20, 64 << 10, 4096] {
        while file.write_all(&zeros[..size]).is_ok() {}
    }
}

/// The server on a private file system of [`SIZE`] bytes, which is unmounted when the server exits.
fn serve_on_small_disk(data: &Path, settings: &[&str]) -> Command {
    let mount = format!(
        "mount -t tmpfs -o mode=0700,size={SIZE} forms-test {} && exec \"$@\"",
        data.to_str().unwrap()
    );
    let user = if rustix::process::getuid().is_root() { "-m" } else { "-rm" };
    serve_by(&["unshare", user, "sh", "-c", &mount, "sh"], data, settings)
}

/// `path` in the mount namespace of the server.
fn path_in_namespace(server: &Server, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", server.pid()));
    root.join(path.strip_prefix("/").unwrap())
}

async fn readiness(server: &Server) -> u16 {
    let mut connection = Connection::open(server.endpoint()).await.unwrap();
    connection.exchange(&request("GET", "/readyz", "", "")).await.unwrap().status
}

/// Waits until `/readyz` reports that the server accepts writes.
async fn wait_until_ready(server: &Server) {
    let mut connection = Connection::open(server.endpoint()).await.unwrap();
    let readyz = request("GET", "/readyz", "", "");
    for _ in 0..100_000 {
        if expect(&mut connection, &readyz, 200).await.is_ok() {
            return;
        }
    }
    panic!("the server did not notice the free space");
}
