//! Random damage to the files of a store: it opens with every row, or is refused with an error that names the place.
//!
//! `FORMS_DAMAGES=500` runs the long form, `FORMS_SEED=n` one case.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forms::store::StoreError;
use forms::store::sled::engine::disk::RealDisk;
use forms::store::sled::engine::index::SledIndexes;
use forms::store::sled::engine::operation::{WriteKind, WriteOperation};
use forms::store::sled::engine::options::{EngineOptions, EventSink, OpenError};
use forms::store::sled::engine::tx::{Direction, Tx};
use forms::store::sled::engine::writer::Writer;

use super::random::{Random, each_seed};
use super::real_files::{EventLog, options};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(path: &Path, report: EventSink) -> Result<Writer, OpenError> {
    let options = EngineOptions {
        first_segment: 16 << 10,
        largest_segment: 64 << 10,
        preallocate: false,
        on_fatal: Arc::new(|_| ()),
        // A process that another test starts has copies of the locks until it executes its program.
        lock_wait: Duration::from_secs(10),
        ..options()
    };
    let indexes = SledIndexes::new(path, 4 << 20).unwrap();
    Writer::open(Arc::new(RealDisk::new(path).unwrap()), Arc::new(indexes), options, report)
}

struct PutRows(Rows);

impl WriteOperation for PutRows {
    fn kind(&self) -> WriteKind {
        WriteKind::Normal
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        self.0.iter().for_each(|(key, body)| tx.put(key.clone(), body.clone()));
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        outcome.unwrap();
    }
}

/// Creates a store of about a hundred rows in twenty frames and a few segments, closed cleanly.
fn create_store(path: &Path, random: &mut Random) -> Rows {
    let mut rows = Rows::new();
    let mut writer = open(path, EventLog::default().report()).unwrap();
    for _ in 0..20 {
        let mut batch = Rows::new();
        for _ in 0..5 {
            let length = if random.once_in(15) { 9000 } else { random.below(900) };
            batch.insert(
                format!("S{:04}", random.below(9999)).into_bytes(),
                vec![random.next() as u8; length],
            );
        }
        rows.extend(batch.clone());
        writer.stage(Box::new(PutRows(batch)));
        writer.commit();
    }
    writer.close().unwrap();
    rows
}

/// Damages the files of a closed store and returns a description of what it did.
fn damage(path: &Path, random: &mut Random) -> String {
    let index = path.join("index/db");
    let segments = segments(path);
    let segment = random.pick(&segments).clone();
    match random.below(14) {
        0 => flip(&index, random),
        1 => cut(&index, random),
        2 => format!("{} and {}", cut(&index, random), flip(&segment, random)),
        3 => truncate(&index),
        4 => remove_folder(&path.join("index")),
        5 => replace_by_copy(&index),
        6..=8 => flip(&segment, random),
        9 => cut(&segment, random),
        10 => remove_file(&segment),
        11 => format!("{} and {}", remove_file(&path.join("state")), remove_file(segments.last().unwrap())),
        12 => format!("{} and {}", remove_folder(&path.join("index")), flip(&segment, random)),
        _ => match random.below(2) {
            0 => flip(&path.join("state"), random),
            _ => remove_file(&path.join("state")),
        },
    }
}

fn segments(path: &Path) -> Vec<PathBuf> {
    let mut segments: Vec<PathBuf> =
        fs::read_dir(path.join("journal")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    segments
}

fn flip(path: &Path, random: &mut Random) -> String {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let at = random.below(file.metadata().unwrap().len() as usize);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    byte[0] ^= 1 << random.below(8);
    file.write_all_at(&byte, at as u64).unwrap();
    format!("flipped a bit at {at} of {}", path.display())
}

fn cut(path: &Path, random: &mut Random) -> String {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let length = random.below(file.metadata().unwrap().len() as usize) as u64;
    file.set_len(length).unwrap();
    format!("cut {} to {length} bytes", path.display())
}

fn truncate(path: &Path) -> String {
    File::create(path).unwrap();
    format!("emptied {}", path.display())
}

fn remove_file(path: &Path) -> String {
    fs::remove_file(path).unwrap();
    format!("removed {}", path.display())
}

fn remove_folder(path: &Path) -> String {
    fs::remove_dir_all(path).unwrap();
    format!("removed {}", path.display())
}

fn replace_by_copy(path: &Path) -> String {
    let copy = path.with_extension("copy");
    fs::copy(path, &copy).unwrap();
    fs::rename(&copy, path).unwrap();
    format!("replaced {} by a copy", path.display())
}

/// Opens a damaged store and checks its rows; returns whether it was refused.
fn is_refused(path: &Path, rows: &Rows) -> bool {
    let event_log = EventLog::default();
    let mut writer = match open(path, event_log.report()) {
        Ok(writer) => writer,
        Err(OpenError::Damaged(damage)) => {
            assert!(!damage.file.is_empty() && !damage.what.is_empty(), "{damage:?}");
            return true;
        }
        Err(error) => panic!("refused for another reason: {error:?}"),
    };
    while writer.is_verifying() {
        writer.verify(1000);
    }
    // Verification may be the first to find a flipped bit of the index; if the journal is damaged too, the store stops.
    if writer.is_stopped() {
        return true;
    }
    let found: Rows =
        writer.reader().scan(.., Direction::Ascending, usize::MAX).unwrap().into_iter().collect();
    assert!(found == *rows, "{} rows of {}; {:?}", found.len(), rows.len(), event_log.events());
    writer.close().unwrap();
    false
}

#[test]
fn a_damaged_store_is_restored_completely_or_refused() {
    let (mut all, mut refused) = (0, 0);
    each_seed("FORMS_DAMAGES", 50, |seed| {
        let mut random = Random::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let rows = create_store(folder.path(), &mut random);
        println!("{}", damage(folder.path(), &mut random));
        all += 1;
        refused += u32::from(is_refused(folder.path(), &rows));
    });
    println!("{all} damaged stores: {refused} refused, the others restored");
    assert!(all < 50 || (0 < refused && refused < all), "{refused} of {all} refused");
}
