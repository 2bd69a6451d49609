//! Shared health of a store: set by the writer, read by all.

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

    /// Sets the health; `Stopped` is final.
    pub(crate) fn set(&self, health: Health) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*current, Health::Stopped(_)) {
            *current = health;
        }
    }
}
