//! Verification of signatures, as specified by Standard Webhooks 1.0.

use axum::http::HeaderMap;
use subtle::ConstantTimeEq;

use crate::clock::Timestamp;
use crate::domain::integration::webhook::signature::sign;
use crate::secret::Secret;

/// Maximum difference between the time of an attempt and the receiver's clock, in seconds: an older request may have been
/// recorded and sent again by somebody else.
const TOLERANCE: u64 = 5 * 60;

/// Whether a request comes from the holder of the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    Verified,
    /// There is no secret to verify with.
    Unverified,
    /// Why it is not valid.
    Invalid(&'static str),
}

/// A secret that signs webhooks: `whsec_` and base64.
pub struct SigningSecret(Secret<String>);

impl SigningSecret {
    /// Parses `whsec_…`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let is_valid = text.len() > "whsec_".len() && sign(text, "", 0, b"").is_some();
        let secret = is_valid.then(|| Self(Secret::new(text.to_owned())));
        secret.ok_or("a secret is `whsec_` followed by base64")
    }
}

/// Verifies a request with any of `secrets`.
pub(super) fn verify(
    secrets: &[SigningSecret],
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Signature {
    if secrets.is_empty() {
        return Signature::Unverified;
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(id), Some(timestamp)) = (header("webhook-id"), header("webhook-timestamp")) else {
        return Signature::Invalid("there is no webhook-id or no webhook-timestamp");
    };
    let Some(signatures) = header("webhook-signature") else {
        return Signature::Invalid("there is no webhook-signature");
    };
    let sent = timestamp.parse().ok().filter(|sent: &i64| sent.abs_diff(now.millis() / 1_000) <= TOLERANCE);
    let Some(sent) = sent else {
        return Signature::Invalid("webhook-timestamp is not within 5 minutes of this machine's clock");
    };
    let expected: Vec<_> =
        secrets.iter().filter_map(|SigningSecret(secret)| sign(secret.reveal(), id, sent, body)).collect();
    let is_expected = |signature: &str| {
        expected.iter().any(|expected| bool::from(expected.as_bytes().ct_eq(signature.as_bytes())))
    };
    match signatures.split(' ').any(is_expected) {
        true => Signature::Verified,
        false => Signature::Invalid("no webhook-signature was made with this secret"),
    }
}
