//! Parsing of the settings of a webhook.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::{HeaderText, MAX_HEADER_VALUE, MAX_HEADERS, Payload, SECRET_PREFIX, Webhook, is_reserved_header};
use crate::domain::integration::definition::draft_kind::{DraftInput, KindDraft};
use crate::domain::integration::definition::generate_secret;
use crate::domain::integration::definition::secret_input::{
    Sealer, SecretInput, SecretRules, check_bearer_token, check_header_text,
};
use crate::domain::integration::description::{Description, Entry, Member, MemberValue, Need};
use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::Described;
use crate::domain::integration::secret_field::SecretField;
use crate::domain::integration::settings::MAX_URL;
use crate::domain::integration::{Integration, IntegrationKind};
use crate::domain::json::{Value, join};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation, shortened};
use crate::secret::Secret;

/// Maximum characters of the name of a header.
const MAX_HEADER_NAME: usize = 100;

const DESCRIPTION: Description = Description {
    about: "A request to an address for each event, signed as Standard Webhooks 1.0 specifies.",
    events: &EventType::SUBSCRIBABLE,
    members: &[
        Member {
            name: "url",
            need: Need::Required,
            value: MemberValue::Own {
                schema: r#"{"type":"string","pattern":"^[Hh][Tt][Tt][Pp][Ss]?://","maxLength":2000}"#,
                shown: None,
                entry: Entry::Text,
            },
            about: "The address, `https` unless the server allows its network; public, without user, password and fragment. Another host needs all secrets again.",
            example: r#""https://crm.example/hook""#,
        },
        Member {
            name: Webhook::SECRET,
            need: Need::Optional,
            value: MemberValue::Own {
                schema: r##"{"$ref":"#/components/schemas/Secret"}"##,
                shown: Some(
                    r##"{"$ref":"#/components/schemas/SigningSecret","description":"The signing secret."}"##,
                ),
                entry: Entry::Secret,
            },
            about: "The signing secret: `whsec_` and 24 to 64 bytes in base64. One that is left out is made by the server and shown once.",
            example: "",
        },
        Member {
            name: "payload",
            need: Need::Default(r#""full""#),
            value: MemberValue::Choice(&["full", "thin"]),
            about: "What the body has of a submission: all of it, or ids only.",
            example: "",
        },
        Member {
            name: "headers",
            need: Need::Optional,
            value: MemberValue::Own {
                schema: r##"{"type":"object","maxProperties":20,"additionalProperties":{"$ref":"#/components/schemas/HeaderValue"}}"##,
                shown: Some(
                    r##"{"type":"object","additionalProperties":{"$ref":"#/components/schemas/Header"},"description":"Additional headers, by name."}"##,
                ),
                entry: Entry::Other,
            },
            about: "Additional headers, by name.",
            example: r#"{"X-Source":"forms"}"#,
        },
        Member {
            name: Webhook::BEARER_TOKEN,
            need: Need::Optional,
            value: MemberValue::Secret(check_bearer_token),
            about: "Sent as `Authorization: Bearer`.",
            example: "",
        },
    ],
    set_up: "Give the address of your receiver as `url`. The answer shows the signing secret once; `forms listen` and any Standard Webhooks library verify requests with it.",
    limits: "16 requests at a time to a host; 15 seconds for each. A body over 256 KiB is replaced by a thin one, with `truncated: true`.",
    repeats: "At least once. Every attempt has the same `webhook-id` and the same body: remember the ids.",
    source: "https://www.standardwebhooks.com",
};

/// The settings of a webhook as sent.
struct WebhookDraft {
    url: String,
    /// Whether the URL leads to another host than the stored one.
    is_moved: bool,
    secret: SecretInput,
    payload: Payload,
    headers: Vec<(String, HeaderInput)>,
    bearer_token: SecretInput,
}

enum HeaderInput {
    Text(String),
    Secret(SecretInput),
}

/// The stored webhook, and whether its secrets may be kept.
#[derive(Clone, Copy)]
struct Stored<'a> {
    webhook: Option<&'a Webhook>,
    /// Whether the URL leads elsewhere, so that every secret must be sent again.
    is_moved: bool,
    /// Whether missing secrets are reported.
    is_checked: bool,
}

impl Described for Webhook {
    const DESCRIPTION: Description = DESCRIPTION;

    fn read(fields: &mut Fields<'_, '_>, input: DraftInput<'_>) -> Option<KindDraft> {
        let draft = WebhookDraft::read(fields, input)?;
        let build = |current: Option<&Integration>, sealer: Sealer<'_>| {
            let (webhook, generated) = draft.build(current.and_then(Integration::webhook), sealer);
            (IntegrationKind::Webhook(webhook), generated)
        };
        Some(KindDraft { path: None, build: Box::new(build) })
    }
}

