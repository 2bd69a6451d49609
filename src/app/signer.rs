//! Texts that the server signs and gets back: cursors of lists, and tokens of pages.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq;

use super::{ApiError, Result};
use crate::api::Code;

/// Signs bytes for one purpose, and verifies that a text was signed for it.
pub(super) struct Signer {
    key: hmac::Key,
    purpose: String,
}

impl Signer {
    /// Bytes of a signature.
    const TAG_LENGTH: usize = 16;

    pub(super) fn new(key: &[u8; 32], purpose: String) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), purpose }
    }

    pub(super) fn write(&self, content: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode([content, &self.sign(content)].concat())
    }

    /// Returns the bytes in `text`; `None` unless they were signed for this purpose.
    pub(super) fn read(&self, text: &str) -> Option<Vec<u8>> {
        let mut content = URL_SAFE_NO_PAD.decode(text).ok()?;
        let tag = content.split_off(content.len().checked_sub(Self::TAG_LENGTH)?);
        bool::from(self.sign(&content).ct_eq(&tag)).then_some(content)
    }

    fn sign(&self, content: &[u8]) -> [u8; Self::TAG_LENGTH] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(self.purpose.as_bytes());
        context.update(&[0]);
        context.update(content);
        context.sign().as_ref()[..Self::TAG_LENGTH].try_into().expect("an HMAC-SHA-256 has 32 bytes")
    }
}

/// The cursors of one list, with its filters: signed positions in it.
pub(super) struct Cursors(pub(super) Signer);

impl Cursors {
    pub(super) fn write(&self, position: &[u8]) -> String {
        self.0.write(position)
    }

    /// Returns the position of `cursor`, if there is one. Fails if it is not of this list.
    pub(super) fn read<P: TryFrom<Vec<u8>>>(&self, cursor: Option<&str>) -> Result<Option<P>> {
        let Some(text) = cursor else { return Ok(None) };
        let detail = "`cursor` is not from this list; start again without it";
        let position = self.0.read(text).and_then(|bytes| bytes.try_into().ok());
        position.map(Some).ok_or_else(|| ApiError::with_detail(Code::InvalidCursor, detail))
    }
}
