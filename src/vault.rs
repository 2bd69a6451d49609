//! Sealing of secrets at rest with the server's master key: ChaCha20-Poly1305 (RFC 8439).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

use crate::id::{IntegrationId, Random, WorkspaceId};
use crate::secret::Secret;

/// Bytes of a master key.
pub const MASTER_KEY_BYTES: usize = 32;

/// A sealed secret: nonce, ciphertext and tag in base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed(String);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(sealed)")
    }
}

/// Where a secret belongs. A sealed secret that was moved elsewhere cannot be unsealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretPlace<'a> {
    pub workspace: WorkspaceId,
    pub integration: IntegrationId,
    /// `secret`, `bearer_token`, `headers/X-Key`.
    pub field: &'a str,
}

impl SecretPlace<'_> {
    fn aad(&self) -> Aad<Vec<u8>> {
        Aad::from(format!("{}|{}|{}", self.workspace, self.integration, self.field).into_bytes())
    }
}

/// A secret was sealed with another master key or for another place, or is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret was sealed with another master key: start the server with that one (--master-key-file), or set the secret again"
)]
pub struct Unsealable;

/// Seals and unseals secrets with a master key.
#[derive(Clone)]
pub struct Vault(std::sync::Arc<LessSafeKey>);

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    pub fn new(master_key: &Secret<[u8; MASTER_KEY_BYTES]>) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, master_key.reveal()).expect("the key has 32 bytes");
        Self(std::sync::Arc::new(LessSafeKey::new(key)))
    }

    pub fn seal(&self, place: SecretPlace<'_>, secret: &str, random: &dyn Random) -> Sealed {
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce);
        let mut text = secret.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, place.aad(), &mut text).expect("secrets are short");
        Sealed(STANDARD.encode([&nonce[..], &text].concat()))
    }

    pub fn unseal(&self, place: SecretPlace<'_>, sealed: &Sealed) -> Result<Secret<String>, Unsealable> {
        let bytes = STANDARD.decode(&sealed.0).map_err(|_damaged| Unsealable)?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(Unsealable)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.0.open_in_place(nonce, place.aad(), &mut text).map_err(|_foreign| Unsealable)?;
        let plain = String::from_utf8(plain.to_vec()).map_err(|_damaged| Unsealable)?;
        Ok(Secret::new(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::{SecretPlace, Unsealable, Vault};
    use crate::id::{IntegrationId, WorkspaceId};
    use crate::secret::{Secret, SystemRandomness};

    #[test]
    fn a_secret_opens_only_in_its_place_and_with_its_key() {
        let (vault, random) = (Vault::new(&Secret::new([7; 32])), SystemRandomness::new());
        let workspace = WorkspaceId::draw(&random);
        let place = SecretPlace { workspace, integration: IntegrationId::draw(&random), field: "secret" };
        let sealed = vault.seal(place, "whsec_x", &random);
        assert_eq!(vault.unseal(place, &sealed).unwrap().reveal(), "whsec_x");
        for elsewhere in [
            SecretPlace { field: "bearer_token", ..place },
            SecretPlace { integration: IntegrationId::draw(&random), ..place },
            SecretPlace { workspace: WorkspaceId::draw(&random), ..place },
        ] {
            assert_eq!(vault.unseal(elsewhere, &sealed).unwrap_err(), Unsealable);
        }
        assert!(Vault::new(&Secret::new([8; 32])).unseal(place, &sealed).is_err());
        assert!(!format!("{sealed:?}").contains(&sealed.0));
    }
}
