//! The secrets of one integration, sealed with the server's master key.

use crate::id::{IntegrationId, Random, WorkspaceId};
use crate::secret::Secret;
use crate::vault::{DecryptError, Sealed, SecretContext, Vault};

/// Why an attempt cannot be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
    /// The settings or the body, which were checked before they were stored, are not valid.
    #[error("the stored delivery or its integration is damaged")]
    Damaged,
    /// The address that the delivery was for is not in the settings any more.
    #[error("the integration has no longer an address for this delivery")]
    NoRecipient,
}

/// Seals and opens the secrets of an integration, each for the setting that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Sealer<'a> {
    pub(super) workspace: WorkspaceId,
    pub(super) integration: IntegrationId,
    pub(super) vault: &'a Vault,
}

impl Sealer<'_> {
    pub(super) fn open(&self, field: &str, sealed: &Sealed) -> Result<Secret<String>, DecryptError> {
        let Self { workspace, integration, vault } = *self;
        vault.unseal(SecretContext { workspace, integration, field }, sealed)
    }

    pub(super) fn seal(&self, field: &str, secret: &Secret<String>, random: &dyn Random) -> Sealed {
        let Self { workspace, integration, vault } = *self;
        vault.seal(SecretContext { workspace, integration, field }, secret.reveal(), random)
    }
}
