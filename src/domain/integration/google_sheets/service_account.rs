//! Keys of service accounts, as Google's JSON files have them.

use std::fmt;

use ring::signature::RsaKeyPair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;

use crate::domain::question::email_domain;

/// A service account with its key.
pub struct ServiceAccount {
    /// Its address, with which spreadsheets are shared; not a secret.
    pub email: String,
    pub key_id: Option<String>,
    pub key: RsaKeyPair,
}

impl fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccount").field("email", &self.email).finish_non_exhaustive()
    }
}

/// The members that are used. `token_uri` is not one of them: it would decide where a signed request goes.
#[derive(Deserialize)]
struct KeyFile {
    #[serde(rename = "type")]
    account_type: Option<String>,
    client_email: Option<String>,
    private_key_id: Option<String>,
    private_key: Option<String>,
}

impl ServiceAccount {
    /// Parses the content of a key file. Errors continue "`service_account` …" and quote nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "must be the content of the JSON file with the key of a service account";
        let file: KeyFile = serde_json::from_str(text).map_err(|_error| expected.to_owned())?;
        if file.account_type.as_deref().is_some_and(|name| name != "service_account") {
            return Err(format!("{expected}; this is a key of another type"));
        }
        let email = file.client_email.filter(|email| email_domain(email).is_some());
        let email = email.ok_or_else(|| format!("{expected}; `client_email` is missing or invalid"))?;
        let pem = file.private_key.ok_or_else(|| format!("{expected}; `private_key` is missing"))?;
        let key =
            read_key(&pem).ok_or_else(|| format!("{expected}; `private_key` is not a valid RSA key"))?;
        Ok(Self { email, key_id: file.private_key_id, key })
    }
}

/// Reads an RSA key of at least 2048 bits, PKCS #8 in PEM format.
fn read_key(pem: &str) -> Option<RsaKeyPair> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()
}
