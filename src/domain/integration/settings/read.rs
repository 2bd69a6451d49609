//! Parsing of declared members.

use url::Url;

use super::{SIGNING_SECRET, SecretReceiver, Setting, Settings, host_of, signing_secret};
use crate::domain::integration::definition::draft_input::DraftInput;
use crate::domain::integration::definition::secret_input::{Sealer, SecretInput, SecretRules};
use crate::domain::integration::definition::{lint_email_question, lint_template};
use crate::domain::integration::spec::{Check, IntegrationSpec, Member, MemberValue, Need};
use crate::domain::integration::template;
use crate::domain::json::join;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation};
use crate::secret::Secret;

/// Maximum characters of a URL.
pub const MAX_URL: usize = 2_000;

/// Maximum characters of the id of a question.
pub const MAX_QUESTION_ID: usize = 64;

/// Settings as sent, before their secrets are sealed.
#[derive(Debug, Default)]
pub(in crate::domain::integration) struct SettingsDraft {
    /// All but the secrets.
    pub plain: Settings,
    pub(super) secrets: Vec<(String, SecretInput)>,
    /// The member whose URL leads to another server than the stored one.
    moved: Option<&'static str>,
}

/// Parses the members that `spec` declares, and reports every violation.
pub(in crate::domain::integration) fn read_settings(
    spec: &'static IntegrationSpec,
    fields: &mut Fields<'_, '_>,
    input: DraftInput<'_>,
) -> SettingsDraft {
    let mut reader = Reader { fields, stored: input.stored(), input, draft: SettingsDraft::default() };
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
    reader.draft
}

pub(super) struct Reader<'r, 'a, 'v> {
    pub(super) fields: &'r mut Fields<'a, 'v>,
    stored: Option<&'r Settings>,
    input: DraftInput<'r>,
    pub(super) draft: SettingsDraft,
}

impl<'r> Reader<'r, '_, '_> {
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
            self.draft.plain.values.extend(default.map(|setting| (name.to_owned(), setting)));
            return;
        }
        let setting = match member.value {
            MemberValue::Text { max, check } => self.read_text(name, max, check).map(Setting::Text),
            MemberValue::Choice(names) => self.read_choice(name, names).map(Setting::Text),
            MemberValue::Number { min, max } => self.fields.integer(name, min..=max).map(Setting::Number),
            MemberValue::Flag => self.fields.flag(name).map(Setting::Flag),
            MemberValue::Texts { max_items, max, check } => {
                self.read_texts(name, max_items, max, check).map(Setting::Texts)
            }
            MemberValue::Template(max) => self.read_template(name, max).map(Setting::Text),
            MemberValue::EmailQuestion => self.read_email_question(name).map(Setting::Text),
            MemberValue::Url => self.read_url(name).map(Setting::Text),
            MemberValue::Secret(_)
            | MemberValue::SecretUrl
            | MemberValue::SigningSecret
            | MemberValue::Headers => None,
        };
        self.draft.plain.values.extend(setting.map(|setting| (name.to_owned(), setting)));
    }

    fn read_text(&mut self, name: &'static str, max: usize, check: Check) -> Option<String> {
        let text = self.fields.text(name, max)?;
        if let Err(problem) = check(&text) {
            self.fields.refuse(name, Rule::InvalidRange, format!("`{name}` {problem}"));
        }
        Some(text)
    }

    fn read_choice(&mut self, name: &'static str, names: &[&'static str]) -> Option<String> {
        let choices: Vec<_> = names.iter().map(|name| (*name, *name)).collect();
        self.fields.one_of(name, Rule::NotAnOption, &choices).map(str::to_owned)
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
            let pointer = join(&self.fields.pointer_to(name), &place.to_string());
            let (rule, message) = match check(text) {
                Err(problem) => (Rule::InvalidRange, format!("`{name}` {problem}")),
                Ok(()) if texts[..place].contains(text) => {
                    (Rule::DuplicateOption, format!("`{name}` has it twice"))
                }
                Ok(()) => continue,
            };
            self.fields.violations.push(Violation::new(pointer, rule, message));
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
            self.draft.moved = Some(name);
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
        let policy = self.input.policy.filter(|_| !is_stored);
        if let Some(Err(refusal)) = policy.map(|policy| policy.check_url(&url)) {
            let violation =
                Violation::new(self.fields.pointer_to(name), Rule::AddressNotAllowed, refusal.message);
            self.fields.violations.push(Violation { help: refusal.help, ..violation });
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
        let rules = self.secret_rules(name, name, &pointer, check);
        let SecretRules { stored, is_checked, .. } = rules;
        let Some(input) = SecretInput::read(value, rules, self.fields.violations) else { return };
        let is_missing = match input {
            SecretInput::Keep => is_checked && stored.is_none() && value.is_none(),
            SecretInput::Remove => true,
            SecretInput::Set { .. } => false,
        };
        if is_missing && member.need == Need::Required {
            let violation = Violation::new(&*pointer, Rule::MissingField, format!("`{name}` is missing"));
            self.fields.violations.push(violation);
        }
        if let (MemberValue::SecretUrl, SecretInput::Set { value, .. }) = (&member.value, &input) {
            let url = self.check_url(name, value.reveal(), false);
            self.draft.plain.receiver = url.map(|url| receiver_of(value, &url));
        }
        self.draft.secrets.push((name.to_owned(), input));
    }

    /// How to read the secret called `name`, which is stored as `field`.
    pub(super) fn secret_rules<'s>(
        &self,
        field: &str,
        name: &'s str,
        pointer: &'s str,
        check: Check,
    ) -> SecretRules<'s>
    where
        'r: 's,
    {
        let stored = self.stored.and_then(|stored| stored.secret(field));
        let is_checked = self.input.policy.is_some();
        SecretRules { pointer, name, stored, moved: self.draft.moved, is_checked, check }
    }
}

