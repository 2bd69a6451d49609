//! One flipped bit anywhere in a store's files, after a clean stop and after `kill -9`: the server starts at the first
//! try with the right data, or refuses because the journal itself is damaged, and says what to do.
//!
//! The long form: `FORMS_FLIPS=2000 cargo test --release --test it process::flips`; `FORMS_FLIP=17` runs that one alone.

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
use super::common::table::say;
use super::common::wire::{Connection, request};
use crate::store::Scrambled;

/// Flips, where `FORMS_FLIPS` says nothing else.
const FLIPS: u64 = 34;

/// Submissions that are there from the beginning.
const STORED: u64 = 300;

/// A proof of an index this small, and a rebuild of it, that take longer have failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a flip is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// The last copy in the index of the first row under these letters.
    Row(&'static str),
    /// The first bytes of sled's file, and its other files.
    Meta,
    /// Any byte of sled's file.
    Index,
    /// A file beside journal and index.
    File(&'static str),
    /// The headers of a segment.
    Header,
    /// Any byte of the journal.
    Journal,
}

const AIMS: [Aim; 17] = [
    Aim::Row("W"),
    Aim::Row("K"),
    Aim::Row("Mbs"),
    Aim::Row("C"),
    Aim::Row("F"),
    Aim::Row("S"),
    Aim::Row("Ma"),
    Aim::Meta,
    Aim::Index,
    Aim::Index,
    Aim::Index,
    Aim::File("operator-key"),
    Aim::File("state"),
    Aim::File("lock"),
    Aim::Header,
    Aim::Journal,
    Aim::Journal,
];

#[test]
fn a_flipped_bit_costs_no_start_and_no_data() {
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
        let form = published_form(server.address(), &key).await.unwrap();
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
    /// Of those, served something else before the index was proved.
    served_after_a_while: u64,
    refused: u64,
}

async fn flip_once(data: &Path, form: &Form, round: u64, counts: &mut Counts) {
    let draw = Draw(Scrambled::new(round));
    let aim = AIMS[(round % AIMS.len() as u64) as usize];
    let rows = (!matches!(aim, Aim::Row(_))).then(Vec::new).unwrap_or_else(|| needle(data, aim));
    let server = start(data).unwrap();
    let here = Form { address: server.address(), ..form.clone() };
    change(&here, round).await;
    let before = settled(&here).await;
    let is_clean = (round / AIMS.len() as u64).is_multiple_of(2);
    if is_clean {
        server.stop().unwrap();
    } else {
        wait_for_seal(data);
        server.kill().unwrap();
    }
    let (file, at) = place(data, aim, &rows, &draw);
    let bit = 1 << draw.below(8);
    let flipped = flip(&file, at, bit);
    let shown = file.display();
    say(&format!("round {round}: {aim:?}, bit {bit:#04x} at {at} of {shown}, clean: {is_clean}")).unwrap();
    match start(data) {
        Ok(server) => {
            let here = Form { address: server.address(), ..form.clone() };
            let begun = Instant::now();
            let mut looks = 0;
            loop {
                let shown = dump(&here).await;
                if shown.as_ref() == Some(&before) {
                    break;
                }
                let log = fs::read_to_string(data.with_extension("log")).unwrap();
                assert!(begun.elapsed() < PATIENCE, "round {round}: {shown:?}\nbefore: {before:?}\n{log}");
                looks += 1;
            }
            counts.served += 1;
            counts.served_after_a_while += u64::from(looks > 0);
            server.stop().unwrap();
            // A closed segment is not read by every start: the next rounds are about their own flips.
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

/// Starts the server with a log of its own.
fn start(data: &Path) -> std::io::Result<Server> {
    fs::write(data.with_extension("log"), "")?;
    Server::start(&mut forms_serve(data)?)
}

/// Randomness of one round.
struct Draw(Scrambled);

impl Draw {
    fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_be_bytes(bytes) % bound
    }
}

/// Changes something of every kind, so that the files are not those of the round before.
async fn change(form: &Form, round: u64) {
    let mut connection = Connection::open(form.address).await.unwrap();
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

/// Everything the server shows once it serves all of it: damage of the round before may be met only now.
async fn settled(form: &Form) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        if let Some(shown) = dump(form).await {
            return shown;
        }
        assert!(begun.elapsed() < PATIENCE, "an undamaged store serves");
    }
}

/// Everything the server shows; `None` where it does not serve all of it.
async fn dump(form: &Form) -> Option<Vec<Value>> {
    let mut connection = Connection::open(form.address).await.unwrap();
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

/// Waits until the last frame of the journal is a seal: what was acknowledged within the last moments of a machine can
/// not be told from what was not.
fn wait_for_seal(data: &Path) {
    let begun = Instant::now();
    loop {
        let segment = segments(data).pop().unwrap();
        let bytes = fs::read(&segment).unwrap();
        let mut frames = (8192..bytes.len()).step_by(512).filter(|&at| bytes[at..].starts_with(b"frm1"));
        // No changes, and nothing written behind it.
        if frames.next_back().is_some_and(|at| bytes[at + 12..at + 16] == [0; 4]) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the journal is not sealed");
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

/// The body of the row aimed at; its bytes stand in sled's file somewhere.
fn needle(data: &Path, aim: Aim) -> Vec<u8> {
    let Aim::Row(prefix) = aim else { return Vec::new() };
    if prefix == "Ma" {
        // Nobody but the engine reads it: its key is looked for.
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

/// The file and the byte in it that a bit is flipped in.
fn place(data: &Path, aim: Aim, needle: &[u8], draw: &Draw) -> (PathBuf, u64) {
    let db = data.join("index/db");
    let any = |path: PathBuf, bound: u64| {
        let length = fs::metadata(&path).unwrap().len().min(bound).max(1);
        (path, draw.below(length))
    };
    match aim {
        Aim::Row(_) => {
            let bytes = fs::read(&db).unwrap();
            let found = bytes.windows(needle.len()).rposition(|window| window == needle);
            match found {
                Some(at) => (db, at as u64 + draw.below(needle.len() as u64)),
                // Written in pieces, or changed since.
                None => any(db, u64::MAX),
            }
        }
        Aim::Meta => {
            let mut files: Vec<_> =
                fs::read_dir(data.join("index")).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.retain(|path| path.is_file());
            files.sort();
            any(files[draw.below(files.len() as u64) as usize].clone(), 4096)
        }
        Aim::Index => any(db, u64::MAX),
        Aim::File(name) => any(data.join(name), u64::MAX),
        Aim::Header => {
            let (file, at) =
                any(segments(data)[draw.below(segments(data).len() as u64) as usize].clone(), 68);
            (file, at + 4096 * draw.below(2))
        }
        Aim::Journal => {
            let segments = segments(data);
            let file = segments[draw.below(segments.len() as u64) as usize].clone();
            // Where something is written.
            let written = fs::read(&file).unwrap().iter().rposition(|&byte| byte != 0).unwrap_or(0) as u64;
            any(file, written + 1)
        }
    }
}

/// Flips bits of a byte, and returns what it is then; `None` beyond the end of the file.
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
