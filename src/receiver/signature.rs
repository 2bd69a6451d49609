//! Verification of signatures, as specified by Standard Webhooks 1.0.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use subtle::ConstantTimeEq;

use crate::clock::Timestamp;

/// Maximum difference between the time of an attempt and the receiver's clock, in milliseconds: an older request may have
/// been recorded and sent again by somebody else.
const TOLERANCE_MILLIS: i64 = 5 * 60 * 1_000;

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
pub struct SigningSecret(hmac::Key);

/// A text that is not a signing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is `whsec_` followed by base64")]
pub struct InvalidSecret;

impl SigningSecret {
    /// Parses `whsec_…`.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.trim().strip_prefix("whsec_").filter(|encoded| !encoded.is_empty());
        let bytes = STANDARD.decode(encoded.ok_or(InvalidSecret)?).map_err(|_malformed| InvalidSecret)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Signs `id.timestamp.body`.
    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            context.update(part);
        }
        context.sign()
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
    let sent = timestamp.parse().ok().and_then(|seconds: i64| seconds.checked_mul(1_000));
    if sent.is_none_or(|sent| sent.abs_diff(now.millis()) > TOLERANCE_MILLIS.unsigned_abs()) {
        return Signature::Invalid("webhook-timestamp is not within 5 minutes of this machine's clock");
    }
    let tags: Vec<_> = secrets.iter().map(|secret| secret.sign(id, timestamp, body)).collect();
    let is_valid = |signature: &str| {
        let encoded = signature.strip_prefix("v1,");
        let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok()).unwrap_or_default();
        tags.iter().any(|tag| bool::from(tag.as_ref().ct_eq(&bytes)))
    };
    match signatures.split(' ').any(is_valid) {
        true => Signature::Verified,
        false => Signature::Invalid("no webhook-signature was made with this secret"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::{InvalidSecret, Signature, SigningSecret, verify};
    use crate::clock::Timestamp;

    /// The example of Standard Webhooks.
    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const SIGNATURE: &str = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
    const BODY: &[u8] = br#"{"email":"test@example.com","username":"test_user"}"#;
    const SENT: i64 = 1_649_367_553_000;

    fn verify_with(secrets: &[&str], signature: Option<&str>, body: &[u8], now: i64) -> Signature {
        let secrets: Vec<_> = secrets.iter().map(|secret| SigningSecret::parse(secret).unwrap()).collect();
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk".parse().unwrap());
        headers.insert("webhook-timestamp", "1649367553".parse().unwrap());
        if let Some(signature) = signature {
            headers.insert("webhook-signature", signature.parse().unwrap());
        }
        verify(&secrets, &headers, body, Timestamp::from_millis(now))
    }

    #[test]
    fn the_example_of_standard_webhooks_is_verified() {
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let both = format!("v1,AAAA {SIGNATURE}");
        for (secrets, signature) in
            [(&[SECRET][..], SIGNATURE), (&[other, SECRET], SIGNATURE), (&[SECRET], &both)]
        {
            assert_eq!(verify_with(secrets, Some(signature), BODY, SENT), Signature::Verified);
        }
        assert_eq!(verify_with(&[], Some(SIGNATURE), BODY, SENT), Signature::Unverified);
    }

    #[test]
    fn another_secret_body_time_or_algorithm_is_invalid() {
        let is_invalid = |signature| matches!(signature, Signature::Invalid(_));
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        assert!(is_invalid(verify_with(&[other], Some(SIGNATURE), BODY, SENT)));
        assert!(is_invalid(verify_with(&[SECRET], Some(SIGNATURE), b"{}", SENT)));
        assert!(is_invalid(verify_with(&[SECRET], Some(&SIGNATURE.replace("v1,", "v1a,")), BODY, SENT)));
        for signature in [
            None,
            Some(""),
            Some("v1,"),
            Some("v1,tZ1I4"),
            Some("tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="),
        ] {
            assert!(is_invalid(verify_with(&[SECRET], signature, BODY, SENT)), "{signature:?}");
        }
        for (millis, expected) in [(300_000, false), (-300_000, false), (300_001, true), (-300_001, true)] {
            let verified = verify_with(&[SECRET], Some(SIGNATURE), BODY, SENT + millis);
            assert_eq!(is_invalid(verified), expected, "{millis}");
        }
    }

    #[test]
    fn a_secret_has_its_prefix_and_is_base64() {
        for text in ["", "whsec_", "whsec_!", "C2FVsBQIhrscChlQIMV+b5sSYspob7oD"] {
            assert_eq!(SigningSecret::parse(text).err(), Some(InvalidSecret), "{text}");
        }
        assert!(SigningSecret::parse(&format!("{SECRET}\n")).is_ok());
    }
}
