//! Signatures of webhooks, as specified by Standard Webhooks 1.0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::domain::integration::settings::signing_secret::PREFIX;

/// Signs the request with this id, sent at `timestamp` (Unix seconds): `v1,` and base64. `None` if `secret` is not `whsec_`
/// and base64.
pub fn sign(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let key = STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
    context.update(format!("{id}.{timestamp}.").as_bytes());
    context.update(body);
    Some(format!("v1,{}", STANDARD.encode(context.sign())))
}

#[cfg(test)]
mod tests {
    use super::sign;

    #[test]
    fn the_reference_signature_is_reproduced() {
        let signature = sign(
            "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
            "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            1_649_367_553,
            br#"{"email":"test@example.com","username":"test_user"}"#,
        );
        assert_eq!(signature.as_deref(), Some("v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="));
        for secret in ["C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_?", ""] {
            assert_eq!(sign(secret, "evt_1", 0, b""), None, "{secret}");
        }
    }
}
