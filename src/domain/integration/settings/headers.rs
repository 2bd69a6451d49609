//! Parsing of headers, each text or a secret.

use super::read::Reader;
use super::secrets::{SecretContext, check_header_text};
use super::{Header, Setting};
use crate::domain::json::{Value, join};
use crate::domain::validation::violation::{Rule, Violation, shortened};

pub const MAX_HEADERS: usize = 20;

/// Maximum characters of the name of a header.
const MAX_HEADER_NAME: usize = 100;

/// Maximum bytes of the value of a header.
const MAX_HEADER_VALUE: usize = 4_096;

/// Headers that the server sets itself, or that control the connection.
const RESERVED_HEADERS: [&str; 9] = [
    "host",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "user-agent",
];

/// Prefixes of the names of such headers.
const RESERVED_PREFIXES: [&str; 4] = ["content-", "proxy-", "webhook-", "forms-"];

/// The place that the secret value of the header `name` is sealed for.
pub fn header_field(name: &str) -> String {
    format!("headers/{}", name.to_ascii_lowercase())
}

impl Reader<'_, '_, '_> {
    pub(super) fn read_headers(&mut self, member: &'static str) {
        let Some(value) = self.fields.value(member) else { return };
        let root = self.fields.pointer_to(member);
        let Value::Object(members) = value else {
            self.fields.violations.push(Violation::wrong_type(root, member, "an object", value));
            return;
        };
        let members: Vec<_> = members.iter().filter(|(_, value)| *value != Value::Null).collect();
        if members.len() > MAX_HEADERS {
            let message = format!("`{member}` has {} headers, {MAX_HEADERS} are allowed", members.len());
            self.fields.refuse(member, Rule::TooMany, message);
            return;
        }
        let mut headers: Vec<Header> = Vec::new();
        for (name, value) in members {
            let pointer = join(&root, name);
            if let Err((rule, message)) = check_header_name(name) {
                self.fields.violations.push(Violation::new(&*pointer, rule, message));
            }
            if headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                let message = format!("the header `{}` is given twice", shortened(name));
                self.fields.violations.push(Violation::new(&*pointer, Rule::DuplicateName, message));
            }
            headers.push((name.clone(), self.read_header(name, value, &pointer)));
        }
        if !headers.is_empty() {
            self.settings.values.push((member.to_owned(), Setting::Headers(headers)));
        }
    }

    /// Reads the value of a header: plain as text, secret as an object.
    fn read_header(&mut self, name: &str, value: &Value, pointer: &str) -> Option<String> {
        let Value::String(text) = value else {
            let field = header_field(name);
            let place = SecretContext { field: &field, name, pointer, check: check_header_text };
            let input = self.read_secret_input(Some(value), place)?;
            self.store_secret(&field, input);
            return None;
        };
        let (rule, problem) = match check_header_text(text) {
            Ok(()) if text.len() <= MAX_HEADER_VALUE => return Some(text.clone()),
            Ok(()) => (Rule::TooLong, format!("has {} bytes, {MAX_HEADER_VALUE} are allowed", text.len())),
            Err(problem) => (Rule::InvalidCharacter, problem),
        };
        let message = format!("the header `{}` {problem}", shortened(name));
        self.fields.violations.push(Violation::new(pointer, rule, message));
        None
    }
}

/// Checks that `name` is a token (RFC 9110 §5.6.2) that the server does not set itself.
fn check_header_name(name: &str) -> Result<(), (Rule, String)> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let shown = shortened(name);
    if name.is_empty() || name.len() > MAX_HEADER_NAME || !name.bytes().all(is_token) {
        return Err((Rule::InvalidRange, format!("`{shown}` is not a valid name of a header")));
    }
    let name = name.to_ascii_lowercase();
    if RESERVED_HEADERS.contains(&&*name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err((Rule::ReadOnlyField, format!("the server sets the header `{shown}` itself")));
    }
    Ok(())
}
