//! Emptying the trash with concurrent restores, and with a stop in between.

use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forms::cpu_pool::CpuPool;
use forms::id::{FormId, Random, SubmissionId};
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::sled::engine::tx::Direction;
use forms::store::{Forms, Maintenance, StepResult};

use tokio::time::timeout;

use super::machine::Rows;
use super::real_files::{EventLog, open, options};
use crate::store::{
    SeededRandom, at, create_draft, edit_submission, find_submission, insert_workspace, is_ready, list_trash,
    published_form, restore_submission, submit, trash_form, trash_submission, workspace,
};

const TIMEOUT: Duration = Duration::from_secs(60);

const HORIZON: i64 = 10;

/// A random generator that blocks the next caller while shut: the writer, when it draws an id.
struct Gate {
    random: SeededRandom,
    is_shut: AtomicBool,
    reached: Sender<()>,
    opened: Mutex<Receiver<()>>,
}

impl Random for Gate {
    fn fill(&self, bytes: &mut [u8]) {
        if self.is_shut.swap(false, Ordering::SeqCst) {
            self.reached.send(()).unwrap();
            self.opened.lock().unwrap().recv().unwrap();
        }
        self.random.fill(bytes);
    }
}

/// A store with a form without submissions, whose writer can be blocked.
struct BlockableStore {
    store: SledStore,
    gate: Arc<Gate>,
    reached: Receiver<()>,
    open: Sender<()>,
    _folder: tempfile::TempDir,
}

impl BlockableStore {
    async fn create() -> Self {
        let (folder, (blocked, reached), (open, opened)) =
            (tempfile::tempdir().unwrap(), channel(), channel());
        let (random, is_shut) = (SeededRandom::new(1), AtomicBool::new(false));
        let gate = Arc::new(Gate { random, is_shut, reached: blocked, opened: Mutex::new(opened) });
        let store = open_store(folder.path(), gate.clone());
        insert_workspace(&store, 1, 0).await;
        published_form(&store, 1).await;
        Self { store, gate, reached, open, _folder: folder }
    }

    /// Empties the trash of what was deleted before [`HORIZON`], with `others` running between its scan and its erasure;
    /// returns the number of entries erased.
    async fn empty_trash_after(&self, others: impl Future<Output = ()>) -> usize {
        self.gate.is_shut.store(true, Ordering::SeqCst);
        let mut first = pin!(submit(&self.store, FormId::from_bytes(1_u64.to_be_bytes()), "{}", 0));
        assert!(!is_ready(&mut first).await);
        self.reached.recv().unwrap();
        // Both wait for the writer, in this order.
        let (mut others, mut emptying) = (pin!(others), pin!(self.store.empty_trash(at(HORIZON))));
        assert!(!is_ready(&mut others).await && !is_ready(&mut emptying).await);
        self.open.send(()).unwrap();
        tokio::join!(first, others, emptying).2.unwrap()
    }
}

fn open_store(path: &Path, random: Arc<dyn Random>) -> SledStore {
    let options = EngineOptions { verify_index: false, ..options() };
    SledStore::open(path, options, CpuPool::default(), random, EventLog::default().report()).unwrap()
}

#[tokio::test]
async fn a_submission_that_is_restored_before_its_erasure_stays() {
    let blockable = BlockableStore::create().await;
    let store = &blockable.store;
    let form = published_form(store, 2).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = submit(store, form, "{}", 0).await;
        trash_submission(store, form, id, 5).await;
        ids.push(id);
    }
    let others = async {
        let (back, out, anew) = tokio::join!(
            restore_submission(store, form, ids[0], 20),
            restore_submission(store, form, ids[1], 20),
            trash_submission(store, form, ids[1], HORIZON)
        );
        assert!(matches!(
            (back, out, anew),
            (StepResult::Done(_), StepResult::Done(_), StepResult::Done(()))
        ));
    };
    assert_eq!(blockable.empty_trash_after(others).await, 1);
    assert!(find_submission(store, form, ids[0]).await.is_some());
    let left: Vec<_> =
        list_trash(store, form, 9).await.iter().map(|left| (left.id, left.deleted_at)).collect();
    assert_eq!(left, [(ids[1], Some(at(HORIZON)))]);
}

