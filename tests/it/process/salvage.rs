//! Damaged stores: `store verify` names the damage, and `store salvage` loses exactly what it reports.
//!
//! The long form: `FORMS_DAMAGES=200 cargo test --release --test it process::salvage`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::common::fill::{Form, published_form};
use super::common::server::operator_key;
use super::common::table::report_progress;
use super::{forms, forms_on, start, with_data};
use crate::engine::random::Random;

/// Damaged stores unless `FORMS_DAMAGES` is set: two of each kind.
const ROUNDS: u64 = 14;

const FORMS: usize = 3;

/// Submissions of each form before and after a compaction, stored in turns.
const STORED: [u64; 2] = [200, 1_000];
const TURN: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    FrameHead,
    FrameBody,
    Base,
    SegmentEnd,
    Header,
    Removed,
    Cut,
}

const TARGETS: [Target; 7] = [
    Target::FrameHead,
    Target::FrameBody,
    Target::Base,
    Target::SegmentEnd,
    Target::Header,
    Target::Removed,
    Target::Cut,
];

/// The submissions of each form.
type Shown = BTreeMap<String, Value>;

#[derive(Debug, Default)]
struct Counts {
    nothing_lost: u64,
    exact: u64,
    more_lost: u64,
    forms_lost: u64,
}

#[test]
fn verify_names_damage_and_salvage_loses_exactly_what_it_reports() {
    let rounds = std::env::var("FORMS_DAMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut counts = Counts::default();
    with_data(async |data| {
        let ids = fill(data).await;
        let before = shown(data, &ids);
        assert_eq!(before.len(), FORMS * STORED.iter().sum::<u64>() as usize);
        for round in 0..rounds {
            damage_once(data, &ids, &before, round, &mut counts);
        }
    });
    println!("{counts:?}");
    assert!(counts.exact > 0 && counts.nothing_lost > 0, "{counts:?}");
}

/// Stores forms whose submissions are in a base and in several segments, and stops cleanly. Returns the ids of the forms.
async fn fill(data: &Path) -> Vec<String> {
    let server = start(data);
    let key = operator_key(data).unwrap();
    let mut forms: Vec<Form> = Vec::new();
    for _ in 0..FORMS {
        forms.push(published_form(server.endpoint(), &key).await.unwrap());
    }
    for (count, is_last) in STORED.into_iter().zip([false, true]) {
        for form in forms.iter().cycle().take(FORMS * (count / TURN) as usize) {
            form.fill(TURN).await.unwrap();
        }
        if !is_last {
            assert_eq!(run(forms_on(&server, data).args(["store", "compact"])).0, 0);
        }
    }
    server.stop().unwrap();
    forms.into_iter().map(|form| form.id).collect()
}

/// Everything that the store shows of these forms.
fn shown(data: &Path, ids: &[String]) -> Shown {
    let mut shown = Shown::new();
    for id in ids {
        let output = run(forms(data).args(["responses", id, "--all", "-o", "jsonl", "--data"]).arg(data));
        for line in output.1.lines() {
            let submission: Value = serde_json::from_str(line).unwrap();
            shown.insert(submission["id"].as_str().unwrap().to_owned(), submission);
        }
    }
    shown
}

/// Returns exit code and output.
fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn damage_once(sound: &Path, ids: &[String], before: &Shown, round: u64, counts: &mut Counts) {
    let (random, target) = (&mut Random::new(round), TARGETS[(round % TARGETS.len() as u64) as usize]);
    let (data, new) = (sound.with_extension("damaged"), sound.with_extension("salvaged"));
    for folder in [&data, &new] {
        drop(fs::remove_dir_all(folder));
    }
    copy(sound, &data);
    // A copy of the index has everything, too.
    let has_index = random.once_in(4);
    if !has_index {
        fs::remove_dir_all(data.join("index")).unwrap();
    }
    let file = damage(&data, target, random);
    report_progress(&format!("round {round}: {target:?} of {}, index: {has_index}", file.display())).unwrap();
    let (code, named, error) = run(forms(&data).args(["store", "verify", "--data"]).arg(&data));
    let name = file.strip_prefix(&data).unwrap().display().to_string();
    assert!(code == 1 && named.contains(&name), "round {round}: {named}{error}");

    let files = content(&data);
    let mut command = forms(&data);
    command.args(["store", "salvage", "-o", "json", "--data"]).arg(&data).arg("--to").arg(&new);
    let (code, report, error) = run(&mut command);
    assert_eq!(content(&data), files, "round {round}: the damaged store was changed");
    let report: Value = serde_json::from_str(&report).unwrap_or_else(|_| panic!("round {round}: {error}"));
    let after = shown(&new, ids);
    assert!(after.iter().all(|(id, one)| before.get(id) == Some(one)), "round {round}: {report}");
    let (lost, claimed) =
        (before.len() - after.len(), report["submissions"]["lost"].as_u64().unwrap() as usize);
    let is_all = !error.contains("at least");
    counts.nothing_lost += u64::from(lost == 0);
    counts.exact += u64::from(lost > 0 && lost == claimed);
    counts.more_lost += u64::from(lost > claimed);
    counts.forms_lost += report["forms"]["lost"].as_u64().unwrap();
    assert_eq!(code == 0, lost == 0 && is_all, "round {round}: {report} {error}");
    assert!(claimed <= lost && (claimed == lost || !is_all), "round {round}: {lost} lost, {report}");
    assert_eq!(report["submissions"]["read"].as_u64().unwrap() as usize, after.len(), "round {round}");
}

/// Damages a store; returns the file.
fn damage(data: &Path, target: Target, random: &mut Random) -> PathBuf {
    let mut files: Vec<_> = content(&data.join("journal")).into_iter().collect();
    files.sort();
    let of =
        |end: &str| -> Vec<_> { files.iter().filter(|(path, _)| path.ends_with(end)).cloned().collect() };
    let segments = of(".log");
    let (name, mut bytes) =
        if target == Target::Base { of(".base").remove(0) } else { random.pick(&segments).clone() };
    let path = data.join("journal").join(name);
    let frames = |bytes: &[u8]| -> Vec<usize> {
        (8192..bytes.len()).step_by(512).filter(|at| bytes[*at..].starts_with(b"frm1")).collect()
    };
    let written: Vec<_> = frames(&bytes);
    let length = |at: usize| u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
    let at = match target {
        Target::FrameHead => random.pick(&written) + random.below(48),
        Target::FrameBody => {
            let at = *random.pick(&written);
            at + random.below(48 + length(at))
        }
        Target::Base => random.below(bytes.len()).max(512) % bytes.len(),
        Target::SegmentEnd => written[written.len() - 1] + random.below(48),
        Target::Header => random.below(68),
        Target::Removed => {
            fs::remove_file(&path).unwrap();
            return path;
        }
        Target::Cut => {
            bytes.truncate(random.below(bytes.len()));
            fs::write(&path, bytes).unwrap();
            return path;
        }
    };
    bytes[at] ^= 1 << random.below(8);
    fs::write(&path, bytes).unwrap();
    path
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// The files of a folder, by their paths in it.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let (path, name) = {
            let entry = entry.unwrap();
            (entry.path(), entry.file_name().into_string().unwrap())
        };
        if path.is_dir() {
            files.extend(content(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}
