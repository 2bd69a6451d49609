//! `url`: an absolute URL.

use ::url::Url as Parsed;

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::pattern::ecma262::{END, case_insensitive};
use crate::domain::question::control::{Control, LineKind};
use crate::domain::question::json::object;
use crate::domain::question::text::check_line;
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

const WEB: [&str; 2] = ["http", "https"];

/// Characters that no URL contains, for a class of JSON Schema: controls, white space, and `\`, which browsers correct.
const FOREIGN: &str = r"\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\\";

const PORT: &str = "0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

/// Returns a pattern for URLs with `scheme`. It covers the host of `http` and `https`; all other hosts, and whether a
/// host name is valid, are checked by the server only.
fn expression(scheme: &str) -> String {
    let rest = match WEB.contains(&&*scheme.to_ascii_lowercase()) {
        true => format!(
            r"//([^/?#{FOREIGN}]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#@:<>^|\[\]{FOREIGN}]+)(:({PORT})?)?([/?#][^{FOREIGN}]*)?"
        ),
        false => format!("[^{FOREIGN}]*"),
    };
    format!("{}:{rest}", case_insensitive(scheme))
}

/// Rules of `url`: an absolute URL, `http` or `https` unless `schemes` is set.
#[derive(Debug, Clone)]
pub(super) struct Url {
    schemes: Option<Vec<String>>,
}

impl Url {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let schemes = fields.texts("schemes", 40);
        for (place, scheme) in schemes.iter().flatten().enumerate().filter(|(_, scheme)| !is_scheme(scheme)) {
            let message = format!("`{scheme}` is not a scheme like https");
            fields.refuse_item("schemes", place, Rule::InvalidRange, message);
        }
        Self { schemes }
    }
}

/// Whether `text` is a valid scheme (RFC 3986 §3.1).
fn is_scheme(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_valid)
}

/// Schemes whose URLs have a host name (WHATWG URL, *special schemes*).
const WITH_HOST: [&str; 6] = ["http", "https", "ftp", "ws", "wss", "file"];

/// Maximum characters of a host, as in the DNS: converting a non-ASCII name takes quadratic time.
const MAX_HOST: usize = 253;

/// Returns the scheme of `text` in lower case, if it is a valid absolute URL.
///
/// Browsers and the parser silently correct white space, `\` and missing slashes; such texts are refused here.
fn scheme_of(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let needs_correction = text.contains(|character: char| character.is_whitespace() || character == '\\');
    let host = rest.trim_start_matches('/').split(['/', '?', '#']).next().unwrap_or_default();
    let is_named = !WEB.contains(&&*scheme) || (rest.starts_with("//") && !rest.starts_with("///"));
    let is_short = !WITH_HOST.contains(&&*scheme) || host.chars().nth(MAX_HOST).is_none();
    (!needs_correction && is_named && is_short && Parsed::parse(text).is_ok()).then_some(scheme)
}

impl Rules for Url {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        check_line(answer, texts, |text| {
            let is_web = |scheme: &String| self.schemes.is_some() || WEB.contains(&scheme.as_str());
            let sample = || fill(texts.expects_url, &[("sample", &"https://example.com/page")]);
            let invalid = || AnswerError::enter(Rule::InvalidUrl, &sample(), texts);
            let scheme = scheme_of(text).filter(is_web).ok_or_else(invalid)?;
            match &self.schemes {
                Some(schemes) if !schemes.iter().any(|listed| listed.eq_ignore_ascii_case(&scheme)) => {
                    let message = fill(texts.schemes_allowed, &[("schemes", &schemes.join(texts.comma))]);
                    Err(AnswerError::new(Rule::SchemeNotAllowed, message))
                }
                Some(_) | None => Ok(()),
            }
        })
    }

    fn schema(&self) -> Value {
        let web = WEB.map(str::to_owned);
        let schemes = self.schemes.as_deref().unwrap_or(&web).iter();
        let schemes: Vec<_> = schemes.map(|scheme| expression(scheme)).collect();
        let pattern = format!("^({}){END}", schemes.join("|"));
        object([("type", Some("string".into())), ("pattern", Some(Value::String(pattern)))])
    }

    fn control(&self) -> Control<'_> {
        LineKind::Url.control()
    }

    fn example(&self) -> Value {
        "https://example.com".into()
    }

    fn expects(&self, texts: &Texts) -> String {
        fill(texts.expects_url, &[("sample", &"https://example.com")])
    }
}
