//! `url`: an absolute address.

use ::url::Url as Parsed;

use super::json::object;
use super::text::check_line;
use super::{Fault, Rules};
use crate::clock::Timestamp;
use crate::domain::fields::Fields;
use crate::domain::json::Value;
use crate::domain::violation::{Rule, Violation};

/// The schemes that are taken where the author names none.
const WEB: [&str; 2] = ["http", "https"];

/// The form of an address, for JSON Schema: few validators know the format `iri`.
const EXPRESSION: &str = r"^[A-Za-z][A-Za-z0-9+.-]*:[^\u0000-\u0020\u007f-\u00a0\u2028\u2029\\]*$";

/// An absolute address, of the web if the author names no other schemes.
#[derive(Debug, Clone)]
pub(super) struct Url {
    schemes: Option<Vec<String>>,
}

impl Url {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let schemes = fields.texts("schemes", 40);
        for (place, scheme) in schemes.iter().flatten().enumerate().filter(|(_, scheme)| !is_scheme(scheme)) {
            let pointer = format!("{}/{place}", fields.at("schemes"));
            let message = format!("`{scheme}` is not a scheme like https");
            fields.report(Violation::new(pointer, Rule::InvalidRange, message));
        }
        Self { schemes }
    }
}

/// RFC 3986 §3.1.
fn is_scheme(text: &str) -> bool {
    let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(fit)
}

/// Schemes whose addresses have a host name (WHATWG URL, *special schemes*).
const WITH_HOST: [&str; 6] = ["http", "https", "ftp", "ws", "wss", "file"];

/// Characters of what names the host: as many as a host name has. The time for one beyond ASCII is quadratic.
const MAX_HOST: usize = 253;

/// The scheme of an absolute address that is one, in lower case.
///
/// Browsers mend much, and so does the parser: what they would change in silence, white space, a `\`, missing slashes, is
/// refused here.
fn scheme_of(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let mended = text.contains(|character: char| character.is_whitespace() || character == '\\');
    let host = rest.trim_start_matches('/').split(['/', '?', '#']).next().unwrap_or_default();
    let is_named = !WEB.contains(&&*scheme) || (rest.starts_with("//") && !rest.starts_with("///"));
    let is_short = !WITH_HOST.contains(&&*scheme) || host.chars().nth(MAX_HOST).is_none();
    (!mended && is_named && is_short && Parsed::parse(text).is_ok()).then_some(scheme)
}

impl Rules for Url {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<Fault> {
        check_line(answer, |text| {
            let is_web = |scheme: &String| self.schemes.is_some() || WEB.contains(&scheme.as_str());
            let sample = "Enter an address like https://example.com/page";
            let scheme =
                scheme_of(text).filter(is_web).ok_or_else(|| Fault::new(Rule::InvalidUrl, sample))?;
            match &self.schemes {
                Some(schemes) if !schemes.iter().any(|listed| listed.eq_ignore_ascii_case(&scheme)) => {
                    let message = format!("Enter an address that begins with {}", schemes.join(", "));
                    Err(Fault::new(Rule::SchemeNotAllowed, message))
                }
                Some(_) | None => Ok(()),
            }
        })
    }

    fn schema(&self) -> Value {
        object([("type", Some("string".into())), ("pattern", Some(EXPRESSION.into()))])
    }

    fn example(&self) -> Value {
        "https://example.com".into()
    }

    fn expects(&self) -> String {
        "an address like https://example.com".to_owned()
    }
}