impl WebhookDraft {
    fn read(fields: &mut Fields<'_, '_>, input: DraftInput<'_>) -> Option<Self> {
        let url = read_url(fields, input);
        let webhook = input.current.and_then(Integration::webhook);
        let is_moved = url.as_ref().zip(webhook).is_some_and(|(url, webhook)| !webhook.has_origin_of(url));
        let stored = Stored { webhook, is_moved, is_checked: input.policy.is_some() };
        let secret = read_secret(fields, Webhook::SECRET, stored.secret(), check_signing_secret, stored);
        let payloads = Payload::ALL.map(|payload| (payload.name(), payload));
        let payload = fields.one_of("payload", Rule::NotAnOption, &payloads).unwrap_or(Payload::Full);
        let headers = read_headers(fields, stored);
        let bearer_token =
            read_secret(fields, Webhook::BEARER_TOKEN, stored.bearer_token(), check_bearer_token, stored);
        let written = fields.value("url").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (secret, headers, bearer_token) = (secret?, headers?, bearer_token?);
        let is_authorized = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let keeps_token = bearer_token == SecretInput::Keep && stored.bearer_token().is_some();
        if is_authorized && (keeps_token || matches!(bearer_token, SecretInput::Set { .. })) {
            let message = "`bearer_token` and the header `Authorization` exclude each other";
            fields.refuse(Webhook::BEARER_TOKEN, Rule::InvalidRange, message);
        }
        let is_moved = stored.is_moved;
        url.map(|_| Self { url: written, is_moved, secret, payload, headers, bearer_token })
    }

    /// Returns the webhook that replaces `stored`, and its signing secret if that was generated.
    fn build(self, stored: Option<&Webhook>, sealer: Sealer<'_>) -> (Webhook, Option<Secret<String>>) {
        let old = stored.map(|stored| &stored.secret);
        let (secret, generated) = match sealer.apply(Webhook::SECRET, self.secret, old) {
            Some(secret) => (secret, None),
            None => {
                let secret = generate_secret(sealer.context.random);
                (sealer.seal(Webhook::SECRET, secret.reveal(), None), Some(secret))
            }
        };
        // A secret that was replaced on purpose ends at once, and those before it too. Another host never knew them.
        let is_kept = old.is_some_and(|old| old.sealed == secret.sealed) && !self.is_moved;
        let previous = stored.filter(|_| is_kept).map(|stored| stored.previous.clone()).unwrap_or_default();
        let header = |(name, input): (String, HeaderInput)| {
            let value = match input {
                HeaderInput::Text(text) => HeaderText::Text(text),
                HeaderInput::Secret(input) => {
                    let old = stored.and_then(|stored| stored.secret_header(&name));
                    HeaderText::Secret(sealer.apply(&Webhook::header_field(&name), input, old)?)
                }
            };
            Some((name, value))
        };
        let headers = self.headers.into_iter().filter_map(header).collect();
        let old_token = stored.and_then(|stored| stored.bearer_token.as_ref());
        let bearer_token = sealer.apply(Webhook::BEARER_TOKEN, self.bearer_token, old_token);
        let (url, payload) = (self.url, self.payload);
        (Webhook { url, secret, previous, payload, headers, bearer_token }, generated)
    }
}

impl<'a> Stored<'a> {
    fn secret(self) -> Option<&'a SecretField> {
        self.webhook.map(|webhook| &webhook.secret)
    }

    fn bearer_token(self) -> Option<&'a SecretField> {
        self.webhook.and_then(|webhook| webhook.bearer_token.as_ref())
    }

    /// Reports at `pointer` that a stored secret must be sent again, because the URL leads elsewhere.
    fn require_again(self, input: &SecretInput, pointer: &str, name: &str, violations: &mut Vec<Violation>) {
        if *input == SecretInput::Keep && self.is_moved && self.is_checked {
            let message = format!("`{name}` must be sent again: `url` leads to another host");
            let violation = Violation::new(pointer, Rule::SecretRequired, message);
            violations.push(violation.help(match name {
                Webhook::SECRET => "send its value, or null for a new one",
                _ => "send its value, or null to remove it",
            }));
        }
    }
}

fn read_url(fields: &mut Fields<'_, '_>, input: DraftInput<'_>) -> Option<Url> {
    let text = fields.required_text("url", MAX_URL)?;
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
    let Some(url) = url.filter(|_| !text.contains(char::is_whitespace)) else {
        fields.refuse("url", Rule::InvalidUrl, "`url` must be a URL such as https://example.com/hook");
        return None;
    };
    // A stored URL that is no longer allowed must not be in the way of other changes; it is refused when it is called.
    let is_stored = input.current.and_then(Integration::webhook).is_some_and(|webhook| webhook.url == text);
    let policy = input.policy.filter(|_| !is_stored);
    if let Some(Err(refusal)) = policy.map(|policy| policy.check_url(&url)) {
        let violation = Violation::new(fields.pointer_to("url"), Rule::AddressNotAllowed, refusal.message);
        fields.violations.push(Violation { help: refusal.help, ..violation });
    }
    Some(url)
}

