//! Whether a store can work: written by the writer, looked at by everybody.

use std::sync::{Arc, Mutex, PoisonError};

use crate::store::Health;

/// The health of a store, shared.
#[derive(Clone)]
pub(crate) struct Status(Arc<Mutex<Health>>);

impl Status {
    pub(crate) fn new() -> Status {
        Status(Arc::new(Mutex::new(Health::Ready)))
    }

    pub(crate) fn get(&self) -> Health {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes it; what has stopped stays stopped.
    pub(crate) fn set(&self, health: Health) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*current, Health::Stopped(_)) {
            *current = health;
        }
    }
}
