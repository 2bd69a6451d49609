//! One flipped bit in any file of a store, after a clean stop and after `kill -9`: the server starts at the first
//! attempt with the right data, or refuses because the journal itself is damaged, and says what to do.
//!
//! The long form: `FORMS_FLIPS=2000 cargo test --release --test it process::bit_flips`; `FORMS_FLIP=17` runs only that one.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forms::id::Random;
use forms::store::sled::engine::Engine;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::sled::engine::tx::Direction;
use serde_json::Value;

use super::block_on;
use super::common::fill::{Form, expect, published_form};
use super::common::server::{Server, forms_serve, operator_key};
use super::common::settings;
use super::common::table::report_progress;
use super::common::wire::{Connection, request};
use crate::store::SeededRandom;

/// Flips unless `FORMS_FLIPS` is set.
const FLIPS: u64 = 34;

/// Submissions stored before the first flip.
const STORED: u64 = 300;

/// Time for verifying or rebuilding an index this small.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Where a bit is flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlipTarget {
    /// The last copy in the index of the first row with this key prefix.
    Row(&'static str),
    /// The first 4096 bytes of each of sled's files.
    Meta,
    /// Any byte of sled's file.
    Index,
    /// A file next to the journal and the index.
    File(&'static str),
    /// The headers of a segment.
    Header,
    /// Any byte of the journal.
    Journal,
}

const FLIP_TARGETS: [FlipTarget; 17] = [
    FlipTarget::Row("W"),
    FlipTarget::Row("K"),
    FlipTarget::Row("Mbs"),
    FlipTarget::Row("C"),
    FlipTarget::Row("F"),
    FlipTarget::Row("S"),
    FlipTarget::Row("Ma"),
    FlipTarget::Meta,
    FlipTarget::Index,
    FlipTarget::Index,
    FlipTarget::Index,
    FlipTarget::File("operator-key"),
    FlipTarget::File("state"),
    FlipTarget::File("lock"),
    FlipTarget::Header,
    FlipTarget::Journal,
    FlipTarget::Journal,
];

#[test]
fn a_flipped_bit_loses_no_data_and_never_prevents_a_start_with_a_sound_journal() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let rounds = match number("FORMS_FLIP") {
        Some(one) => one..one + 1,
        None => 0..number("FORMS_FLIPS").unwrap_or(FLIPS),
    };
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    let mut counts = Counts::default();
    block_on(async {
        let server = start(&data).unwrap();
        let key = operator_key(&data).unwrap();
        let form = published_form(server.endpoint(), &key).await.unwrap();
        form.fill(STORED).await.unwrap();
        server.stop().unwrap();
        for round in rounds {
            flip_once(&data, &Form { ..form.clone() }, round, &mut counts).await;
        }
    });
    println!("{counts:?}");
    assert!(counts.served > counts.refused, "{counts:?}");
}

#[derive(Debug, Default)]
struct Counts {
    served: u64,
    /// Of those, first served something else, until the index was verified.
    served_after_retry: u64,
    refused: u64,
}

