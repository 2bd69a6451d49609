//! The master key, which seals secrets at rest.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{ServerError, private_file};
use crate::config::{Config, DeliveryConfig};
use crate::id::Random;
use crate::secret::{Secret, SystemRandomness};
use crate::vault::{MASTER_KEY_BYTES, Vault};

pub(super) type MasterKey = Secret<[u8; MASTER_KEY_BYTES]>;

/// Opens the vault with the key of the settings; or with the one in the data directory. If that is missing it is made, unless
/// the store `has_sealed` secrets.
pub(super) fn open_vault(config: &Config, has_sealed: bool) -> Result<Vault, ServerError> {
    let key = match (given(&config.delivery)?, config.store.folder()) {
        (Some(key), _) => key,
        (None, Some(data)) => find_or_create(data.join("master-key"), has_sealed)?,
        (None, None) => return Err(ServerError::InvalidConfig("a database needs a master key".to_owned())),
    };
    Ok(Vault::new(&key))
}

/// Returns the key of the settings, if they have one.
pub(super) fn given(delivery: &DeliveryConfig) -> Result<Option<MasterKey>, ServerError> {
    if let Some(text) = &delivery.master_key {
        let wrong = || ServerError::InvalidConfig(format!("invalid FORMS_MASTER_KEY: {}", invalid()));
        return parse(text.reveal().as_bytes()).ok_or_else(wrong).map(Some);
    }
    let Some(path) = &delivery.master_key_file else { return Ok(None) };
    // It must not be replaced by another key if it is only not mounted.
    let missing = || ServerError::MasterKey { path: path.clone(), source: io::ErrorKind::NotFound.into() };
    read(path)?.ok_or_else(missing).map(Some)
}

fn find_or_create(path: PathBuf, has_sealed: bool) -> Result<MasterKey, ServerError> {
    match read(&path)? {
        Some(key) => Ok(key),
        None if has_sealed => Err(ServerError::MasterKeyMissing(path)),
        None => create(&path).map_err(|source| ServerError::MasterKey { path, source }),
    }
}

fn read(path: &Path) -> Result<Option<MasterKey>, ServerError> {
    let failed = |source| ServerError::MasterKey { path: path.to_owned(), source };
    let stored = private_file::read(path).map_err(failed)?;
    stored.map(|bytes| parse(&bytes).ok_or_else(|| failed(invalid()))).transpose()
}

fn create(path: &Path) -> io::Result<MasterKey> {
    let mut key = [0; MASTER_KEY_BYTES];
    SystemRandomness.fill(&mut key);
    private_file::write(path, &STANDARD.encode(key))?;
    Ok(Secret::new(key))
}

/// Parses a key in base64, or in hexadecimal as `openssl rand -hex 32` writes it.
fn parse(bytes: &[u8]) -> Option<MasterKey> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let key =
        if text.len() == 2 * MASTER_KEY_BYTES { decode_hex(text)? } else { STANDARD.decode(text).ok()? };
    Some(Secret::new(key.try_into().ok()?))
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits =
        text.bytes().map(|digit| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    Some(digits.chunks(2).map(|pair| pair.iter().fold(0, |value, digit| value << 4 | digit)).collect())
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "expected 32 random bytes in base64 or hexadecimal")
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_key_is_32_bytes_in_base64_or_hexadecimal() {
        let key = |text: &str| parse(text.as_bytes()).map(|key| *key.reveal());
        assert_eq!(key(&format!("{}\n", "0f".repeat(32))), Some([15; 32]));
        assert_eq!(key("Dw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8PDw8=\n"), Some([15; 32]));
        for text in ["", "0f", &"0f".repeat(31), &"0g".repeat(32), &"é".repeat(32), "Dw8PDw8=", "a b"] {
            assert_eq!(key(text), None, "{text:?}");
        }
    }
}
