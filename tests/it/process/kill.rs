//! `kill -9` under load, while a store is opened and while its index is rebuilt: nothing acknowledged is lost.
//!
//! The long form: `FORMS_KILLS=200 cargo test --release --test it process::kill`.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use forms::id::Random;
use forms::store::sled::engine::Engine;
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};

use super::common::server::{Server, forms_serve};
use super::common::settings;
use super::witness::Witness;
use super::{block_on, has_strace, serve_by};
use crate::store::Scrambled;

/// Rounds, where `FORMS_KILLS` says nothing else.
const ROUNDS: u64 = 20;

/// A proof of an index this small that takes longer has failed.
const PROOF: Duration = Duration::from_secs(60);

/// What dies in a round, after a server under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// Nothing else.
    UnderLoad,
    /// The server that opens the store next.
    Opening,
    /// The one that rebuilds the index, which is removed.
    Rebuilding,
}

#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let rounds = std::env::var("FORMS_KILLS").map_or(ROUNDS, |text| text.parse().unwrap());
    let may_trace = has_strace("dying while a store is opened");
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let first = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let mut witness = Witness::new(&first, &data).await;
        first.kill().unwrap();
        let mut died = 0;
        for round in 0..rounds {
            let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
            let enough = draw(round, 0, 400);
            witness.store_until(server, enough as usize, |server| server.kill().unwrap()).await;
            let death = [Death::UnderLoad, Death::Opening, Death::Rebuilding][round as usize % 3];
            println!("round {round}: {death:?}, {} stored", witness.count());
            if death == Death::Rebuilding {
                std::fs::remove_dir_all(data.join("index")).unwrap();
            }
            if death != Death::UnderLoad && may_trace {
                died += u64::from(dies_at_write(&data, 1 + draw(round, 1, 24)));
            }
            let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
            witness.verify(&server).await;
            server.kill().unwrap();
            compare_index_and_journal(&data, round);
        }
        assert!(witness.count() as u64 >= rounds, "too few submissions to prove anything");
        assert!(!may_trace || died > 0, "no server died while opening");
    });
}

/// A number below `bound`, the same in every run.
fn draw(round: u64, what: u64, bound: u64) -> u64 {
    let mut bytes = [0; 8];
    Scrambled::new(round * 2 + what).fill(&mut bytes);
    u64::from_be_bytes(bytes) % bound
}

/// Starts a server that is killed at its `nth` write, sync or rename; whether it died before it was ready.
fn dies_at_write(data: &Path, nth: u64) -> bool {
    let calls = "pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat";
    let inject = format!("inject={calls}:signal=KILL:when={nth}");
    let trace = format!("trace={calls}");
    let strace = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    match Server::start(&mut serve_by(&strace, data, &[])) {
        Ok(server) => {
            server.kill().unwrap();
            false
        }
        Err(_died) => true,
    }
}

/// Fails unless the index sums up to what the journal says.
fn compare_index_and_journal(data: &Path, round: u64) {
    let (tell, events) = channel();
    let report = Arc::new(move |event| tell.send(event).unwrap_or_default());
    let engine = Engine::open_path(data, EngineOptions::default(), report).unwrap();
    loop {
        match events.recv_timeout(PROOF).unwrap_or_else(|_| panic!("round {round}: no proof")) {
            EngineEvent::Verified => break,
            event @ (EngineEvent::Rebuilding { .. } | EngineEvent::DigestMismatch { .. }) => {
                panic!("round {round}: {event:?}")
            }
            _ => {}
        }
    }
    engine.close().unwrap();
}