async fn flip_once(data: &Path, form: &Form, round: u64, counts: &mut Counts) {
    let random = RoundRandom(SeededRandom::new(round));
    let target = FLIP_TARGETS[(round % FLIP_TARGETS.len() as u64) as usize];
    let rows =
        (!matches!(target, FlipTarget::Row(_))).then(Vec::new).unwrap_or_else(|| row_bytes(data, target));
    let server = start(data).unwrap();
    let here = Form { endpoint: server.endpoint(), ..form.clone() };
    change(&here, round).await;
    let before = wait_until_served(&here).await;
    let is_clean = (round / FLIP_TARGETS.len() as u64).is_multiple_of(2);
    if is_clean {
        server.stop().unwrap();
    } else {
        wait_for_seal(data);
        server.kill().unwrap();
    }
    let (file, at) = locate(data, target, &rows, &random);
    let bit = 1 << random.below(8);
    let flipped = flip(&file, at, bit);
    let shown = file.display();
    report_progress(&format!(
        "round {round}: {target:?}, bit {bit:#04x} at {at} of {shown}, clean: {is_clean}"
    ))
    .unwrap();
    match start(data) {
        Ok(server) => {
            let here = Form { endpoint: server.endpoint(), ..form.clone() };
            let begun = Instant::now();
            let mut attempts = 0;
            loop {
                let shown = dump(&here).await;
                if shown.as_ref() == Some(&before) {
                    break;
                }
                let log = fs::read_to_string(data.with_extension("log")).unwrap();
                assert!(begun.elapsed() < TIMEOUT, "round {round}: {shown:?}\nbefore: {before:?}\n{log}");
                attempts += 1;
            }
            counts.served += 1;
            counts.served_after_retry += u64::from(attempts > 0);
            server.stop().unwrap();
            // Not every start reads a closed segment: without this the flip would still be there in later rounds.
            if file.starts_with(data.join("journal"))
                && flipped.is_some_and(|flipped| byte_at(&file, at) == Some(flipped))
            {
                flip(&file, at, bit);
            }
        }
        Err(_refused) => {
            let log = fs::read_to_string(data.with_extension("log")).unwrap();
            assert!(file.starts_with(data.join("journal")), "round {round}: refused a sound journal: {log}");
            assert!(log.contains("the journal is damaged") && log.contains("restore a backup"), "{log}");
            counts.refused += 1;
            flip(&file, at, bit);
        }
    }
}

/// Starts the server with an empty log file.
fn start(data: &Path) -> std::io::Result<Server> {
    fs::write(data.with_extension("log"), "")?;
    Server::start(&mut forms_serve(data)?)
}

/// Random numbers of one round.
struct RoundRandom(SeededRandom);

impl RoundRandom {
    fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_be_bytes(bytes) % bound
    }
}

/// Submits, then edits, trashes or purges, so that the files differ from those of the previous round.
async fn change(form: &Form, round: u64) {
    let mut connection = Connection::open(form.endpoint).await.unwrap();
    let body = format!(r#"{{"answers":{{"q1":"round {round}","q3":3}}}}"#);
    let submit = request("POST", &format!("{}/submissions", form.path()), &form.key, &body);
    let made: Value = serde_json::from_slice(expect(&mut connection, &submit, 201).await.unwrap()).unwrap();
    let one = format!("{}/submissions/{}", form.path(), made["id"].as_str().unwrap());
    let (method, status, body) = match round % 3 {
        0 => ("PATCH", 200, r#"{"answers":{"q1":"edited"}}"#),
        1 => ("DELETE", 204, ""),
        _ => ("DELETE", 204, ""),
    };
    let path = if round % 3 == 2 { format!("{one}?purge=true") } else { one };
    expect(&mut connection, &request(method, &path, &form.key, body), status).await.unwrap();
}

/// Everything the server shows, once it can serve all of it: it may find damage of the previous round only now.
async fn wait_until_served(form: &Form) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        if let Some(shown) = dump(form).await {
            return shown;
        }
        assert!(begun.elapsed() < TIMEOUT, "an undamaged store is not served");
    }
}

/// Everything the server shows; `None` if any request fails.
async fn dump(form: &Form) -> Option<Vec<Value>> {
    let mut connection = Connection::open(form.endpoint).await.unwrap();
    let (path, mut shown) = (form.path(), Vec::new());
    let paths = ["", "/versions", "/submissions?limit=1000", "/submissions?limit=1000&trashed=true"];
    let paths = paths.map(|rest| format!("{path}{rest}"));
    for path in paths.into_iter().chain(["/api/v1/forms", "/api/v1/whoami"].map(str::to_owned)) {
        let answer = connection.exchange(&request("GET", &path, &form.key, "")).await.unwrap();
        if answer.status != 200 {
            return None;
        }
        shown.push(serde_json::from_slice(answer.body).unwrap());
    }
    Some(shown)
}

