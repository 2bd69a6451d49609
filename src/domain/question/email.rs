//! `email`: one email address in its common form.

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::pattern::ecma262::case_insensitive;
use crate::domain::question::control::{Control, LineKind};
use crate::domain::question::json::{object, patterns};
use crate::domain::question::text::check_line;
use crate::domain::question::{AnswerError, Rules};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

const SAMPLE: &str = "name@example.com";

/// Maximum characters of an address (RFC 5321 §4.5.3.1.3, without the brackets around it).
const MAX_LENGTH: i64 = 254;

/// Pattern of an address, for JSON Schema, whose format `email` excludes internationalized host names. Only the server
/// checks which characters those have.
const EXPRESSION: &str = concat!(
    r"^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(",
    r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?",
    r"|[A-Za-z0-9.-]*[^\u0000-\u009f]([A-Za-z0-9.-]|[^\u0000-\u009f])*)$(?!\n)"
);

/// Pattern of an address whose local part is not too long.
const LOCAL: &str = "^[^@]{1,64}@";

/// Pattern of an address whose last label is all digits, as in an IP address.
const ALL_DIGITS: &str = r"\.[0-9]+$";

/// Rules of `email`.
///
/// A dot-string local part in ASCII, and a host name of at least two labels, which may be internationalized. Quoted local
/// parts, comments and address literals (RFC 5321 §4.1.2) are refused: nearly always they are mistakes.
#[derive(Debug, Clone, Default)]
pub(super) struct Email {
    /// The only domains whose addresses are accepted; all if empty.
    allow_domains: Vec<Domain>,
    deny_domains: Vec<Domain>,
}

/// A domain in `allow_domains` or `deny_domains`; it includes its subdomains.
#[derive(Debug, Clone)]
struct Domain {
    original: String,
    ascii: String,
}

impl Email {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            allow_domains: domains(fields, "allow_domains"),
            deny_domains: domains(fields, "deny_domains"),
        }
    }

    fn allows(&self, domain: &str) -> bool {
        let is_in = |domains: &[Domain]| domains.iter().any(|parent| parent.includes(domain));
        (self.allow_domains.is_empty() || is_in(&self.allow_domains)) && !is_in(&self.deny_domains)
    }
}

impl Rules for Email {
    fn check(&self, answer: &Value, _: Option<Timestamp>, texts: &Texts) -> Vec<AnswerError> {
        check_line(answer, texts, |text| {
            let sample = || fill(texts.email, &[("sample", &SAMPLE)]);
            let domain = domain_of(text).ok_or_else(|| AnswerError::new(Rule::InvalidEmail, sample()))?;
            if self.allows(&domain) {
                return Ok(());
            }
            let allowed: Vec<_> = self.allow_domains.iter().map(|domain| &*domain.original).collect();
            let message = match allowed.is_empty() {
                true => fill(texts.domain_denied, &[("domain", &domain)]),
                false => fill(texts.domains_allowed, &[("domains", &allowed.join(texts.comma))]),
            };
            Err(AnswerError::new(Rule::DomainNotAllowed, message))
        })
    }

    fn schema(&self) -> Value {
        let of = |domains: &[Domain]| (!domains.is_empty()).then(|| domain_pattern(domains));
        let allowed = of(&self.allow_domains).map(|pattern| format!("[^\\u0000-\\u009f]|{pattern}"));
        let denied = of(&self.deny_domains).map(|pattern| format!("|{pattern}"));
        let refused = ALL_DIGITS.to_owned() + &denied.unwrap_or_default();
        object([
            ("type", Some("string".into())),
            ("pattern", Some(EXPRESSION.into())),
            ("maxLength", Some(MAX_LENGTH.into())),
            ("allOf", patterns([LOCAL.to_owned()].into_iter().chain(allowed))),
            ("not", Some(object([("pattern", Some(refused.as_str().into()))]))),
        ])
    }

    fn control(&self) -> Control<'_> {
        LineKind::Email.control()
    }

    fn example(&self) -> Value {
        SAMPLE.into()
    }

    fn expects(&self, texts: &Texts) -> String {
        texts.expects_email.to_owned()
    }
}

impl Domain {
    /// Whether `domain`, in ASCII and lower case, is this domain or a subdomain.
    fn includes(&self, domain: &str) -> bool {
        domain.strip_suffix(&self.ascii).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

/// Returns a pattern for addresses in `domains` or their subdomains, ignoring case.
fn domain_pattern(domains: &[Domain]) -> String {
    let domains: Vec<_> = domains.iter().map(|domain| case_insensitive(&domain.ascii)).collect();
    format!("[.@]({})$", domains.join("|"))
}

fn domains(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<Domain> {
    let mut domains = Vec::new();
    for (place, original) in fields.texts(name, 253).into_iter().flatten().enumerate() {
        match ascii_domain(&original) {
            Some(ascii) => domains.push(Domain { original, ascii }),
            None => {
                let message = format!("`{original}` is not a domain like example.com");
                fields.refuse_item(name, place, Rule::InvalidRange, message);
            }
        }
    }
    domains
}

/// Returns the domain of a valid address as in the DNS: in ASCII and lower case.
pub(in crate::domain) fn domain_of(text: &str) -> Option<String> {
    let (local, domain) = text.split_once('@')?;
    // Checked first: converting a non-ASCII name takes quadratic time.
    let is_short = text.chars().nth(MAX_LENGTH as usize).is_none();
    if is_short && is_dot_string(local) { ascii_domain(domain) } else { None }
}

/// Whether `local` is a dot-string (RFC 5321 §4.1.2) of at most 64 bytes (§4.5.3.1.1).
fn is_dot_string(local: &str) -> bool {
    let is_atext = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    let is_atom = |atom: &str| !atom.is_empty() && atom.bytes().all(is_atext);
    local.len() <= 64 && local.split('.').all(is_atom)
}

/// Converts `domain` to ASCII and lower case. `None` unless it has at least two labels of letters, digits and inner
/// hyphens, the last not all digits.
fn ascii_domain(domain: &str) -> Option<String> {
    let bytes = domain.as_bytes();
    let ascii = Uts46::new().to_ascii(bytes, AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify);
    let ascii = ascii.ok()?.into_owned();
    let (_, last) = ascii.rsplit_once('.')?;
    // A name that maps to plain ASCII contained characters that nobody types on purpose, such as invisible ones.
    let is_as_typed = domain.is_ascii() || ascii.contains("xn--");
    (is_as_typed && !last.bytes().all(|byte| byte.is_ascii_digit())).then_some(ascii)
}
