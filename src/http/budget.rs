//! Byte budgets: large bodies share one while they are received and dealt with, large answers another while they are
//! sent. What a budget has no room for is refused, so memory is bounded whatever clients do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::problem::Failure;
use crate::api::Code;
use crate::cpu_pool::CpuPool;
use crate::keyed_semaphore::KeyedSemaphore;
use crate::secret::KeyId;

/// Bytes up to which a body or an answer needs no reservation; nearly all are smaller.
pub(super) const SMALL: usize = 64 << 10;

/// Bytes of a budget.
const TOTAL: usize = 64 << 20;

/// Large bodies that are processed at once.
const LARGE_AT_ONCE: usize = 4;

/// Operations processed at once that answer with a whole object, however little was sent.
const CHANGES_AT_ONCE: usize = 16;

/// The bounds that all requests share.
pub(super) struct Budgets {
    /// Large bodies, from their announcement until they are dealt with.
    pub(super) bodies: Arc<ByteBudget>,
    /// Large answers, until they are sent.
    pub(super) answers: Arc<ByteBudget>,
    /// Places for processing large bodies.
    pub(super) large: Places,
    /// Places for changing an object and answering with it.
    pub(super) changes: Places,
    /// Where large answers are compressed.
    pub(super) pool: CpuPool,
}

impl Budgets {
    pub(super) fn new(pool: CpuPool) -> Self {
        Self {
            bodies: ByteBudget::new(TOTAL),
            answers: ByteBudget::new(TOTAL),
            large: Places::new(LARGE_AT_ONCE),
            changes: Places::new(CHANGES_AT_ONCE),
            pool,
        }
    }
}

/// Whose share of a budget a request uses: that of its API key, or one that all requests without a key have together.
pub(super) type Holder = Option<KeyId>;

/// The place in a request where its key is noted once it is proved.
#[derive(Debug, Clone, Default)]
pub(super) struct ProvedKey(Arc<OnceLock<KeyId>>);

impl ProvedKey {
    pub(super) fn set(&self, key: KeyId) {
        self.0.get_or_init(|| key);
    }

    pub(super) fn holder(&self) -> Holder {
        self.0.get().copied()
    }
}

/// The failure of what no budget has room for.
pub(super) fn overloaded() -> Failure {
    Failure::new(Code::Overloaded).retry_after(1)
}

/// Longest wait for a place.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Places for work, of which one holder has at most a quarter.
pub(super) struct Places {
    all: Arc<Semaphore>,
    of_holder: KeyedSemaphore<Holder>,
}

/// A place, free again when dropped.
pub(super) type Place = [OwnedSemaphorePermit; 2];

impl Places {
    fn new(count: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(count)), of_holder: KeyedSemaphore::new(count.div_ceil(4)) }
    }

    /// Waits for a place, behind the holder's own others first.
    pub(super) async fn acquire(&self, holder: Holder) -> Result<Place, Failure> {
        let acquire = async {
            let own = self.of_holder.acquire(holder).await;
            [own, Arc::clone(&self.all).acquire_owned().await.expect("the semaphore is never closed")]
        };
        timeout(MAX_WAIT, acquire).await.map_err(|_elapsed| overloaded())
    }
}

/// Bytes to share, of which one holder has at most a quarter.
pub(super) struct ByteBudget {
    total: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    bytes: usize,
    /// By holder, of those that have reserved anything.
    shares: HashMap<Holder, usize>,
}

