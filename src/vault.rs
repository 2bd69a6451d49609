//! Sealing of secrets at rest with the server's master key: ChaCha20-Poly1305 (RFC 8439).

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::id::{IntegrationId, Random, WorkspaceId};
use crate::secret::Secret;

/// Bytes of a master key.
pub const MASTER_KEY_BYTES: usize = 32;

/// A sealed secret: the id of the master key and a colon, then nonce, ciphertext and tag in base64. Earlier versions wrote no
/// id.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed(String);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(sealed)")
    }
}

/// Where a secret belongs. A sealed secret that was moved elsewhere cannot be unsealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretContext<'a> {
    pub workspace: WorkspaceId,
    pub integration: IntegrationId,
    /// `secret`, `bearer_token`, `headers/X-Key`.
    pub field: &'a str,
}

impl SecretContext<'_> {
    fn aad(&self) -> Aad<Vec<u8>> {
        Aad::from(format!("{}|{}|{}", self.workspace, self.integration, self.field).into_bytes())
    }
}

/// Why a secret cannot be unsealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    #[error(
        "the secret was sealed with another master key: start the server with that one (--master-key-file), or set the secret again"
    )]
    OtherKey,
    /// Damaged, or sealed for another context.
    #[error("the stored secret is damaged: set it again")]
    Damaged,
}

/// Seals and unseals secrets with a master key.
#[derive(Clone)]
pub struct Vault {
    key: Arc<LessSafeKey>,
    /// Identifies the key, without revealing it.
    key_id: Arc<str>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    pub fn new(master_key: &Secret<[u8; MASTER_KEY_BYTES]>) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, master_key.reveal()).expect("the key has 32 bytes");
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, master_key.reveal()), b"forms master key id");
        let key_id = STANDARD.encode(&tag.as_ref()[..6]);
        Self { key: Arc::new(LessSafeKey::new(key)), key_id: key_id.into() }
    }

    pub fn seal(&self, context: SecretContext<'_>, secret: &str, random: &dyn Random) -> Sealed {
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce);
        let mut text = secret.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(unique, context.aad(), &mut text).expect("secrets are short");
        Sealed(format!("{}:{}", self.key_id, STANDARD.encode([&nonce[..], &text].concat())))
    }

    pub fn unseal(
        &self,
        context: SecretContext<'_>,
        sealed: &Sealed,
    ) -> Result<Secret<String>, DecryptError> {
        let (text, error) = match sealed.0.split_once(':') {
            Some((id, _)) if id != &*self.key_id => return Err(DecryptError::OtherKey),
            Some((_, text)) => (text, DecryptError::Damaged),
            // Without an id, another key is more likely than damage.
            None => (sealed.0.as_str(), DecryptError::OtherKey),
        };
        let bytes = STANDARD.decode(text).map_err(|_damaged| error)?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(error)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.key.open_in_place(nonce, context.aad(), &mut text).map_err(|_foreign| error)?;
        let plain = String::from_utf8(plain.to_vec()).map_err(|_damaged| error)?;
        Ok(Secret::new(plain))
    }
}
