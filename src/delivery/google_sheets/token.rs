//! Access tokens: a request signed by the key of a service account
//! (<https://developers.google.com/identity/protocols/oauth2/service-account#httprest>).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::RSA_PKCS1_SHA256;
use serde_json::json;

use crate::clock::Timestamp;
use crate::domain::integration::google_sheets::service_account::ServiceAccount;
use crate::secret::Secret;

/// Who is meant to read the request, wherever it is sent to.
const AUDIENCE: &str = "https://oauth2.googleapis.com/token";

const SCOPE: &str = "https://www.googleapis.com/auth/spreadsheets";

/// Seconds for which a token is requested: as long as Google allows.
const LIFETIME: i64 = 3_600;

/// A token is replaced this many seconds before it expires.
const MARGIN: i64 = 300;

/// Tokens that are valid, in memory only.
#[derive(Debug, Default)]
pub(in crate::delivery) struct TokenCache(Mutex<HashMap<KeyDigest, Token>>);

type KeyDigest = [u8; 32];

#[derive(Debug)]
struct Token {
    text: Secret<String>,
    valid_until: Timestamp,
}

impl TokenCache {
    /// Returns the token that was obtained with `key`, if it is valid at `now`.
    pub(super) fn get(&self, key: &Secret<String>, now: Timestamp) -> Option<Secret<String>> {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|_, token| token.valid_until > now);
        tokens.get(&digest_of(key)).map(|token| token.text.clone())
    }

    /// Keeps a token that is valid for `seconds` from `now` on, for 55 minutes at most.
    pub(super) fn put(&self, key: &Secret<String>, text: Secret<String>, seconds: i64, now: Timestamp) {
        let millis = (seconds.clamp(0, LIFETIME) - MARGIN) * 1_000;
        let token = Token { text, valid_until: Timestamp::from_millis(now.millis() + millis) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest_of(key), token);
    }

    /// Forgets the token that was obtained with `key`.
    pub(super) fn remove(&self, key: &Secret<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest_of(key));
    }
}

fn digest_of(key: &Secret<String>) -> KeyDigest {
    let mut bytes = KeyDigest::default();
    bytes.copy_from_slice(digest(&SHA256, key.reveal().as_bytes()).as_ref());
    bytes
}

/// Returns the body of a request for a token.
pub(super) fn form(assertion: &Secret<String>) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    form.append_pair("assertion", assertion.reveal());
    form.finish()
}

/// Returns the JSON Web Token by which `account` proves that it has its key; `None` if that cannot sign.
pub(super) fn assertion(account: &ServiceAccount, now: Timestamp) -> Option<Secret<String>> {
    let issued_at = now.millis().div_euclid(1_000);
    let mut head = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(id) = &account.key_id {
        head["kid"] = id.as_str().into();
    }
    let claims = json!({
        "iss": account.email, "scope": SCOPE, "aud": AUDIENCE, "iat": issued_at, "exp": issued_at + LIFETIME,
    });
    let encode = |part: serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encode(head), encode(claims));
    let mut signature = vec![0; account.key.public().modulus_len()];
    account.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).ok()?;
    Some(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
}
