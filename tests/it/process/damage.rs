//! Damage to any file of a store, after a clean stop and after `kill -9`: the server starts at the first attempt with the
//! right data, or refuses because the journal itself is damaged, and says what to do.
//!
//! The long form: `FORMS_DAMAGES=2000 cargo test --release --test it process::damage`; `FORMS_DAMAGE=17` runs only that one.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forms::store::sled::engine::Engine;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::sled::engine::tx::Direction;
use serde_json::Value;

use super::common::fill::{Form, expect, published_form};
use super::common::server::{Server, forms_serve, operator_key};
use super::common::table::report_progress;
use super::common::wire::{Connection, request};
use super::with_data;
use crate::engine::random::Random;

/// Submissions stored before the first damage.
const STORED: u64 = 300;

/// Time for verifying or rebuilding an index this small.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What is damaged: by a flipped bit, unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The last copy in the index of the first row with this key prefix.
    Row(&'static str),
    /// The first 4096 bytes of each of sled's files.
    Meta,
    /// Any byte of sled's file.
    Index,
    /// Sled's file, which is cut.
    IndexEnd,
    /// A file next to the journal and the index.
    File(&'static str),
    /// The headers of a segment.
    Header,
    /// Any byte of the journal.
    Journal,
    /// Any byte of the journal, and the whole index, which is removed.
    JournalWithoutIndex,
    /// A segment, which is cut. After a kill that could not be distinguished from a torn write; a bit is flipped.
    JournalEnd,
    /// A segment, which is removed, or as above.
    Segment,
}

/// Their number is odd, so that each occurs after stops and after kills.
const TARGETS: [Target; 21] = [
    Target::Row("W"),
    Target::Row("K"),
    Target::Row("Mbs"),
    Target::Row("C"),
    Target::Row("F"),
    Target::Row("S"),
    Target::Row("Ma"),
    Target::Meta,
    Target::Index,
    Target::Index,
    Target::Index,
    Target::IndexEnd,
    Target::File("operator-key"),
    Target::File("state"),
    Target::File("lock"),
    Target::Header,
    Target::Journal,
    Target::Journal,
    Target::JournalEnd,
    Target::JournalWithoutIndex,
    Target::Segment,
];

#[test]
fn damage_loses_no_data_and_never_prevents_a_start_with_a_sound_journal() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let rounds = match number("FORMS_DAMAGE") {
        Some(one) => one..one + 1,
        None => 0..number("FORMS_DAMAGES").unwrap_or(TARGETS.len() as u64),
    };
    let mut counts = Counts::default();
    with_data(async |data| {
        let server = start(data).unwrap();
        let form = published_form(server.endpoint(), &operator_key(data).unwrap()).await.unwrap();
        form.fill(STORED).await.unwrap();
        server.stop().unwrap();
        for round in rounds {
            damage_once(data, &form, round, &mut counts).await;
        }
    });
    println!("{counts:?}");
    assert!(counts.served > counts.refused, "{counts:?}");
}

#[derive(Debug, Default)]
struct Counts {
    served: u64,
    refused: u64,
}