#[tokio::test]
async fn a_form_that_is_restored_before_its_erasure_stays() {
    let blockable = BlockableStore::create().await;
    let store = &blockable.store;
    let mut forms = Vec::new();
    for number in 2..6 {
        let form = create_draft(store, 1, number, 0).await;
        trash_form(store, form, 5).await;
        forms.push(form);
    }
    let restore = |form| store.restore_form(workspace(1).form(form), None, at(20));
    let others = async {
        let purge = store.purge_form(workspace(1).form(forms[3]), Default::default());
        let (back, out, (), gone) =
            tokio::join!(restore(forms[0]), restore(forms[1]), trash_form(store, forms[1], HORIZON), purge);
        assert!(matches!((back.unwrap(), out.unwrap()), (StepResult::Done(_), StepResult::Done(_))));
        assert!(matches!(gone.unwrap(), StepResult::Done(())));
    };
    assert_eq!(blockable.empty_trash_after(others).await, 1);
    assert!(store.find_form(workspace(1).form(forms[0])).await.unwrap().is_some());
    let back = restore(forms[1]).await.unwrap();
    assert!(matches!(&back, StepResult::Done(_)), "{back:?}");
    assert!(matches!(restore(forms[2]).await.unwrap(), StepResult::Missing));
}

/// All rows of the closed store at `path` except those with one of `ids` in their key.
fn rows_without(path: &Path, ids: &[SubmissionId]) -> Rows {
    let (engine, _) = open(path);
    let rows = engine.reader().scan(.., Direction::Ascending, usize::MAX).unwrap();
    engine.close().unwrap();
    let is_of = |key: &[u8], id: &SubmissionId| key.windows(16).any(|part| part == id.to_bytes());
    rows.into_iter().filter(|(key, _)| !ids.iter().any(|id| is_of(key, id))).collect()
}

#[tokio::test]
async fn emptying_the_trash_continues_after_a_restart_and_erases_nothing_else() {
    const EDITS: u32 = 130;
    let folder = tempfile::tempdir().unwrap();
    let reopened = || open_store(folder.path(), Arc::new(SeededRandom::new(1)));
    let store = reopened();
    let form = published_form(&store, 1).await;
    let (mut due, mut others) = (Vec::new(), Vec::new());
    // More submissions than one sweep erases; and histories larger than one slice: one in each sweep, and one that stays.
    for number in 0..32 {
        let id = submit(&store, form, "{}", number).await;
        for seen in 0..if [0, 29, 30].contains(&number) { EDITS } else { 0 } {
            assert!(matches!(
                edit_submission(&store, form, id, seen, "{}", number).await,
                StepResult::Done(_)
            ));
        }
        if number < 30 { due.push(id) } else { others.push(id) }
    }
    for (id, deleted) in due.iter().map(|id| (*id, 40)).chain([(others[1], 50)]) {
        assert!(matches!(trash_submission(&store, form, id, deleted).await, StepResult::Done(())));
    }
    store.close().await.unwrap();
    drop(store);
    let expected = rows_without(folder.path(), &due);
    let all = rows_without(folder.path(), &[]).len();

    let store = reopened();
    // The first sweep is done; the store closes before the background job has erased their histories.
    assert!(!is_ready(&mut pin!(store.empty_trash(at(45)))).await);
    store.close().await.unwrap();
    drop(store);
    let left = rows_without(folder.path(), &[]).len();
    assert!(
        expected.len() < left && left < all,
        "{left} of {all} rows are left, {} are expected in the end",
        expected.len()
    );

    let store = reopened();
    assert_eq!(store.empty_trash(at(45)).await.unwrap(), 5);
    store.close().await.unwrap();
    drop(store);
    let gone = async {
        while rows_without(folder.path(), &[]).len() > expected.len() {
            reopened().close().await.unwrap();
        }
    };
    timeout(TIMEOUT, gone).await.expect("history rows are left");
    assert_eq!(rows_without(folder.path(), &[]), expected);
}
