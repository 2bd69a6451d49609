//! Settings as they are stored, also by earlier versions: those had each member of a webhook and of a CSV file on its own.

use serde::Deserialize;

use super::{
    Header, PreviousSecret, SIGNING_SECRET, SecretField, SecretReceiver, Setting, Settings, header_field,
};

#[derive(Deserialize)]
pub(super) struct StoredSettings {
    #[serde(default)]
    values: Vec<(String, Setting)>,
    #[serde(default)]
    secrets: Vec<(String, SecretField)>,
    receiver: Option<SecretReceiver>,
    #[serde(default)]
    previous: Vec<PreviousSecret>,
    #[serde(flatten)]
    earlier: EarlierSettings,
}

#[derive(Deserialize)]
struct EarlierSettings {
    url: Option<String>,
    payload: Option<String>,
    path: Option<String>,
    delimiter: Option<String>,
    #[serde(default)]
    headers: Vec<(String, EarlierHeader)>,
    secret: Option<SecretField>,
    bearer_token: Option<SecretField>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum EarlierHeader {
    Text(String),
    Secret(SecretField),
}

impl From<StoredSettings> for Settings {
    fn from(stored: StoredSettings) -> Self {
        let StoredSettings { mut values, mut secrets, receiver, previous, earlier } = stored;
        let EarlierSettings { url, payload, path, delimiter, headers, secret, bearer_token } = earlier;
        for (name, text) in [("url", url), ("payload", payload), ("path", path), ("delimiter", delimiter)] {
            values.extend(text.map(|text| (name.to_owned(), Setting::Text(text))));
        }
        secrets.extend(secret.map(|secret| (SIGNING_SECRET.to_owned(), secret)));
        let mut plain: Vec<Header> = Vec::new();
        for (name, value) in headers {
            let text = match value {
                EarlierHeader::Text(text) => Some(text),
                EarlierHeader::Secret(secret) => {
                    secrets.push((header_field(&name), secret));
                    None
                }
            };
            plain.push((name, text));
        }
        if !plain.is_empty() {
            values.push(("headers".to_owned(), Setting::Headers(plain)));
        }
        secrets.extend(bearer_token.map(|token| ("bearer_token".to_owned(), token)));
        Self { values, secrets, receiver, previous }
    }
}