fn receiver_of(secret: &Secret<String>, url: &Url) -> SecretReceiver {
    SecretReceiver { host: host_of(url), digest: secret.digest() }
}

impl SettingsDraft {
    pub(in crate::domain::integration) fn secret(&self, name: &str) -> Option<&SecretInput> {
        self.secrets.iter().find(|(known, _)| known == name).map(|(_, input)| input)
    }

    /// Seals the secrets; those left out are taken from `stored`. Returns the signing secret, too, if that was made.
    pub(in crate::domain::integration) fn build(
        self,
        spec: &IntegrationSpec,
        stored: Option<&Settings>,
        sealer: Sealer<'_>,
    ) -> (Settings, Option<Secret<String>>) {
        let mut generated = None;
        let is_signing = |name: &str| {
            spec.member(name).is_some_and(|member| matches!(member.value, MemberValue::SigningSecret))
        };
        let seal = |(name, input): (String, SecretInput)| {
            let old = stored.and_then(|stored| stored.secret(&name));
            let sealed = sealer.apply(&name, input, old).or_else(|| {
                let made = is_signing(&name).then(|| signing_secret::generate(sealer.context.random))?;
                let sealed = sealer.seal(&name, made.reveal(), None);
                generated = Some(made);
                Some(sealed)
            });
            Some((name, sealed?))
        };
        let secrets = self.secrets.into_iter().filter_map(seal).collect();
        let receiver = self.plain.receiver.or_else(|| stored.and_then(|stored| stored.receiver.clone()));
        let new = Settings { secrets, receiver, ..self.plain };
        // A signing secret that was replaced on purpose ends at once, and those before it too. Another host never knew them.
        let sealed =
            |settings: &Settings| settings.secret(SIGNING_SECRET).map(|secret| secret.sealed.clone());
        let same = stored.filter(|stored| self.moved.is_none() && sealed(stored) == sealed(&new));
        (
            Settings { previous: same.map(|stored| stored.previous.clone()).unwrap_or_default(), ..new },
            generated,
        )
    }
}
