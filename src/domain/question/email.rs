//! `email`: one address, in the form people have.

use email_address::{EmailAddress, Options};

use super::json::{object, present};
use super::text::{Lines, one_line};
use super::{Fault, Rules};
use crate::clock::Timestamp;
use crate::domain::fields::Fields;
use crate::domain::json::Value;
use crate::domain::violation::{Rule, Violation};

/// Characters an address may have (RFC 5321 §4.5.3.1.3, less the brackets around it).
const MAX_LENGTH: i64 = 254;

/// One e-mail address.
///
/// A dot-string local part in ASCII and a domain of at least two labels (international names as typed), 254 characters
/// at most. Quoted local parts, comments and address literals (RFC 5321 §4.1.2) are refused:
/// nearly always they are mistakes.
#[derive(Debug, Clone, Default)]
pub struct Email {
    allow_domains: Option<Vec<String>>,
    deny_domains: Option<Vec<String>>,
}

impl Email {
    pub(super) fn read(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            allow_domains: domains(fields, "allow_domains"),
            deny_domains: domains(fields, "deny_domains"),
        }
    }

    fn admits(&self, domain: &str) -> bool {
        let listed = |domains: &Vec<String>| domains.iter().any(|parent| lies_below(domain, parent));
        self.allow_domains.as_ref().is_none_or(listed) && !self.deny_domains.as_ref().is_some_and(listed)
    }
}

impl Rules for Email {
    fn check(&self, answer: &Value, _: Option<Timestamp>) -> Vec<Fault> {
        let text = match one_line(answer) {
            Ok(text) => text,
            Err(fault) => return vec![fault],
        };
        let Some(domain) = domain_of(text) else {
            return vec![Fault::new(Rule::InvalidEmail, "Enter an email address like name@example.com")];
        };
        if self.admits(domain) {
            return Vec::new();
        }
        let message = match &self.allow_domains {
            Some(allowed) => format!("Enter an address of {}", allowed.join(", ")),
            None => format!("Addresses of {domain} are not accepted here"),
        };
        vec![Fault::new(Rule::DomainNotAllowed, message)]
    }

    fn schema(&self) -> Value {
        object([
            ("type", Some("string".into())),
            ("format", Some("email".into())),
            ("pattern", Some(Lines::One.expression().into())),
            ("maxLength", Some(MAX_LENGTH.into())),
        ])
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let list = |domains: &Vec<String>| domains.iter().map(String::as_str).collect();
        present([
            ("allow_domains", self.allow_domains.as_ref().map(list)),
            ("deny_domains", self.deny_domains.as_ref().map(list)),
        ])
    }

    fn example(&self) -> Value {
        "name@example.com".into()
    }

    fn expects(&self) -> String {
        "an email address".to_owned()
    }
}

fn domains(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Vec<String>> {
    let domains = fields.texts(name, 253)?;
    for (place, domain) in domains.iter().enumerate() {
        if domain_of(&format!("a@{domain}")).is_none() {
            let pointer = format!("{}/{place}", fields.at(name));
            let message = format!("`{domain}` is no domain like example.com");
            fields.report(Violation::new(pointer, Rule::InvalidRange, message));
        }
    }
    Some(domains)
}

/// The domain of an address that is one.
fn domain_of(text: &str) -> Option<&str> {
    let options =
        Options::default().with_minimum_sub_domains(2).without_domain_literal().without_display_text();
    EmailAddress::parse_with_options(text, options).ok()?;
    let (local, domain) = text.rsplit_once('@')?;
    let plain = local.is_ascii() && !local.contains(['"', '(', ')']) && !domain.contains(['(', ')']);
    (plain && text.chars().count() <= MAX_LENGTH as usize).then_some(domain)
}

/// Whether `domain` is `parent` or a subdomain of it; case does not matter.
fn lies_below(domain: &str, parent: &str) -> bool {
    let (domain, parent) = (domain.to_lowercase(), parent.to_lowercase());
    domain.strip_suffix(&parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