/// Reads the secret `name`; one that is kept although the URL leads elsewhere is reported.
fn read_secret(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    field: Option<&SecretField>,
    check: fn(&str) -> Result<(), String>,
    stored: Stored<'_>,
) -> Option<SecretInput> {
    let (value, pointer) = (fields.raw(name), fields.pointer_to(name));
    let is_checked = stored.is_checked;
    let rules = SecretRules { pointer: &pointer, name, stored: field, is_checked, check };
    let input = SecretInput::read(value, rules, fields.violations)?;
    if field.is_some() {
        stored.require_again(&input, &pointer, name, fields.violations);
    }
    Some(input)
}

fn read_headers(fields: &mut Fields<'_, '_>, stored: Stored<'_>) -> Option<Vec<(String, HeaderInput)>> {
    let Some(value) = fields.value("headers") else { return Some(Vec::new()) };
    let Value::Object(members) = value else {
        let pointer = fields.pointer_to("headers");
        fields.violations.push(Violation::wrong_type(pointer, "headers", "an object", value));
        return None;
    };
    let members: Vec<_> = members.iter().filter(|(_, value)| *value != Value::Null).collect();
    if members.len() > MAX_HEADERS {
        let message = format!("`headers` has {} headers, {MAX_HEADERS} are allowed", members.len());
        fields.refuse("headers", Rule::TooMany, message);
        return None;
    }
    let root = fields.pointer_to("headers");
    let mut headers: Vec<(String, HeaderInput)> = Vec::new();
    let mut is_valid = true;
    for (name, value) in members {
        let pointer = join(&root, name);
        if let Err((rule, message)) = check_header_name(name) {
            fields.violations.push(Violation::new(&*pointer, rule, message));
            is_valid = false;
        }
        if headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            let message = format!("the header `{}` is given twice", shortened(name));
            fields.violations.push(Violation::new(&*pointer, Rule::DuplicateName, message));
        }
        match read_header(name, value, &pointer, stored, fields.violations) {
            Some(header) => headers.push((name.to_owned(), header)),
            None => is_valid = false,
        }
    }
    is_valid.then_some(headers)
}

/// Reads the value of a header: plain as text, secret as an object.
fn read_header(
    name: &str,
    value: &Value,
    pointer: &str,
    stored: Stored<'_>,
    violations: &mut Vec<Violation>,
) -> Option<HeaderInput> {
    if let Value::String(text) = value {
        let problem = match check_header_text(text) {
            Ok(()) if text.len() <= MAX_HEADER_VALUE => return Some(HeaderInput::Text(text.clone())),
            Ok(()) => (Rule::TooLong, format!("has {} bytes, {MAX_HEADER_VALUE} are allowed", text.len())),
            Err(message) => (Rule::InvalidCharacter, message),
        };
        let message = format!("the header `{}` {}", shortened(name), problem.1);
        violations.push(Violation::new(pointer, problem.0, message));
        return None;
    }
    let field = stored.webhook.and_then(|webhook| webhook.secret_header(name));
    let is_checked = stored.is_checked;
    let rules = SecretRules { pointer, name, stored: field, is_checked, check: check_header_text };
    let input = SecretInput::read(Some(value), rules, violations)?;
    if field.is_some() {
        stored.require_again(&input, pointer, name, violations);
    }
    Some(HeaderInput::Secret(input))
}

/// Checks that `name` is a token (RFC 9110 §5.6.2) that the server does not set itself.
fn check_header_name(name: &str) -> Result<(), (Rule, String)> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let shown = shortened(name);
    if name.is_empty() || name.len() > MAX_HEADER_NAME || !name.bytes().all(is_token) {
        return Err((Rule::InvalidRange, format!("`{shown}` is not a valid name of a header")));
    }
    if is_reserved_header(name) {
        return Err((Rule::ReadOnlyField, format!("the server sets the header `{shown}` itself")));
    }
    Ok(())
}

/// Checks that `secret` is a signing secret as Standard Webhooks 1.0 writes it.
fn check_signing_secret(secret: &str) -> Result<(), String> {
    const EXPECTED: &str = "must be `whsec_` and 24 to 64 random bytes in base64";
    let bytes = secret.strip_prefix(SECRET_PREFIX).and_then(|text| STANDARD.decode(text).ok());
    match bytes {
        Some(bytes) if (24..=64).contains(&bytes.len()) => Ok(()),
        Some(bytes) => Err(format!("{EXPECTED}, not {} bytes", bytes.len())),
        None => Err(EXPECTED.to_owned()),
    }
}
