//! Settings of a form: when it accepts answers, and what respondents see.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::form::theme::Theme;
use crate::domain::json::{self, Value};
use crate::domain::language::Language;
use crate::domain::open_enum::named_enum;
use crate::domain::question::Question;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation, collect_violations, shortened};
use crate::domain::web_origin::WebOrigin;

const MAX_MESSAGE: usize = 2_000;

const MAX_URL: usize = 2_000;

const MAX_LANGUAGE: usize = 35;

/// The settings of a form. `Some` means set explicitly, even if to the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closes_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// Shown when the form is closed, expired or full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_responses: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_answers: Option<UnknownAnswers>,
    /// Age in days at which submissions are erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// Language of the form, a BCP 47 tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Whether people may answer on the form's page, without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// The sites that may embed the page, and whose own forms may be posted to it. If not set, any site may embed it and none
    /// may post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origins: Option<Vec<WebOrigin>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<Theme>,
    /// Whether the page keeps unsent answers on the visitor's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
}

/// Maximum origins of a form: they are sent with every page.
const MAX_ORIGINS: usize = 20;

named_enum! {
    /// How the page divides the questions.
    #[derive(Default)]
    Layout {
        /// All on one page, in sections.
        #[default]
        Page = "page",
        /// One section after the other.
        Steps = "steps",
    }
}

