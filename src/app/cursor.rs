//! Cursors: positions in a list, each signed together with the list it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use super::{ApiError, Result};
use crate::api::Code;

/// Signs positions in one list, and verifies that a cursor belongs to it.
pub(super) struct Cursors {
    key: hmac::Key,
    /// Identifies the list and its filters.
    list: String,
}

impl Cursors {
    /// Bytes of the signature. A guessed one would only give a position in one's own list.
    const TAG_LENGTH: usize = 8;

    /// Signs positions in `list` with `key`.
    pub(super) fn new(key: &[u8; 32], list: String) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), list }
    }

    pub(super) fn write(&self, position: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode([position, &self.sign(position)].concat())
    }

    /// Returns the position of `cursor`, if there is one. Fails if it is not of this list.
    pub(super) fn read<P: TryFrom<Vec<u8>>>(&self, cursor: Option<&str>) -> Result<Option<P>> {
        let Some(text) = cursor else { return Ok(None) };
        let detail = "`cursor` is not from this list; start again without it";
        let position = self.position(text).and_then(|bytes| bytes.try_into().ok());
        position.map(Some).ok_or_else(|| ApiError::with_detail(Code::InvalidCursor, detail))
    }

    fn position(&self, text: &str) -> Option<Vec<u8>> {
        let mut position = URL_SAFE_NO_PAD.decode(text).ok()?;
        let tag = position.split_off(position.len().checked_sub(Self::TAG_LENGTH)?);
        (self.sign(&position) == *tag).then_some(position)
    }

    fn sign(&self, position: &[u8]) -> [u8; Self::TAG_LENGTH] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(self.list.as_bytes());
        context.update(&[0]);
        context.update(position);
        context.sign().as_ref()[..Self::TAG_LENGTH].try_into().expect("an HMAC-SHA-256 has 32 bytes")
    }
}
