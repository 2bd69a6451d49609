//! Searches of forms that run out of time or read outdated index entries.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forms::cpu_pool::{CpuPool, PoolLimits};
use forms::domain::form::filter::FormFilter;
use forms::store::sled::SledStore;
use forms::store::sled::engine::Engine;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{Forms, Maintenance};

use super::{SeededRandom, at, create_draft, form_id, trash_form, workspace};

fn open(folder: &Path, limits: PoolLimits) -> SledStore {
    let (pool, random) = (CpuPool::new(limits), Arc::new(SeededRandom::new(1)));
    SledStore::open(folder, EngineOptions::default(), pool, random, Arc::new(|_| ())).unwrap()
}

#[tokio::test]
async fn a_search_without_time_ends_with_a_position_to_continue_from() {
    let folder = tempfile::tempdir().unwrap();
    let no_time = PoolLimits { step: Duration::ZERO, max_time: Duration::ZERO, ..PoolLimits::default() };
    let store = open(folder.path(), no_time);
    for number in 1..=3 {
        create_draft(&store, 1, number, number as i64).await;
    }
    for (title, matches) in [("lunch", 1), ("coffee", 0)] {
        let filter = FormFilter { title: Some(title.to_owned()), ..FormFilter::default() };
        let mut after = None;
        for number in [3, 2, 1] {
            let page = store.list_forms(workspace(1), &filter, after, 9).await.unwrap();
            after = Some((at(number), form_id(number as u64)));
            assert_eq!((page.rows.len(), page.next), (matches, after), "{filter:?}");
        }
        assert_eq!(store.list_forms(workspace(1), &filter, after, 9).await.unwrap().next, None);
        assert_eq!(store.count_forms(workspace(1), &filter).await.unwrap(), None);
    }
}

/// A reader may read the entry of an earlier deletion. The form would be listed twice, and the cursor would go back.
#[tokio::test]
async fn an_outdated_entry_of_the_trash_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), PoolLimits::default());
    let form = create_draft(&store, 1, 2, 1).await;
    trash_form(&store, form, 4).await;
    store.close().await.unwrap();
    let engine = Engine::open_path(folder.path(), EngineOptions::default(), Arc::new(|_| ())).unwrap();
    let entry = |millis: i64| {
        let sortable = (at(millis).millis() ^ i64::MIN).to_be_bytes();
        [b"t", &workspace(1).to_bytes()[..], &sortable, &form.to_bytes()].concat()
    };
    assert!(engine.reader().get(&entry(4)).unwrap().is_some(), "the layout has changed");
    let outdated = [entry(2), entry(9)];
    let write = engine.write(move |tx| {
        outdated.into_iter().for_each(|entry| tx.put(entry, Vec::new()));
        Ok(())
    });
    write.await.unwrap();
    engine.close().unwrap();
    let store = open(folder.path(), PoolLimits::default());
    let in_trash = FormFilter { trashed: true, ..FormFilter::default() };
    let page = store.list_forms(workspace(1), &in_trash, None, 9).await.unwrap();
    assert_eq!(page.rows.iter().map(|(form, _)| form.deleted_at).collect::<Vec<_>>(), [Some(at(4))]);
}
