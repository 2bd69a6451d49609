//! A disk that runs full: writes are refused, reads go on, and all of it heals by itself when there is room again.
//!
//! The long form: `FORMS_FILLS=50 cargo test --release --test it process::full`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::common::fill::expect;
use super::common::server::Server;
use super::common::settings;
use super::common::wire::{Connection, request};
use super::witness::Witness;
use super::{block_on, serve_by};

/// Size of the file system, and what the server leaves free on it.
const SIZE: u64 = 32 << 20;
const MIN_FREE: u64 = 4 << 20;

#[test]
fn a_full_disk_heals_when_room_returns() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    fs::create_dir(&data).unwrap();
    block_on(async {
        let min_free = MIN_FREE.to_string();
        let server =
            Server::start(&mut serve_on_small_disk(&data, SIZE, &["--min-free", &min_free])).unwrap();
        let seen = seen_by(&server, &data);
        let mut witness = Witness::new(&server, &seen).await;
        assert_eq!(witness.store_one(&server).await.0, 201);

        let filler = seen.join("filler");
        fs::write(&filler, vec![0; (free(&seen) - MIN_FREE / 2) as usize]).unwrap();
        let (status, problem) = witness.store_one(&server).await;
        assert_eq!((status, problem["code"].as_str()), (503, Some("storage_full")), "{problem}");
        assert_eq!(readiness(&server).await, 503);
        witness.verify(&server).await;

        fs::remove_file(&filler).unwrap();
        wait_until_ready(&server).await;
        assert_eq!(witness.store_one(&server).await.0, 201);
        witness.verify(&server).await;
        assert_eq!(witness.count(), 2);
        assert_eq!(server.stop().unwrap().code(), Some(0));
    });
}

/// Rounds with each setting, where `FORMS_FILLS` says nothing else.
const FILLS: u64 = 3;

/// Rounds after which a new store is begun: the file system must not be filled by what is stored.
const ROUNDS_OF_A_STORE: usize = 10;

/// Connections that store until there is no room.
const CONNECTIONS: u64 = 64;

/// Size of the file system that is filled again and again: the default leaves 128 MiB free.
const LARGER_SIZE: u64 = 1 << 30;

#[test]
fn a_disk_that_others_fill_under_load_never_ends_the_server() {
    let rounds = std::env::var("FORMS_FILLS").map_or(FILLS, |text| text.parse().unwrap());
    // The less is kept free, the likelier the index has no room for what the journal has taken.
    for settings in [&[][..], &["--min-free", "256KiB"]] {
        let starts = (0..rounds).step_by(ROUNDS_OF_A_STORE);
        let (mut stored, mut without_room) = (0, 0);
        for start in starts {
            let (more, times) =
                fill_again_and_again(settings, rounds.min(start + ROUNDS_OF_A_STORE as u64) - start);
            (stored, without_room) = (stored + more, without_room + times);
        }
        println!(
            "{settings:?}: {rounds} rounds, {stored} stored, {without_room} times without room for the index"
        );
    }
}

/// Runs rounds on a store of their own; returns how much was stored, and how often the index had no room.
fn fill_again_and_again(settings: &[&str], rounds: u64) -> (usize, usize) {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    fs::create_dir(&data).unwrap();
    let stored = block_on(async {
        let mut server = Server::start(&mut serve_on_small_disk(&data, LARGER_SIZE, settings)).unwrap();
        let seen = seen_by(&server, &data);
        let mut witness = Witness::new(&server, &seen).await.of_large_answers();
        for round in 0..rounds {
            let filler = seen.join("filler");
            let removed = filler.clone();
            // Beside the load, which ends as soon as there is no room for more of it.
            let begin = |server| (server, thread::spawn(move || fill(&filler)));
            let filled = witness.store_from(CONNECTIONS, server, 100 + 97 * round as usize, begin).await;
            server = filled.0;
            filled.1.join().unwrap();
            for _ in 0..20 {
                let (status, problem) = witness.store_one(&server).await;
                assert_eq!(status, 503, "round {round}: {problem}");
            }
            fs::remove_file(&removed).unwrap();
            wait_until_ready(&server).await;
            assert_eq!(witness.store_one(&server).await.0, 201, "round {round}");
            witness.verify(&server).await;
        }
        assert_eq!(server.stop().unwrap().code(), Some(0));
        witness.count()
    });
    let log = fs::read_to_string(data.with_extension("log")).unwrap();
    assert!(!log.contains("Rebuilding"), "want of room is not damage: {log}");
    (stored, log.matches("NoRoom").count())
}

/// Writes to `filler` until there is no room at all.
fn fill(filler: &Path) {
    let mut file = fs::File::create(filler).unwrap();
    let zeros = vec![0; 4 << 20];
    for size in [4 << 20, 64 << 10, 4096] {
        while file.write_all(&zeros[..size]).is_ok() {}
    }
}

/// The server on a file system of its own of `size` bytes, which only it sees and which ends with it.
fn serve_on_small_disk(data: &Path, size: u64, settings: &[&str]) -> Command {
    let mount = format!(
        "mount -t tmpfs -o mode=0700,size={size} forms-test {} && exec \"$@\"",
        data.to_str().unwrap()
    );
    let user = if rustix::process::getuid().is_root() { "-m" } else { "-rm" };
    serve_by(&["unshare", user, "sh", "-c", &mount, "sh"], data, settings)
}

/// `path` as the server sees it.
fn seen_by(server: &Server, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", server.pid()));
    root.join(path.strip_prefix("/").unwrap())
}

fn free(path: &Path) -> u64 {
    let room = rustix::fs::statvfs(path).unwrap();
    room.f_bavail * room.f_frsize
}

async fn readiness(server: &Server) -> u16 {
    let mut connection = Connection::open(server.address()).await.unwrap();
    connection.exchange(&request("GET", "/readyz", "", "")).await.unwrap().status
}

/// Asks until the server has noticed that there is room.
async fn wait_until_ready(server: &Server) {
    let mut connection = Connection::open(server.address()).await.unwrap();
    let readyz = request("GET", "/readyz", "", "");
    for _ in 0..100_000 {
        if expect(&mut connection, &readyz, 200).await.is_ok() {
            return;
        }
    }
    panic!("the server does not notice the room");
}
