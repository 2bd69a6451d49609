//! A disk that runs full: writes are refused, reads go on, and all of it heals by itself when there is room again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
        let server = Server::start(&mut serve_on_small_disk(&data)).unwrap();
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

/// The server on a file system of its own, which only it sees and which ends with it.
fn serve_on_small_disk(data: &Path) -> Command {
    let mount = format!(
        "mount -t tmpfs -o mode=0700,size={SIZE} forms-test {} && exec \"$@\"",
        data.to_str().unwrap()
    );
    let user = if rustix::process::getuid().is_root() { "-m" } else { "-rm" };
    serve_by(&["unshare", user, "sh", "-c", &mount, "sh"], data, &["--min-free", &MIN_FREE.to_string()])
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
