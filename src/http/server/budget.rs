//! Budgets: large request bodies share one of bytes while they are received and processed, large responses another while
//! they are sent, and slow bodies one of connections. Requests that exceed a budget are refused, so memory is bounded whatever
//! clients do, and no key takes all connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::Version;

use crate::cpu_pool::CpuPool;
use crate::keyed_semaphore::FairSemaphore;
use crate::secret::KeyId;

/// Bytes up to which a request or response body needs no reservation; nearly all are smaller.
pub(crate) const SMALL: usize = 64 << 10;

/// Returns the bytes up to which a body needs no reservation: over HTTP/2, where a connection has many, 1 KiB.
pub(crate) fn uncharged(version: Version) -> usize {
    if version == Version::HTTP_2 { 1 << 10 } else { SMALL }
}

const MEMORY: usize = 64 << 20;

/// Large bodies processed concurrently.
const LARGE_AT_ONCE: usize = 4;

/// Operations processed concurrently that return a whole object, however small the request.
const CHANGES_AT_ONCE: usize = 16;

/// Maximum wait for one of these permits.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The budgets and permits that all requests share.
pub(crate) struct Budgets {
    /// Requests whose bodies are received slowly, as many as connections.
    pub(crate) slow_bodies: Arc<Budget>,
    /// Large request bodies, from the moment their length is known until they are processed.
    pub(crate) bodies: Arc<Budget>,
    /// Large responses, until they are sent.
    pub(crate) responses: Arc<Budget>,
    /// Permits for processing large bodies.
    pub(crate) large_bodies: FairSemaphore<BudgetOwner>,
    /// Permits for changing an object and returning it.
    pub(crate) changes: FairSemaphore<BudgetOwner>,
    /// Compresses large responses.
    pub(crate) pool: CpuPool,
}

impl Budgets {
    pub(crate) fn new(pool: CpuPool, max_connections: usize) -> Self {
        Self {
            slow_bodies: Budget::new(max_connections),
            bodies: Budget::new(MEMORY),
            responses: Budget::new(MEMORY),
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

/// A budget of which one owner gets at most a quarter.
pub(crate) struct Budget {
    total: usize,
    /// What is reserved by owner, without entries of 0.
    reserved: Mutex<HashMap<BudgetOwner, usize>>,
}

impl Budget {
    fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, reserved: Mutex::default() })
    }

    /// Reserves `amount`, or returns `None` if that exceeds the budget.
    pub(crate) fn reserve(self: &Arc<Self>, owner: BudgetOwner, amount: usize) -> Option<Reservation> {
        let mut reservation = self.charge(owner, 0);
        reservation.grow_to(amount).then_some(reservation)
    }

    /// Reserves `amount` even if that exceeds the budget.
    pub(crate) fn charge(self: &Arc<Self>, owner: BudgetOwner, amount: usize) -> Reservation {
        if amount > 0 {
            *self.lock().entry(owner).or_default() += amount;
        }
        Reservation { budget: Arc::clone(self), owner, amount }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BudgetOwner, usize>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a budget, returned when dropped.
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    owner: BudgetOwner,
    amount: usize,
}

impl Reservation {
    /// Grows to at least `amount`. Returns false, and changes nothing, if that exceeds the budget.
    ///
    /// The only reservation may always grow: limits may be set higher than a share, and bodies within the limits must be
    /// accepted.
    pub(crate) fn grow_to(&mut self, amount: usize) -> bool {
        let more = amount.saturating_sub(self.amount);
        if more == 0 {
            return true;
        }
        let (total, mut reserved) = (self.budget.total, self.budget.lock());
        let fits = |reserved: usize, most: usize| reserved == self.amount || reserved + more <= most;
        let share = reserved.get(&self.owner).copied().unwrap_or_default();
        let has_room = fits(reserved.values().sum(), total) && fits(share, total / 4);
        if has_room {
            reserved.insert(self.owner, share + more);
            self.amount += more;
        }
        has_room
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut reserved = self.budget.lock();
        match reserved.get_mut(&self.owner) {
            Some(share) if *share > self.amount => *share -= self.amount,
            _ => drop(reserved.remove(&self.owner)),
        }
    }
}
