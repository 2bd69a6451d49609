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

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::{Signature, SigningSecret, verify};
    use crate::clock::Timestamp;

    /// The example of Standard Webhooks.
    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const SIGNATURE: &str = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
    const BODY: &[u8] = br#"{"email":"test@example.com","username":"test_user"}"#;
    const SENT: i64 = 1_649_367_553;

    #[test]
    fn only_the_example_of_standard_webhooks_is_verified() {
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let both = format!("v1,AAAA {SIGNATURE}");
        let other_algorithm = SIGNATURE.replace("v1,", "v1a,");
        for (secrets, signature, body, now, is_valid) in [
            (&[SECRET][..], SIGNATURE, BODY, SENT, true),
            (&[other, SECRET], SIGNATURE, BODY, SENT + 300, true),
            (&[SECRET], &both, BODY, SENT - 300, true),
            (&[other], SIGNATURE, BODY, SENT, false),
            (&[SECRET], SIGNATURE, b"{}", SENT, false),
            (&[SECRET], SIGNATURE, BODY, SENT + 301, false),
            (&[SECRET], SIGNATURE, BODY, SENT - 301, false),
            (&[SECRET], &other_algorithm, BODY, SENT, false),
            (&[SECRET], "v1,", BODY, SENT, false),
        ] {
            let secrets: Vec<_> =
                secrets.iter().map(|secret| SigningSecret::parse(secret).unwrap()).collect();
            let mut headers = HeaderMap::new();
            headers.insert("webhook-id", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk".parse().unwrap());
            headers.insert("webhook-timestamp", SENT.into());
            headers.insert("webhook-signature", signature.parse().unwrap());
            let verified = verify(&secrets, &headers, body, Timestamp::from_millis(now * 1_000));
            assert_eq!(verified == Signature::Verified, is_valid, "{signature} {now}");
        }
        for text in ["", "whsec_", "whsec_!", "C2FVsBQIhrscChlQIMV+b5sSYspob7oD"] {
            assert!(SigningSecret::parse(text).is_err(), "{text}");
        }
    }
}