/// Waits until the last frame of the journal is a seal: after that frame, damage cannot be distinguished from a write
/// that was torn by the crash.
fn wait_for_seal(data: &Path) {
    let begun = Instant::now();
    loop {
        let segment = segments(data).pop().unwrap();
        let bytes = fs::read(&segment).unwrap();
        let mut frames = (8192..bytes.len()).step_by(512).filter(|&at| bytes[at..].starts_with(b"frm1"));
        // A seal has no changes, and nothing is written after it.
        if frames.next_back().is_some_and(|at| bytes[at + 12..at + 16] == [0; 4]) {
            return;
        }
        assert!(begun.elapsed() < TIMEOUT, "the journal is not sealed");
        std::thread::yield_now();
    }
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(data.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> =
        names.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    segments.sort();
    segments
}

/// The body of the targeted row, to be searched for in sled's file.
fn row_bytes(data: &Path, target: FlipTarget) -> Vec<u8> {
    let FlipTarget::Row(prefix) = target else { return Vec::new() };
    if prefix == "Ma" {
        // Only the engine reads this row, so its key is searched for.
        return b"Ma".to_vec();
    }
    let options = EngineOptions { verify_index: false, ..EngineOptions::default() };
    let engine = Engine::open_path(data, options, std::sync::Arc::new(|_| ())).unwrap();
    let rows = engine.reader().scan(prefix.as_bytes().to_vec().., Direction::Ascending, 1).unwrap();
    engine.close().unwrap();
    let (key, body) = rows.into_iter().next().unwrap();
    assert!(key.starts_with(prefix.as_bytes()));
    body
}

/// The file, and the offset in it, of the byte in which a bit is flipped.
fn locate(data: &Path, target: FlipTarget, needle: &[u8], random: &RoundRandom) -> (PathBuf, u64) {
    let db = data.join("index/db");
    let any = |path: PathBuf, bound: u64| {
        let length = fs::metadata(&path).unwrap().len().min(bound).max(1);
        (path, random.below(length))
    };
    match target {
        FlipTarget::Row(_) => {
            let bytes = fs::read(&db).unwrap();
            let found = bytes.windows(needle.len()).rposition(|window| window == needle);
            match found {
                Some(at) => (db, at as u64 + random.below(needle.len() as u64)),
                // The row is stored in pieces, or has changed.
                None => any(db, u64::MAX),
            }
        }
        FlipTarget::Meta => {
            let mut files: Vec<_> =
                fs::read_dir(data.join("index")).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.retain(|path| path.is_file());
            files.sort();
            any(files[random.below(files.len() as u64) as usize].clone(), 4096)
        }
        FlipTarget::Index => any(db, u64::MAX),
        FlipTarget::File(name) => any(data.join(name), u64::MAX),
        FlipTarget::Header => {
            let (file, at) =
                any(segments(data)[random.below(segments(data).len() as u64) as usize].clone(), 68);
            (file, at + 4096 * random.below(2))
        }
        FlipTarget::Journal => {
            let segments = segments(data);
            let file = segments[random.below(segments.len() as u64) as usize].clone();
            // Only up to the last byte written.
            let written = fs::read(&file).unwrap().iter().rposition(|&byte| byte != 0).unwrap_or(0) as u64;
            any(file, written + 1)
        }
    }
}

/// Flips `bits` of a byte and returns its new value; `None` beyond the end of the file.
fn flip(file: &Path, at: u64, bits: u8) -> Option<u8> {
    let flipped = byte_at(file, at)? ^ bits;
    OpenOptions::new().write(true).open(file).unwrap().write_all_at(&[flipped], at).unwrap();
    Some(flipped)
}

fn byte_at(file: &Path, at: u64) -> Option<u8> {
    let mut byte = [0];
    let read = File::open(file).unwrap().read_exact_at(&mut byte, at);
    read.ok().map(|()| byte[0])
}
