//! Hides secrets in the answers of receivers, which may send back what they got.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::domain::integration::settings::signing_secret::PREFIX;
use crate::secret::Secret;

/// Everything but unreserved characters (RFC 3986 §2.3).
pub(super) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Replaces a secret in text.
const HIDDEN: &str = "(secret)";

/// Returns `body` as text in which `secrets` are hidden, in the forms in which programs write a text they have received.
pub(super) fn redact(body: &[u8], secrets: &[Secret<String>]) -> String {
    let mut forms: Vec<_> = secrets.iter().flat_map(|secret| forms_of(secret.reveal())).collect();
    // A form may be a part of another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    let text = String::from_utf8_lossy(body).into_owned();
    forms.iter().filter(|form| !form.is_empty()).fold(text, |text, form| text.replace(form, HIDDEN))
}

/// The secret as it is, escaped in JSON in the common ways, in base64, and percent-encoded.
fn forms_of(secret: &str) -> Vec<String> {
    let secrets = [Some(secret), secret.strip_prefix(PREFIX)];
    let forms = |secret: &str| {
        let percent_encoded = utf8_percent_encode(secret, RESERVED).to_string();
        let quoted = serde_json::Value::from(secret).to_string();
        let json = quoted[1..quoted.len() - 1].to_owned();
        let html_safe = json.replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026");
        [
            secret.to_owned(),
            json.replace('/', r"\/"),
            json,
            html_safe,
            STANDARD_NO_PAD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
            with_lower_case_escapes(&percent_encoded),
            percent_encoded,
            form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        ]
    };
    secrets.into_iter().flatten().flat_map(forms).collect()
}

/// Writes the hexadecimal digits of a percent-encoded text in lower case, as some programs do.
fn with_lower_case_escapes(text: &str) -> String {
    let (mut parts, mut lower) = (text.split('%'), String::new());
    lower.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (digits, rest) = part.split_at(2);
        lower.extend(["%", &digits.to_lowercase(), rest]);
    }
    lower
}
