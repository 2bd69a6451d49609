//! The context in which integrations of a request are parsed, to be passed to the pool.

use std::sync::Arc;

use super::App;
use crate::clock::Timestamp;
use crate::delivery::DeliveryService;
use crate::domain::integration::definition::DefinitionContext;
use crate::domain::workspace::Caller;
use crate::id::{Random, WorkspaceId};

/// An owned [`DefinitionContext`].
pub(super) struct Sealing {
    workspace: WorkspaceId,
    deliveries: Arc<DeliveryService>,
    random: Arc<dyn Random>,
    now: Timestamp,
}

impl Sealing {
    pub(super) fn context(&self) -> DefinitionContext<'_> {
        DefinitionContext {
            workspace: self.workspace,
            vault: &self.deliveries.vault,
            random: &*self.random,
            policy: &self.deliveries.settings.policy,
            now: self.now,
        }
    }
}

impl App {
    /// Returns what integrations in the caller's workspace are sealed with at the current time.
    pub(super) fn sealing(&self, caller: &Caller) -> Sealing {
        Sealing {
            workspace: caller.workspace,
            deliveries: Arc::clone(&self.deliveries),
            random: Arc::clone(&self.random),
            now: self.now(),
        }
    }
}
