//! What parsing definitions of integrations needs: a vault, randomness and the rules for addresses.

use std::sync::LazyLock;

use forms::clock::Timestamp;
use forms::domain::integration::address::AddressPolicy;
use forms::domain::integration::definition::DefinitionContext;
use forms::id::WorkspaceId;
use forms::secret::{Secret, SystemRandomness};
use forms::vault::Vault;

pub(crate) static VAULT: LazyLock<Vault> = LazyLock::new(|| Vault::new(&Secret::new([7; 32])));

static POLICY: AddressPolicy = AddressPolicy { allowed: Vec::new(), forbids_files: false };

/// A context at `now` in which only public addresses may be called.
pub(crate) fn definition_context(now: Timestamp) -> DefinitionContext<'static> {
    let (workspace, vault) = (WorkspaceId::from_bytes(9_u64.to_be_bytes()), &*VAULT);
    DefinitionContext { workspace, vault, random: &SystemRandomness, policy: &POLICY, now }
}
