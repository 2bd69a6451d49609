//! `kill -9` under load and while the journal is compacted, while a store is opened, and while its index is rebuilt: nothing
//! acknowledged is lost.
//!
//! The long form: `FORMS_KILLS=200 cargo test --release --test it process::kill`.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use forms::store::sled::engine::Engine;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};

use super::common::server::Server;
use super::recorder::Recorder;
use super::{forms_on, has_strace, serve_by, start, with_data};
use crate::engine::random::Random;

/// Rounds unless `FORMS_KILLS` is set.
const ROUNDS: u64 = 9;

/// Time for verifying an index this small.
const VERIFICATION_TIMEOUT: Duration = Duration::from_secs(60);

/// What is killed in a round, after a server under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillPoint {
    /// Nothing else.
    UnderLoad,
    /// The server that opens the store next.
    Opening,
    /// The server that rebuilds the index, which was removed.
    Rebuilding,
}

#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let rounds = rounds();
    let may_trace = has_strace("a kill while a store is opened");
    with_data(async |data| {
        let first = start(data);
        let mut recorder = Recorder::new(&first, data).await;
        first.kill().unwrap();
        let mut killed = 0;
        for round in 0..rounds {
            let server = start(data);
            let enough = draw(round, 0, 400);
            let mut compact = forms_on(&server, data);
            compact.args(["store", "compact"]).stdout(Stdio::null()).stderr(Stdio::null());
            let mut compaction = compact.spawn().unwrap();
            recorder.store_until(server, enough as usize, |server| server.kill().unwrap()).await;
            compaction.wait().unwrap();
            let kill_point =
                [KillPoint::UnderLoad, KillPoint::Opening, KillPoint::Rebuilding][round as usize % 3];
            println!("round {round}: {kill_point:?}, {} stored", recorder.count());
            if kill_point == KillPoint::Rebuilding {
                std::fs::remove_dir_all(data.join("index")).unwrap();
            }
            if kill_point != KillPoint::UnderLoad && may_trace {
                killed += u64::from(is_killed_at_write(data, 1 + draw(round, 1, 24)));
            }
            let server = start(data);
            recorder.verify(&server).await;
            server.kill().unwrap();
            compare_index_and_journal(data, round);
        }
        assert!(recorder.count() as u64 >= rounds, "too few submissions to prove anything");
        assert!(!may_trace || killed > 0, "no server was killed while it opened the store");
    });
}

/// The number of rounds.
pub(super) fn rounds() -> u64 {
    std::env::var("FORMS_KILLS").map_or(ROUNDS, |text| text.parse().unwrap())
}

/// A random number below `bound`, the same in every run.
pub(super) fn draw(round: u64, stream: u64, bound: u64) -> u64 {
    Random::new(round * 2 + stream).next() % bound
}

/// Starts a server that is killed at its `nth` write, sync or rename; returns whether that was before it was ready.
fn is_killed_at_write(data: &Path, nth: u64) -> bool {
    let calls = "pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat";
    let inject = format!("inject={calls}:signal=KILL:when={nth}");
    let trace = format!("trace={calls}");
    let strace = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    match Server::start(&mut serve_by(&strace, data, &[])) {
        Ok(server) => {
            server.kill().unwrap();
            false
        }
        Err(_killed) => true,
    }
}

/// Fails unless the digest of the index matches that of the journal.
fn compare_index_and_journal(data: &Path, round: u64) {
    let (sender, events) = channel();
    let report = Arc::new(move |event| sender.send(event).unwrap_or_default());
    let engine = Engine::open_path(data, EngineOptions::default(), report).unwrap();
    loop {
        match events
            .recv_timeout(VERIFICATION_TIMEOUT)
            .unwrap_or_else(|_| panic!("round {round}: the index was not verified"))
        {
            EngineEvent::Verified => break,
            event @ (EngineEvent::Rebuilding { .. } | EngineEvent::DigestMismatch { .. }) => {
                panic!("round {round}: {event:?}")
            }
            _ => {}
        }
    }
    engine.close().unwrap();
}
