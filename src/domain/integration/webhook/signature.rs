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