impl ByteBudget {
    pub(super) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, used: Mutex::default() })
    }

    /// Reserves `bytes` if there is room.
    pub(super) fn reserve(self: &Arc<Self>, holder: Holder, bytes: usize) -> Option<Reservation> {
        let mut reservation = self.reservation(holder);
        reservation.cover(bytes).then_some(reservation)
    }

    /// Reserves `bytes` whether there is room or not.
    pub(super) fn charge(self: &Arc<Self>, holder: Holder, bytes: usize) -> Reservation {
        self.lock().add(holder, bytes);
        Reservation { budget: Arc::clone(self), holder, bytes }
    }

    /// A reservation of nothing yet.
    pub(super) fn reservation(self: &Arc<Self>, holder: Holder) -> Reservation {
        Reservation { budget: Arc::clone(self), holder, bytes: 0 }
    }

    /// Whether the budget, or the share of `holder`, is used up.
    pub(super) fn is_exhausted(&self, holder: Holder) -> bool {
        !self.has_room(&self.lock(), holder, 0, 1)
    }

    /// Whether a reservation of `own` bytes may grow by `more`. One that is alone may always: limits may be set higher
    /// than a share, and what they allow must pass.
    fn has_room(&self, used: &Used, holder: Holder, own: usize, more: usize) -> bool {
        let fits = |used: usize, most: usize| used == own || used + more <= most;
        let share = used.shares.get(&holder).copied().unwrap_or_default();
        fits(used.bytes, self.total) && fits(share, self.total / 4)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn add(&mut self, holder: Holder, bytes: usize) {
        self.bytes += bytes;
        *self.shares.entry(holder).or_default() += bytes;
    }

    fn remove(&mut self, holder: Holder, bytes: usize) {
        self.bytes -= bytes;
        if let Some(share) = self.shares.get_mut(&holder) {
            *share -= bytes;
            if *share == 0 {
                self.shares.remove(&holder);
            }
        }
    }
}

/// Bytes of a budget, given back when dropped.
pub(super) struct Reservation {
    budget: Arc<ByteBudget>,
    holder: Holder,
    bytes: usize,
}

impl Reservation {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Grows to `bytes` if it is smaller; false, and nothing changed, if there is no room for that.
    pub(super) fn cover(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let mut used = self.budget.lock();
        let has_room = self.budget.has_room(&used, self.holder, self.bytes, more);
        if has_room {
            used.add(self.holder, more);
            self.bytes += more;
        }
        has_room
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.budget.lock().remove(self.holder, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{KeyText, SystemRandomness};

    fn holders<const N: usize>() -> [Holder; N] {
        std::array::from_fn(|_| Some(KeyText::draw(&SystemRandomness::new()).id()))
    }

    #[test]
    fn a_holder_has_a_quarter_and_all_have_the_total() {
        let (budget, [a, b, c, d, e]) = (ByteBudget::new(100), holders());
        let held = [a, b, c, d].map(|holder| budget.reserve(holder, 25).unwrap());
        assert!(budget.reserve(e, 1).is_none(), "the total is used up");
        assert!(budget.is_exhausted(e));
        let [of_a, ..] = held;
        drop(of_a);
        assert!(!budget.is_exhausted(e) && !budget.is_exhausted(a));
        let _of_e = budget.reserve(e, 1).unwrap();
        assert!(budget.is_exhausted(b), "its quarter is used up");
        assert!(budget.reserve(a, 25).is_none() && budget.reserve(a, 24).is_some());
    }

    #[test]
    fn what_is_dropped_is_given_back_and_leaves_nothing() {
        let (budget, [a]) = (ByteBudget::new(100), holders());
        for _ in 0..10 {
            let held = [(a, 5), (a, 20), (None, 25)].map(|(holder, bytes)| budget.reserve(holder, bytes));
            assert!(held.iter().all(Option::is_some));
            assert!(budget.reserve(a, 1).is_none() && budget.reserve(None, 1).is_none());
        }
        let used = budget.lock();
        assert_eq!((used.bytes, used.shares.len()), (0, 0));
    }

    #[test]
    fn a_reservation_grows_while_there_is_room() {
        let (budget, [a]) = (ByteBudget::new(100), holders());
        let (mut one, other) = (budget.reserve(a, 5).unwrap(), budget.reserve(a, 5).unwrap());
        assert!(one.cover(20) && one.cover(10) && !one.cover(21));
        assert!(budget.reserve(a, 1).is_none());
        drop(other);
        assert!(one.cover(25));
    }

    #[test]
    fn one_that_is_alone_has_room_whatever_its_size() {
        let (budget, [a, b]) = (ByteBudget::new(100), holders());
        let mut alone = budget.reserve(a, 70).unwrap();
        assert!(alone.cover(170));
        assert!(budget.reserve(a, 1).is_none() && budget.reserve(b, 1).is_none());
        drop(alone);
        let _charged = budget.charge(a, 1_000);
        assert!(budget.is_exhausted(a) && budget.is_exhausted(b));
    }
}
