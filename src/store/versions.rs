//! Compiled versions of forms, kept in memory: every submission needs one, and they never change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::form::Version;
use crate::id::FormId;

/// A bounded cache of form versions. A version is immutable, so an entry is never stale.
#[derive(Debug)]
pub struct Versions {
    capacity: usize,
    known: Mutex<HashMap<(FormId, u32), Arc<Version>>>,
}

impl Versions {
    /// A cache for `capacity` versions at most.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, known: Mutex::default() }
    }

    /// The version `number` of `form`, if it is known.
    pub fn find(&self, form: FormId, number: u32) -> Option<Arc<Version>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&(form, number)).cloned()
    }

    /// Keeps `version`; a full cache is emptied first, which is rare, simple and bounded.
    pub fn keep(&self, form: FormId, version: Version) -> Arc<Version> {
        let version = Arc::new(version);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.capacity {
            known.clear();
        }
        known.insert((form, version.number), Arc::clone(&version));
        version
    }
}
