//! Parsing of declared members.

use url::Url;

use super::secrets::{SecretContext, SecretInput};
use super::{SIGNING_SECRET, SecretReceiver, Setting, Settings, host_of, signing_secret};
use crate::domain::integration::definition::{DefinitionInput, lint_email_question, lint_template};
use crate::domain::integration::sealer::Sealer;
use crate::domain::integration::spec::{Check, IntegrationSpec, Member, MemberValue, Need};
use crate::domain::integration::template;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;
use crate::secret::Secret;

/// Maximum characters of a URL.
pub const MAX_URL: usize = 2_000;

/// Maximum characters of the id of a question.
pub const MAX_QUESTION_ID: usize = 64;

/// Parses the members that `spec` declares, and reports every violation. The secrets are sealed; those left out are taken from
/// the stored settings. Returns the signing secret, too, if it was made.
pub(in crate::domain::integration) fn read_settings(
    spec: &'static IntegrationSpec,
    fields: &mut Fields<'_, '_>,
    input: DefinitionInput<'_>,
    sealer: Sealer<'_>,
) -> (Settings, Option<Secret<String>>) {
    let stored = input.current.map(|current| &current.kind.settings);
    let (settings, moved, generated) = (Settings::default(), None, None);
    let mut reader = Reader { fields, stored, input, sealer, settings, moved, generated };
    // A URL decides whether the secrets that are sent there are asked for again.
    let (secrets, values): (Vec<_>, Vec<_>) = spec
        .members
        .iter()
        .partition(|member| member.is_secret() || matches!(member.value, MemberValue::Headers));
    values.into_iter().for_each(|member| reader.read_value(member));
    for member in secrets {
        match member.value {
            MemberValue::Headers => reader.read_headers(member.name),
            _ => reader.read_secret(member),
        }
    }
    let Reader { mut settings, moved, generated, .. } = reader;
    if let Some(stored) = stored {
        settings.receiver = settings.receiver.or_else(|| stored.receiver.clone());
        // A signing secret that was replaced on purpose ends at once, and those before it too. Another host never knew them.
        let sealed = |secret| Some(&Settings::secret(secret, SIGNING_SECRET)?.sealed);
        if moved.is_none() && sealed(stored) == sealed(&settings) {
            settings.previous = stored.previous.clone();
        }
    }
    (settings, generated)
}

pub(super) struct Reader<'r, 'a, 'v> {
    pub(super) fields: &'r mut Fields<'a, 'v>,
    pub(super) stored: Option<&'r Settings>,
    pub(super) input: DefinitionInput<'r>,
    pub(super) sealer: Sealer<'r>,
    /// The members read so far.
    pub(super) settings: Settings,
    /// The member whose URL leads to another server than the stored one.
    pub(super) moved: Option<&'static str>,
    /// The signing secret that was made.
    generated: Option<Secret<String>>,
}