named_enum! {
    /// How to treat an answer under a key that is not the id of a question.
    #[derive(Default)]
    UnknownAnswers {
        #[default]
        Reject = "reject",
        Drop = "drop",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    Message(String),
    RedirectUrl(String),
}

impl Settings {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn is_closed(&self) -> bool {
        self.closed.unwrap_or(false)
    }

    /// How to treat an answer under a key that is not the id of a question.
    pub fn unknown_answers(&self) -> UnknownAnswers {
        self.unknown_answers.unwrap_or_default()
    }

    pub fn is_public(&self) -> bool {
        self.public.unwrap_or(false)
    }

    pub fn layout(&self) -> Layout {
        self.layout.unwrap_or_default()
    }

    pub fn keeps_draft(&self) -> bool {
        self.draft.unwrap_or(true)
    }

    /// Whether `origin`, as browsers send it, is one of the form's origins.
    pub fn allows_origin(&self, origin: &str) -> bool {
        self.origins.iter().flatten().any(|allowed| allowed.as_str() == origin)
    }

    /// The language of the texts that respondents read.
    pub fn language(&self) -> Language {
        Language::of_tag(self.language.as_deref())
    }

    pub fn patched(&self, patch: &Value) -> Result<Self, Vec<Violation>> {
        let text = serde_json::to_string(self).expect("settings can be written as JSON");
        let merged = json::merge(&text, &patch.to_string()).unwrap_or(text);
        match json::parse(&merged).expect("what was written as JSON can be read") {
            Value::Null => Ok(Self::default()),
            merged => collect_violations(|violations| Self::read(&merged, violations)),
        }
    }

    /// Parses the member `settings` of a definition, and reports all violations.
    pub fn read(value: &Value, violations: &mut Vec<Violation>) -> Option<Self> {
        let mut fields = Fields::open(value, "/settings", "`settings`", violations)?;
        let confirmation = fields.value("confirmation");
        let theme = fields.value("theme");
        let mut settings = Self {
            opens_at: fields.timestamp("opens_at"),
            closes_at: fields.timestamp("closes_at"),
            closed: fields.flag("closed"),
            closed_message: fields.text("closed_message", MAX_MESSAGE),
            max_responses: fields.integer("max_responses", 1..=1_000_000_000).map(i64::unsigned_abs),
            confirmation: None,
            unknown_answers: fields.one_of(
                "unknown_answers",
                Rule::InvalidRange,
                &UnknownAnswers::ALL.map(|value| (value.name(), value)),
            ),
            retention_days: fields.count("retention_days", 1..=3_650).and_then(|days| days.try_into().ok()),
            language: read_language(&mut fields),
            public: fields.flag("public"),
            layout: fields.one_of(
                "layout",
                Rule::InvalidRange,
                &Layout::ALL.map(|layout| (layout.name(), layout)),
            ),
            origins: read_origins(&mut fields),
            theme: None,
            draft: fields.flag("draft"),
        };
        if let (Some(opens), Some(closes)) = (settings.opens_at, settings.closes_at)
            && closes < opens
        {
            let message = format!("`closes_at` is before `opens_at`, {opens}");
            let opens = fields.pointer_to("opens_at");
            fields.refuse("closes_at", Rule::InvalidRange, message).related = Some(opens);
        }
        fields.close(&[]);
        settings.confirmation = confirmation.and_then(|value| Confirmation::read(value, violations));
        settings.theme = theme.and_then(|value| Theme::read(value, violations));
        Some(settings)
    }
}

/// Maximum bytes of a page, without the texts of its questions.
const MAX_PAGE: usize = 512 << 10;

/// Returns what is wrong with questions whose page would be too large.
pub fn check_page_size(questions: &[Question]) -> Option<Violation> {
    let size: usize = questions.iter().map(|question| question.kind.rules().control().size()).sum();
    if size <= MAX_PAGE {
        return None;
    }
    let [size, max] = [size, MAX_PAGE].map(|bytes| bytes >> 10);
    let message = format!("the page of this form would have about {size} KiB, {max} are allowed");
    let help = "use fewer options: a ranking draws them squared, a matrix its rows times its columns";
    Some(Violation::new("/questions", Rule::TooMany, message).help(help))
}

/// Parses `language`: subtags of letters and digits (RFC 5646 §2.1).
fn read_language(fields: &mut Fields<'_, '_>) -> Option<String> {
    let tag = fields.text("language", MAX_LANGUAGE)?;
    let is_subtag =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !tag.split('-').all(is_subtag) {
        let message = format!("`{tag}` is not a language tag such as de or pt-BR");
        fields.refuse("language", Rule::InvalidRange, message);
    }
    Some(tag)
}

/// Parses `origins`; an empty list is none.
fn read_origins(fields: &mut Fields<'_, '_>) -> Option<Vec<WebOrigin>> {
    let texts = fields.texts("origins", MAX_URL)?;
    if texts.len() > MAX_ORIGINS {
        let message = format!("{} origins are too many, {MAX_ORIGINS} are allowed", texts.len());
        fields.refuse("origins", Rule::TooMany, message);
    }
    let mut origins = Vec::new();
    for (place, text) in texts.iter().enumerate() {
        match text.parse() {
            Ok(origin) => origins.push(origin),
            Err(why) => {
                let message = format!("`{}` is not an origin: {why}", shortened(text));
                fields.refuse_item("origins", place, Rule::InvalidUrl, message);
            }
        }
    }
    Some(origins)
}

impl Confirmation {
    /// Parses `confirmation`; `None` if it is empty or not valid.
    fn read(value: &Value, violations: &mut Vec<Violation>) -> Option<Self> {
        let mut fields = Fields::open(value, "/settings/confirmation", "`confirmation`", violations)?;
        let message = fields.text("message", MAX_MESSAGE);
        let url = fields.text("redirect_url", MAX_URL);
        if url.as_ref().is_some_and(|url| !is_web_address(url)) {
            let message = "`redirect_url` must be the address of a page, such as https://example.com/thanks";
            fields.refuse("redirect_url", Rule::InvalidUrl, message);
        }
        if message.is_some() && url.is_some() {
            fields.refuse(
                "redirect_url",
                Rule::InvalidRange,
                "`message` and `redirect_url` exclude each other",
            );
        }
        fields.close(&[]);
        message.map(Self::Message).or(url.map(Self::RedirectUrl))
    }
}

/// Whether `text` is a URL that is safe to redirect to: absolute, and `http` or `https` rather than `javascript:`.
fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_clean = !text.contains(|character: char| character.is_whitespace() || character.is_control());
    is_clean && rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':', '@']))
}
