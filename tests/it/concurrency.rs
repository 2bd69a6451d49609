//! The pool for long work: what it refuses.

use std::sync::mpsc::channel;
use std::time::Duration;

use forms::cpu_pool::{CpuPool, PoolError, PoolLimits};

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