impl Reader<'_, '_, '_> {
    fn read_value(&mut self, member: &'static Member) {
        let name = member.name;
        if member.need == Need::Required && self.fields.required(name).is_none() {
            return;
        }
        if let Need::Default(text) = member.need
            && self.fields.value(name).is_none()
        {
            let default = serde_json::from_str(text).ok();
            if let (MemberValue::Url, Some(Setting::Text(url))) = (&member.value, &default) {
                self.note_move(name, url);
            }
            self.settings.values.extend(default.map(|setting| (name.to_owned(), setting)));
            return;
        }
        let setting = match member.value {
            MemberValue::Text { max, check } => self.read_text(name, max, check).map(Setting::Text),
            MemberValue::Choice(names) => {
                let choices: Vec<_> = names.iter().map(|name| (*name, *name)).collect();
                let chosen = self.fields.one_of(name, Rule::NotAnOption, &choices);
                chosen.map(|text| Setting::Text(text.to_owned()))
            }
            MemberValue::Number { min, max } => self.fields.integer(name, min..=max).map(Setting::Number),
            MemberValue::Flag => self.fields.flag(name).map(Setting::Flag),
            MemberValue::Texts { max_items, max, check } => {
                self.read_texts(name, max_items, max, check).map(Setting::Texts)
            }
            MemberValue::Template(max) => self.read_template(name, max).map(Setting::Text),
            MemberValue::EmailQuestion => self.read_email_question(name).map(Setting::Text),
            MemberValue::Url => self.read_url(name).map(Setting::Text),
            MemberValue::Secret(_)
            | MemberValue::SecretUrl(_)
            | MemberValue::SigningSecret
            | MemberValue::Headers => None,
        };
        self.settings.values.extend(setting.map(|setting| (name.to_owned(), setting)));
    }

    fn read_text(&mut self, name: &'static str, max: usize, check: Check) -> Option<String> {
        let text = self.fields.text(name, max)?;
        if let Err(problem) = check(&text) {
            self.fields.refuse(name, Rule::InvalidRange, format!("`{name}` {problem}"));
        }
        Some(text)
    }

    fn read_texts(
        &mut self,
        name: &'static str,
        max_items: usize,
        max: usize,
        check: Check,
    ) -> Option<Vec<String>> {
        let texts = self.fields.texts(name, max)?;
        if texts.len() > max_items {
            let message = format!("`{name}` has {} items, {max_items} are allowed", texts.len());
            self.fields.refuse(name, Rule::TooMany, message);
        }
        for (place, text) in texts.iter().enumerate() {
            let (rule, message) = match check(text) {
                Err(problem) => (Rule::InvalidRange, format!("`{name}` {problem}")),
                Ok(()) if texts[..place].contains(text) => {
                    (Rule::DuplicateOption, format!("`{name}` has it twice"))
                }
                Ok(()) => continue,
            };
            self.fields.refuse_item(name, place, rule, message);
        }
        Some(texts)
    }

    /// Reads a template, which may have several lines.
    fn read_template(&mut self, name: &'static str, max: usize) -> Option<String> {
        let text = self.fields.string(name)?;
        if text.chars().count() > max {
            self.fields.refuse(name, Rule::TooLong, format!("`{name}` has at most {max} characters"));
        } else if text.trim().is_empty() {
            self.fields.refuse(name, Rule::Empty, format!("`{name}` must not be empty"));
        } else if let Err(problem) = template::check(text) {
            let message = format!("`{name}` is not a valid template: {problem}");
            self.fields.refuse(name, Rule::InvalidTemplate, message);
        } else if let Some(questions) = self.input.questions {
            lint_template(text, questions, &self.fields.pointer_to(name), self.fields.violations);
        }
        Some(text.to_owned())
    }

    fn read_email_question(&mut self, name: &'static str) -> Option<String> {
        let id = self.fields.text(name, MAX_QUESTION_ID)?;
        if let Some(questions) = self.input.questions {
            lint_email_question(&id, questions, &self.fields.pointer_to(name), self.fields.violations);
        }
        Some(id)
    }

    fn read_url(&mut self, name: &'static str) -> Option<String> {
        let text = self.fields.text(name, MAX_URL)?;
        let stored = self.stored.and_then(|stored| stored.text(name));
        self.check_url(name, &text, stored == Some(&*text))?;
        self.note_move(name, &text);
        Some(text)
    }

    /// Notes that `url` leads to another server than the stored one.
    fn note_move(&mut self, name: &'static str, url: &str) {
        let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
        let stored = self.stored.and_then(|stored| origin(stored.text(name)?));
        if stored.is_some() && stored != origin(url) {
            self.moved = Some(name);
        }
    }

    /// Reports a text that is no URL, or one that may not be called. A stored URL that is no longer allowed must not be in the
    /// way of other changes; it is refused when it is called.
    fn check_url(&mut self, name: &str, text: &str, is_stored: bool) -> Option<Url> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
        let Some(url) = url.filter(|_| !text.contains(char::is_whitespace)) else {
            let message = format!("`{name}` must be a URL such as https://example.com/hook");
            self.fields.refuse(name, Rule::InvalidUrl, message);
            return None;
        };
        if !is_stored
            && !self.input.is_lint
            && let Err(refusal) = self.input.context.policy.check_url(&url)
        {
            self.fields.refuse(name, Rule::AddressNotAllowed, refusal.message).help = refusal.help;
        }
        Some(url)
    }

    fn read_secret(&mut self, member: &'static Member) {
        let name = member.name;
        let (value, pointer) = (self.fields.raw(name), self.fields.pointer_to(name));
        let check = match member.value {
            MemberValue::Secret(check) => check,
            MemberValue::SigningSecret => signing_secret::check,
            _ => |_: &str| Ok(()),
        };
        let place = SecretContext { field: name, name, pointer: &pointer, check };
        let Some(input) = self.read_secret_input(value, place) else { return };
        let is_missing = match input {
            SecretInput::Keep => !self.input.is_lint && !self.is_stored(name) && value.is_none(),
            SecretInput::Remove => true,
            SecretInput::Set { .. } => false,
        };
        if is_missing && member.need == Need::Required {
            self.fields.refuse(name, Rule::MissingField, format!("`{name}` is missing"));
        }
        if let (MemberValue::SecretUrl(check), SecretInput::Set { value, .. }) = (member.value, &input)
            && let Some(url) = self.check_url(name, value.reveal(), false)
        {
            let host = host_of(&url);
            if let Err(problem) = check(&host) {
                self.fields.refuse(name, Rule::InvalidUrl, format!("`{name}` {problem}"));
            }
            self.settings.receiver = Some(SecretReceiver { host, digest: value.digest() });
        }
        let is_set = self.store_secret(name, input);
        if !is_set && matches!(member.value, MemberValue::SigningSecret) {
            let value = signing_secret::generate(self.input.context.random);
            self.store_secret(name, SecretInput::Set { value: value.clone(), env: None });
            self.generated = Some(value);
        }
    }
}
