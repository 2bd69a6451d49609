//! Byte budgets: large request bodies share one while they are received and processed, large responses another while
//! they are sent. Requests that exceed a budget are refused, so memory is bounded whatever clients do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::cpu_pool::CpuPool;
use crate::keyed_semaphore::FairSemaphore;
use crate::secret::KeyId;

/// Bytes up to which a request or response body needs no reservation; nearly all are smaller.
pub(crate) const SMALL: usize = 64 << 10;

/// Size of each budget, in bytes.
const TOTAL: usize = 64 << 20;

/// Large bodies processed concurrently.
const LARGE_AT_ONCE: usize = 4;

/// Operations processed concurrently that return a whole object, however small the request.
const CHANGES_AT_ONCE: usize = 16;

/// Maximum wait for one of these permits.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The budgets and permits that all requests share.
pub(crate) struct Budgets {
    /// Large request bodies, from the moment their length is known until they are processed.
    pub(crate) bodies: Arc<ByteBudget>,
    /// Large responses, until they are sent.
    pub(crate) responses: Arc<ByteBudget>,
    /// Permits for processing large bodies.
    pub(crate) large_bodies: FairSemaphore<BudgetOwner>,
    /// Permits for changing an object and returning it.
    pub(crate) changes: FairSemaphore<BudgetOwner>,
    /// Compresses large responses.
    pub(crate) pool: CpuPool,
}

impl Budgets {
    pub(crate) fn new(pool: CpuPool) -> Self {
        Self {
            bodies: ByteBudget::new(TOTAL),
            responses: ByteBudget::new(TOTAL),
            large_bodies: FairSemaphore::new(LARGE_AT_ONCE, MAX_WAIT),
            changes: FairSemaphore::new(CHANGES_AT_ONCE, MAX_WAIT),
            pool,
        }
    }
}

/// Owner of a share of a budget: an API key, or `None` for the share that all requests without a key have in common.
pub(crate) type BudgetOwner = Option<KeyId>;

/// Request extension that holds the API key once it is authenticated.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuthenticatedKey(Arc<OnceLock<KeyId>>);

impl AuthenticatedKey {
    pub(crate) fn set(&self, key: KeyId) {
        self.0.get_or_init(|| key);
    }

    pub(crate) fn owner(&self) -> BudgetOwner {
        self.0.get().copied()
    }
}

/// A byte budget of which one owner gets at most a quarter.
pub(crate) struct ByteBudget {
    total: usize,
    used: Mutex<BudgetUse>,
}

#[derive(Default)]
struct BudgetUse {
    bytes: usize,
    /// Reserved bytes by owner; owners without reservations have no entry.
    shares: HashMap<BudgetOwner, usize>,
}

impl ByteBudget {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, used: Mutex::default() })
    }

    /// Reserves `bytes`, or returns `None` if the budget has no room for them.
    pub(crate) fn reserve(self: &Arc<Self>, owner: BudgetOwner, bytes: usize) -> Option<Reservation> {
        let mut reservation = self.empty_reservation(owner);
        reservation.grow_to(bytes).then_some(reservation)
    }

    /// Reserves `bytes` even if that exceeds the budget.
    pub(crate) fn charge(self: &Arc<Self>, owner: BudgetOwner, bytes: usize) -> Reservation {
        self.lock().add(owner, bytes);
        Reservation { budget: Arc::clone(self), owner, bytes }
    }

    /// Returns a reservation of 0 bytes, which can grow.
    pub(crate) fn empty_reservation(self: &Arc<Self>, owner: BudgetOwner) -> Reservation {
        Reservation { budget: Arc::clone(self), owner, bytes: 0 }
    }

    /// Whether a reservation of `own` bytes may grow by `more`. The only one may always grow: limits may be set higher than
    /// a share, and bodies within the limits must be accepted.
    fn has_room(&self, used: &BudgetUse, owner: BudgetOwner, own: usize, more: usize) -> bool {
        let fits = |used: usize, most: usize| used == own || used + more <= most;
        let share = used.shares.get(&owner).copied().unwrap_or_default();
        fits(used.bytes, self.total) && fits(share, self.total / 4)
    }

    fn lock(&self) -> MutexGuard<'_, BudgetUse> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetUse {
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

/// Reserved bytes of a budget, returned when dropped.
pub(crate) struct Reservation {
    budget: Arc<ByteBudget>,
    owner: BudgetOwner,
    bytes: usize,
}

impl Reservation {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Grows to at least `bytes`. Returns false, and changes nothing, if the budget has no room for that.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
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
    fn dropped_reservations_are_returned_and_leave_no_entry() {
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
        assert!(one.grow_to(20) && one.grow_to(10) && !one.grow_to(21));
        assert!(budget.reserve(a, 1).is_none());
        drop(other);
        assert!(one.grow_to(25));
    }

    #[test]
    fn the_only_reservation_has_room_whatever_its_size() {
        let (budget, [a, b]) = (ByteBudget::new(100), owners());
        let mut alone = budget.reserve(a, 70).unwrap();
        assert!(alone.grow_to(170));
        assert!(budget.reserve(a, 1).is_none() && budget.reserve(b, 1).is_none());
        drop(alone);
        let _charged = budget.charge(a, 1_000);
        assert!(budget.reserve(a, 1).is_none() && budget.reserve(b, 1).is_none());
    }
}
