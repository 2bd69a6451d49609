//! Byte budgets: large bodies share one while they are received and dealt with, large answers another while they are
//! sent. What a budget has no room for is refused, so memory is bounded whatever clients do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::cpu_pool::CpuPool;
use crate::keyed_semaphore::FairSemaphore;
use crate::secret::KeyId;

/// Bytes up to which a body or an answer needs no reservation; nearly all are smaller.
pub(crate) const SMALL: usize = 64 << 10;

/// Bytes of a budget.
const TOTAL: usize = 64 << 20;

/// Large bodies that are processed at once.
const LARGE_AT_ONCE: usize = 4;

/// Operations processed at once that answer with a whole object, however little was sent.
const CHANGES_AT_ONCE: usize = 16;

/// Longest wait of an operation for one of these to end.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The bounds that all requests share.
pub(crate) struct Budgets {
    /// Large bodies, from their announcement until they are dealt with.
    pub(crate) bodies: Arc<ByteBudget>,
    /// Large answers, until they are sent.
    pub(crate) answers: Arc<ByteBudget>,
    /// Permits for processing large bodies.
    pub(crate) large: FairSemaphore<BudgetOwner>,
    /// Permits for changing an object and answering with it.
    pub(crate) changes: FairSemaphore<BudgetOwner>,
    /// Where large answers are compressed.
    pub(crate) pool: CpuPool,
}

impl Budgets {
    pub(crate) fn new(pool: CpuPool) -> Self {
        Self {
            bodies: ByteBudget::new(TOTAL),
            answers: ByteBudget::new(TOTAL),
            large: FairSemaphore::new(LARGE_AT_ONCE, MAX_WAIT),
            changes: FairSemaphore::new(CHANGES_AT_ONCE, MAX_WAIT),
            pool,
        }
    }
}

/// Whose share of a budget a request uses: that of its API key, or one that all requests without a key have together.
pub(crate) type BudgetOwner = Option<KeyId>;

/// The place in a request where its key is noted once it is proved.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProvedKey(Arc<OnceLock<KeyId>>);

impl ProvedKey {
    pub(crate) fn set(&self, key: KeyId) {
        self.0.get_or_init(|| key);
    }

    pub(crate) fn owner(&self) -> BudgetOwner {
        self.0.get().copied()
    }
}

/// Bytes to share, of which one owner has at most a quarter.
pub(crate) struct ByteBudget {
    total: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    bytes: usize,
    /// By owner, of those that have reserved anything.
    shares: HashMap<BudgetOwner, usize>,
}

impl ByteBudget {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, used: Mutex::default() })
    }

    /// Reserves `bytes` if there is room.
    pub(crate) fn reserve(self: &Arc<Self>, owner: BudgetOwner, bytes: usize) -> Option<Reservation> {
        let mut reservation = self.reservation(owner);
        reservation.cover(bytes).then_some(reservation)
    }

    /// Reserves `bytes` whether there is room or not.
    pub(crate) fn charge(self: &Arc<Self>, owner: BudgetOwner, bytes: usize) -> Reservation {
        self.lock().add(owner, bytes);
        Reservation { budget: Arc::clone(self), owner, bytes }
    }

    /// A reservation of nothing yet.
    pub(crate) fn reservation(self: &Arc<Self>, owner: BudgetOwner) -> Reservation {
        Reservation { budget: Arc::clone(self), owner, bytes: 0 }
    }

    /// Whether a reservation of `own` bytes may grow by `more`. One that is alone may always: limits may be set higher
    /// than a share, and what they allow must pass.
    fn has_room(&self, used: &Used, owner: BudgetOwner, own: usize, more: usize) -> bool {
        let fits = |used: usize, most: usize| used == own || used + more <= most;
        let share = used.shares.get(&owner).copied().unwrap_or_default();
        fits(used.bytes, self.total) && fits(share, self.total / 4)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn add(&mut self, owner: BudgetOwner, bytes: usize) {
        self.bytes += bytes;
        *self.shares.entry(owner).or_default() += bytes;
    }

    fn remove(&mut self, owner: BudgetOwner, bytes: usize) {
        self.bytes -= bytes;
        if let Some(share) = self.shares.get_mut(&owner) {
            *share -= bytes;
            if *share == 0 {
                self.shares.remove(&owner);
            }
        }
    }
}

/// Bytes of a budget, given back when dropped.
pub(crate) struct Reservation {
    budget: Arc<ByteBudget>,
    owner: BudgetOwner,
    bytes: usize,
}

impl Reservation {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Grows to `bytes` if it is smaller; false, and nothing changed, if there is no room for that.
    pub(crate) fn cover(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let mut used = self.budget.lock();
        let has_room = self.budget.has_room(&used, self.owner, self.bytes, more);
        if has_room {
            used.add(self.owner, more);
            self.bytes += more;
        }
        has_room
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.budget.lock().remove(self.owner, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{KeyText, SystemRandomness};

    fn owners<const N: usize>() -> [BudgetOwner; N] {
        std::array::from_fn(|_| Some(KeyText::draw(&SystemRandomness::new()).id()))
    }

    #[test]
    fn an_owner_has_a_quarter_and_all_have_the_total() {
        let (budget, [a, b, c, d, e]) = (ByteBudget::new(100), owners());
        let held = [a, b, c, d].map(|owner| budget.reserve(owner, 25).unwrap());
        assert!(budget.reserve(e, 1).is_none(), "the total is used up");
        let [of_a, ..] = held;
        drop(of_a);
        assert!(budget.reserve(a, 1).is_some());
        let _of_e = budget.reserve(e, 1).unwrap();
        assert!(budget.reserve(b, 1).is_none(), "its quarter is used up");
        assert!(budget.reserve(a, 25).is_none() && budget.reserve(a, 24).is_some());
    }

    #[test]
    fn what_is_dropped_is_given_back_and_leaves_nothing() {
        let (budget, [a]) = (ByteBudget::new(100), owners());
        for _ in 0..10 {
            let held = [(a, 5), (a, 20), (None, 25)].map(|(owner, bytes)| budget.reserve(owner, bytes));
            assert!(held.iter().all(Option::is_some));
            assert!(budget.reserve(a, 1).is_none() && budget.reserve(None, 1).is_none());
        }
        let used = budget.lock();
        assert_eq!((used.bytes, used.shares.len()), (0, 0));
    }

    #[test]
    fn a_reservation_grows_while_there_is_room() {
        let (budget, [a]) = (ByteBudget::new(100), owners());
        let (mut one, other) = (budget.reserve(a, 5).unwrap(), budget.reserve(a, 5).unwrap());
        assert!(one.cover(20) && one.cover(10) && !one.cover(21));
        assert!(budget.reserve(a, 1).is_none());
        drop(other);
        assert!(one.cover(25));
    }

    #[test]
    fn one_that_is_alone_has_room_whatever_its_size() {
        let (budget, [a, b]) = (ByteBudget::new(100), owners());
        let mut alone = budget.reserve(a, 70).unwrap();
        assert!(alone.cover(170));
        assert!(budget.reserve(a, 1).is_none() && budget.reserve(b, 1).is_none());
        drop(alone);
        let _charged = budget.charge(a, 1_000);
        assert!(budget.reserve(a, 1).is_none() && budget.reserve(b, 1).is_none());
    }
}
