//! Emptying the trash with concurrent restores, and with a stop in between.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use forms::id::{FormId, Random, SubmissionId};
use forms::store::Maintenance;
use forms::store::sled::SledStore;

use super::machine::Rows;
use super::real_store::{StoreFolder, close};
use crate::store::{
    SeededRandom, at, create_draft, done, edit_submission, find_form, find_submission, insert_workspace,
    is_ready, list_trash, missing, published_form, purge_form, restore_form, restore_submission, submit,
    trash_form, trash_submission,
};

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
    _folder: StoreFolder,
}

impl BlockableStore {
    async fn create() -> Self {
        let (folder, (blocked, reached), (open, opened)) = (StoreFolder::create(), channel(), channel());
        let (random, is_shut) = (SeededRandom::new(1), AtomicBool::new(false));
        let gate = Arc::new(Gate { random, is_shut, reached: blocked, opened: Mutex::new(opened) });
        let store = folder.open_with(gate.clone());
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
        drop((done(back), done(out), done(anew)));
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
    let others = async {
        let (back, out, (), gone) = tokio::join!(
            restore_form(store, forms[0], 20),
            restore_form(store, forms[1], 20),
            trash_form(store, forms[1], HORIZON),
            purge_form(store, forms[3])
        );
        drop((done(back), done(out), done(gone)));
    };
    assert_eq!(blockable.empty_trash_after(others).await, 1);
    assert!(find_form(store, forms[0]).await.is_some());
    done(restore_form(store, forms[1], 20).await);
    missing(restore_form(store, forms[2], 20).await);
}

/// All rows of the closed store except those with one of `ids` in their key.
fn rows_without(folder: &StoreFolder, ids: &[SubmissionId]) -> Rows {
    let is_of = |key: &[u8], id: &SubmissionId| key.windows(16).any(|part| part == id.to_bytes());
    folder.rows().into_iter().filter(|(key, _)| !ids.iter().any(|id| is_of(key, id))).collect()
}

#[tokio::test]
async fn emptying_the_trash_continues_after_a_restart_and_erases_nothing_else() {
    const EDITS: u32 = 130;
    let folder = StoreFolder::create();
    let store = folder.open();
    let form = published_form(&store, 1).await;
    let (mut due, mut others) = (Vec::new(), Vec::new());
    // More submissions than one sweep erases; and histories larger than one slice: one in each sweep, and one that stays.
    for number in 0..32 {
        let id = submit(&store, form, "{}", number).await;
        for seen in 0..if [0, 29, 30].contains(&number) { EDITS } else { 0 } {
            done(edit_submission(&store, form, id, seen, "{}", number).await);
        }
        if number < 30 { due.push(id) } else { others.push(id) }
    }
    for (id, deleted) in due.iter().map(|id| (*id, 40)).chain([(others[1], 50)]) {
        done(trash_submission(&store, form, id, deleted).await);
    }
    close(store).await;
    let expected = rows_without(&folder, &due);
    let all = folder.rows().len();

    let store = folder.open();
    // The first sweep is done; the store closes before the background job has erased their histories.
    assert!(!is_ready(&mut pin!(store.empty_trash(at(45)))).await);
    close(store).await;
    let left = folder.rows().len();
    assert!(expected.len() < left && left < all, "{left} of {all}, {} in the end", expected.len());

    let store = folder.open();
    assert_eq!(store.empty_trash(at(45)).await.unwrap(), 5);
    close(store).await;
    folder.reopen_until(|| folder.rows().len() <= expected.len()).await;
    assert_eq!(folder.rows(), expected);
}