async fn damage_once(data: &Path, form: &Form, round: u64, counts: &mut Counts) {
    let (random, is_clean) = (&mut Random::new(round), round.is_multiple_of(2));
    let target = TARGETS[(round % TARGETS.len() as u64) as usize];
    let row = if let Target::Row(prefix) = target { row_bytes(data, prefix) } else { Vec::new() };
    let server = start(data).unwrap();
    let here = Form { endpoint: server.endpoint(), ..form.clone() };
    change(&here, round).await;
    let before = wait_until_served(&here).await;
    if is_clean {
        server.stop().unwrap();
    } else {
        wait_for_seal(data);
        server.kill().unwrap();
    }
    let (file, at) = locate(data, target, &row, random);
    let sound = fs::read(&file).unwrap();
    match target {
        Target::Segment if is_clean => fs::remove_file(&file).unwrap(),
        Target::IndexEnd => cut(&file, at),
        Target::JournalEnd if is_clean => cut(&file, at),
        _ => flip(&file, at, 1 << random.below(8), &sound),
    }
    if target == Target::JournalWithoutIndex {
        fs::remove_dir_all(data.join("index")).unwrap();
    }
    let damaged = byte_at(&file, at);
    let shown = file.display();
    report_progress(&format!("round {round}: {target:?} at {at} of {shown}, clean: {is_clean}")).unwrap();
    match start(data) {
        Ok(server) => {
            let here = Form { endpoint: server.endpoint(), ..form.clone() };
            let begun = Instant::now();
            // It may serve something else until the index is verified.
            while dump(&here).await.as_ref() != Some(&before) {
                let log = fs::read_to_string(data.with_extension("log")).unwrap();
                assert!(begun.elapsed() < TIMEOUT, "round {round}: not what was stored: {before:?}\n{log}");
            }
            counts.served += 1;
            server.stop().unwrap();
            // Not every start reads a closed segment: without this the damage would still be there in later rounds.
            if file.starts_with(data.join("journal")) && byte_at(&file, at) == damaged {
                restore(&file, at, &sound);
            }
        }
        Err(_refused) => {
            let log = fs::read_to_string(data.with_extension("log")).unwrap();
            assert!(file.starts_with(data.join("journal")), "round {round}: refused a sound journal: {log}");
            assert!(log.contains("the journal is damaged") && log.contains("forms store salvage"), "{log}");
            counts.refused += 1;
            restore(&file, at, &sound);
        }
    }
}

fn cut(file: &Path, at: u64) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(at).unwrap();
}

/// Flips `bits` of a byte, if the file has it.
fn flip(file: &Path, at: u64, bits: u8, sound: &[u8]) {
    if let Some(byte) = sound.get(at as usize) {
        OpenOptions::new().write(true).open(file).unwrap().write_all_at(&[byte ^ bits], at).unwrap();
    }
}

/// Makes a file as it was, except for what was written behind the damage.
fn restore(file: &Path, at: u64, sound: &[u8]) {
    match byte_at(file, at) {
        Some(_) => flip(file, at, 0, sound),
        None => fs::write(file, sound).unwrap(),
    }
}

/// A byte of a file; `None` beyond its end.
fn byte_at(file: &Path, at: u64) -> Option<u8> {
    fs::read(file).ok()?.get(at as usize).copied()
}

/// Starts the server with an empty log file.
fn start(data: &Path) -> std::io::Result<Server> {
    fs::write(data.with_extension("log"), "")?;
    Server::start(&mut forms_serve(data)?)
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

/// The body of the first row with this key prefix, to be searched for in sled's file.
fn row_bytes(data: &Path, prefix: &str) -> Vec<u8> {
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

/// Any offset in a file, below `bound`.
fn any(file: PathBuf, bound: usize, random: &mut Random) -> (PathBuf, u64) {
    let length = (fs::metadata(&file).unwrap().len() as usize).clamp(1, bound);
    (file, random.below(length) as u64)
}

/// The file that is damaged, and the offset in it.
fn locate(data: &Path, target: Target, row: &[u8], random: &mut Random) -> (PathBuf, u64) {
    let db = data.join("index/db");
    match target {
        Target::Row(_) => {
            let bytes = fs::read(&db).unwrap();
            match bytes.windows(row.len()).rposition(|window| window == row) {
                Some(at) => (db, (at + random.below(row.len())) as u64),
                // The row is stored in pieces, or has changed.
                None => any(db, usize::MAX, random),
            }
        }
        Target::Meta => {
            let mut files: Vec<_> =
                fs::read_dir(data.join("index")).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.retain(|path| path.is_file());
            files.sort();
            any(random.pick(&files).clone(), 4096, random)
        }
        Target::Index | Target::IndexEnd => any(db, usize::MAX, random),
        Target::File(name) => any(data.join(name), usize::MAX, random),
        Target::Header => {
            (random.pick(&segments(data)).clone(), (random.below(68) + 4096 * random.below(2)) as u64)
        }
        Target::Journal | Target::JournalWithoutIndex | Target::JournalEnd | Target::Segment => {
            let file = random.pick(&segments(data)).clone();
            // Only up to the last byte written.
            let written = fs::read(&file).unwrap().iter().rposition(|&byte| byte != 0).unwrap_or(0);
            (file, random.below(written + 1) as u64)
        }
    }
}
