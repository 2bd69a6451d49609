//! Limits of concurrent work: the pool for long work, and permits by id.

use std::sync::mpsc::channel;
use std::time::Duration;

use forms::cpu_pool::{CpuPool, PoolError, PoolLimits};
use forms::keyed_semaphore::FairSemaphore;

fn pool(jobs: usize) -> CpuPool {
    CpuPool::new(PoolLimits { threads: 1, jobs, max_wait: Duration::ZERO, ..PoolLimits::default() })
}

#[tokio::test]
async fn a_full_queue_and_a_long_wait_are_refused() {
    let pool = pool(2);
    let (release, released) = channel::<()>();
    let first = pool.admit().unwrap();
    let running = tokio::spawn(async move { first.run(move |_| released.recv()).await });
    tokio::task::yield_now().await;
    let second = pool.admit().unwrap();
    assert!(matches!(pool.admit(), Err(PoolError::Overloaded)), "the queue was not full");
    assert!(
        matches!(second.run(|_| ()).await, Err(PoolError::Overloaded)),
        "a job was run after the maximum wait"
    );
    drop((second, release));
    running.await.unwrap().unwrap().unwrap_err();
    pool.run(|| ()).await.unwrap();
}

#[tokio::test]
async fn a_panic_frees_the_slot_of_the_job() {
    let pool = pool(1);
    let panicked = pool.run(|| panic!("on purpose")).await;
    assert!(matches!(panicked, Err(PoolError::Panicked(_))));
    assert_eq!(pool.run(|| 7).await.unwrap(), 7);
}

#[tokio::test]
async fn an_id_may_use_a_quarter_of_the_permits_and_all_ids_the_total() {
    let semaphore = FairSemaphore::new(8, Duration::ZERO);
    let mut permits = Vec::new();
    for id in 0..4 {
        permits.push([semaphore.acquire(id).await.unwrap(), semaphore.acquire(id).await.unwrap()]);
        assert!(semaphore.acquire(id).await.is_none(), "an id got more than a quarter");
    }
    assert!(semaphore.acquire(4).await.is_none(), "more permits than the total were given");
    permits.pop();
    assert!(semaphore.acquire(4).await.is_some());
}
