//! Questions: what may be asked, with which settings, and which answers fit.
//!
//! A kind of question is a file that implements [`Rules`], a variant of [`Kind`], and an arm in each of its
//! matches; the compiler names them.

mod boolean;
mod calendar;
mod choice;
mod email;
mod entered;
mod hidden;
pub(super) mod json;
mod labels;
mod matrix;
mod number;
mod options;
mod phone;
mod scale;
mod silent;
mod text;
mod url;

pub use boolean::{Boolean, Consent};
pub use calendar::Calendar;
pub use choice::{MultipleChoice, Ranking, SingleChoice};
pub use email::Email;
pub use hidden::Hidden;
pub use matrix::Matrix;
pub use number::Quantity;
pub use phone::Phone;
pub use scale::Scale;
pub use silent::Silent;
pub use text::Text;
pub use url::Url;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::condition::{Asked, Condition, Sense};
use super::fields::Fields;
use super::json::Value;
use super::limits::Limits;
use super::violation::{Rule, Violation, join};
use crate::clock::Timestamp;
use calendar::Unit;
use json::{any_of, object};
use text::Lines;

/// What the kinds of question have in common.
pub trait Rules {
    /// Reports all that is wrong with `answer`, which is not empty; nothing if it fits. `now` is for bounds such as
    /// `today`; without it they are left out, and what remains is wrong on every day.
    fn check(&self, answer: &Value, now: Option<Timestamp>) -> Vec<Fault>;

    /// Whether `answer` counts as none.
    fn is_empty(&self, answer: &Value) -> bool {
        is_empty(answer)
    }

    /// The JSON Schema (2020-12) of the answers that fit, as exact as it can say; of empty ones it says nothing.
    fn schema(&self) -> Value;

    /// The settings that were set, in canonical order.
    fn settings(&self) -> Vec<(&'static str, Value)>;

    /// An answer that fits a question of this kind with only the settings it must have.
    fn example(&self) -> Value;

    /// What a person is to enter, in a few words: `a whole number from 1 to 5`.
    fn expects(&self) -> String;

    /// The answer that `text` stands for where a person types it; the text itself if it stands for none, so that it is
    /// told what is wrong with it.
    fn entered(&self, text: &str) -> Value {
        text.into()
    }

    /// What the texts of its answers stand for, where conditions compare them.
    fn sense(&self) -> Sense {
        Sense::Text
    }

    /// The least and the greatest number that can be an answer, where numbers are asked for.
    fn range(&self) -> Option<(f64, f64)> {
        None
    }

    /// Whether there can be an answer.
    fn takes_answer(&self) -> bool {
        true
    }

    /// The answer that is kept where none was sent.
    fn default_answer(&self) -> Option<&Value> {
        None
    }
}

/// Why one answer does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer (RFC 6901) from the answer to the part that is wrong; empty if it is the whole.
    pub at: String,
    /// The broken rule.
    pub rule: Rule,
    /// What would be right, for the person who answers.
    pub message: String,
}

impl Fault {
    fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { at: String::new(), rule, message: message.into() }
    }

    /// The same, about the member or item `key` of what it was about.
    fn within(self, key: &str) -> Self {
        Self { at: join("", key) + &self.at, ..self }
    }
}

/// The kind of a question, with its settings. In JSON it is the member `type`.
#[derive(Debug, Clone)]
pub enum Kind {
    ShortText(Text),
    LongText(Text),
    Email(Email),
    Url(Url),
    Phone(Phone),
    Number(Quantity),
    Rating(Scale),
    OpinionScale(Scale),
    Boolean(Boolean),
    Consent(Consent),
    SingleChoice(SingleChoice),
    MultipleChoice(MultipleChoice),
    Ranking(Ranking),
    Matrix(Matrix),
    Date(Calendar),
    Time(Calendar),
    Datetime(Calendar),
    Hidden(Hidden),
    Statement(Silent),
    Page(Silent),
}

impl Kind {
    /// The names of all kinds.
    pub const NAMES: [&str; 20] = [
        "short_text",
        "long_text",
        "email",
        "url",
        "phone",
        "number",
        "rating",
        "opinion_scale",
        "boolean",
        "consent",
        "single_choice",
        "multiple_choice",
        "ranking",
        "matrix",
        "date",
        "time",
        "datetime",
        "hidden",
        "statement",
        "page",
    ];

    /// Reads the settings of the kind called `name`; `None` if there is no such kind.
    pub fn read(name: &str, fields: &mut Fields<'_, '_>, limits: &Limits) -> Option<Self> {
        Some(match name {
            "short_text" => Self::ShortText(Text::read(fields, Lines::One)),
            "long_text" => Self::LongText(Text::read(fields, Lines::Many)),
            "email" => Self::Email(Email::read(fields)),
            "url" => Self::Url(Url::read(fields)),
            "phone" => Self::Phone(Phone::read(fields)),
            "number" => Self::Number(Quantity::read(fields)),
            "rating" => Self::Rating(Scale::read_rating(fields)),
            "opinion_scale" => Self::OpinionScale(Scale::read_opinion(fields)),
            "boolean" => Self::Boolean(Boolean::read(fields)),
            "consent" => Self::Consent(Consent::read(fields)),
            "single_choice" => Self::SingleChoice(SingleChoice::read(fields, limits)),
            "multiple_choice" => Self::MultipleChoice(MultipleChoice::read(fields, limits)),
            "ranking" => Self::Ranking(Ranking::read(fields, limits)),
            "matrix" => Self::Matrix(Matrix::read(fields, limits)),
            "date" => Self::Date(Calendar::read(fields, Unit::Date)),
            "time" => Self::Time(Calendar::read(fields, Unit::Time)),
            "datetime" => Self::Datetime(Calendar::read(fields, Unit::Moment)),
            "hidden" => Self::Hidden(Hidden::read(fields)),
            "statement" => Self::Statement(Silent),
            "page" => Self::Page(Silent),
            _ => return None,
        })
    }

    /// The kind's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ShortText(_) => "short_text",
            Self::LongText(_) => "long_text",
            Self::Email(_) => "email",
            Self::Url(_) => "url",
            Self::Phone(_) => "phone",
            Self::Number(_) => "number",
            Self::Rating(_) => "rating",
            Self::OpinionScale(_) => "opinion_scale",
            Self::Boolean(_) => "boolean",
            Self::Consent(_) => "consent",
            Self::SingleChoice(_) => "single_choice",
            Self::MultipleChoice(_) => "multiple_choice",
            Self::Ranking(_) => "ranking",
            Self::Matrix(_) => "matrix",
            Self::Date(_) => "date",
            Self::Time(_) => "time",
            Self::Datetime(_) => "datetime",
            Self::Hidden(_) => "hidden",
            Self::Statement(_) => "statement",
            Self::Page(_) => "page",
        }
    }

    /// The schema of what counts as no answer to a question of this kind, where `$defs` have what always does.
    pub fn empty_schema(&self) -> Value {
        let always = object([("$ref", Some("#/$defs/empty".into()))]);
        match self.rules().is_empty(&false.into()) {
            true => any_of([always, object([("const", Some(false.into()))])]),
            false => always,
        }
    }

    /// The kind's rules.
    pub fn rules(&self) -> &dyn Rules {
        match self {
            Self::ShortText(kind) | Self::LongText(kind) => kind,
            Self::Email(kind) => kind,
            Self::Url(kind) => kind,
            Self::Phone(kind) => kind,
            Self::Number(kind) => kind,
            Self::Rating(kind) | Self::OpinionScale(kind) => kind,
            Self::Boolean(kind) => kind,
            Self::Consent(kind) => kind,
            Self::SingleChoice(kind) => kind,
            Self::MultipleChoice(kind) => kind,
            Self::Ranking(kind) => kind,
            Self::Matrix(kind) => kind,
            Self::Date(kind) | Self::Time(kind) | Self::Datetime(kind) => kind,
            Self::Hidden(kind) => kind,
            Self::Statement(kind) | Self::Page(kind) => kind,
        }
    }
}

/// One question of a form.
#[derive(Debug, Clone)]
pub struct Question {
    /// The key of its answers, unique in the form and never given to another question. `None` for a statement or a
    /// page whose author gave none.
    pub id: Option<String>,
    /// What is asked for.
    pub kind: Kind,
    /// The text of the question.
    pub title: String,
    /// More about it, in Markdown.
    pub description: Option<String>,
    /// Whether a submission must have an answer, where the question is asked.
    pub required: bool,
    /// Where it is asked, or, of a page, all up to the next page; everywhere if `None`.
    pub show_if: Option<Condition>,
    /// Where it must have an answer even if it is not `required`.
    pub required_if: Option<Condition>,
}

impl Question {
    /// Reports all that is wrong with `answer` at the time `now`: nothing if it fits, or is empty and not `required`.
    pub fn check(
        &self,
        answer: Option<&Value>,
        required: bool,
        limits: &Limits,
        now: Timestamp,
    ) -> Vec<Fault> {
        let rules = self.kind.rules();
        let Some(answer) = answer.filter(|answer| !rules.is_empty(answer)) else {
            let missing = Fault::new(Rule::Required, format!("\"{}\" needs an answer", self.title));
            return if required { vec![missing] } else { Vec::new() };
        };
        if size(answer) > limits.answer {
            return vec![Fault::new(
                Rule::TooLong,
                format!("An answer may have {} bytes at most", limits.answer),
            )];
        }
        rules.check(answer, Some(now))
    }

    /// Its conditions, with what the judgement on them needs.
    pub fn asked(&self) -> Asked<'_> {
        Asked { id: self.id.as_deref(), kind: Some(&self.kind), conditions: self.conditions().collect() }
    }

    /// Its conditions by the members they stand in.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Condition)> {
        let conditions = [("show_if", &self.show_if), ("required_if", &self.required_if)];
        conditions.into_iter().filter_map(|(name, condition)| Some((name, condition.as_ref()?)))
    }
}

/// How large an answer is: the bytes of its texts, names and numbers, and one for each item.
fn size(answer: &Value) -> usize {
    match answer {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(number) => number.text().len(),
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 1 + size(item)).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| 1 + name.len() + size(value)).sum(),
    }
}

/// Whether `answer` counts as none: white space, `null`, `[]`, `{}`.
pub fn is_empty(answer: &Value) -> bool {
    match answer {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// In canonical form: `id`, `type`, `title`, `required` (as far as it has them), then only what was set.
impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("title", &self.title)?;
        if self.kind.rules().takes_answer() {
            map.serialize_entry("required", &self.required)?;
        }
        if let Some(description) = &self.description {
            map.serialize_entry("description", description)?;
        }
        for (name, condition) in self.conditions() {
            map.serialize_entry(name, condition)?;
        }
        for (name, value) in self.kind.rules().settings() {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// A question as its author sent it: the id may be missing.
#[derive(Debug, Clone)]
pub struct QuestionDraft {
    /// The id the author chose.
    pub id: Option<String>,
    kind: Kind,
    /// `None` stands for the id.
    title: Option<String>,
    description: Option<String>,
    required: bool,
    show_if: Option<Condition>,
    required_if: Option<Condition>,
}

impl QuestionDraft {
    /// Reads the question at `pointer`, the `place`-th of its form counted from 0, and reports every problem. `None` if
    /// its type is not known.
    pub fn read(
        value: &Value,
        pointer: &str,
        place: usize,
        limits: &Limits,
        violations: &mut Vec<Violation>,
    ) -> Option<Self> {
        let mut fields = Fields::open(value, pointer, format!("question {}", place + 1), violations)?;
        let id = read_id(&mut fields);
        let kind = read_kind(&mut fields, limits);
        let title = match kind {
            Some(Kind::Hidden(_)) => fields.text("title", limits.title),
            _ => fields.needed_text("title", limits.title),
        };
        let description = fields.text("description", MAX_DESCRIPTION);
        let show_if = Condition::read(&mut fields, "show_if");
        let (mut required, mut required_if) = (None, None);
        if kind.as_ref().is_none_or(|kind| kind.rules().takes_answer()) {
            required = fields.flag("required");
            required_if = Condition::read(&mut fields, "required_if");
        }
        // With an unknown type nobody can say which settings belong to it.
        let kind = kind?;
        fields.close(&[]);
        let required = required.unwrap_or(false);
        Some(Self { id, kind, title, description, required, show_if, required_if })
    }

    /// Whether it needs an id: answers are kept under it.
    pub fn takes_answer(&self) -> bool {
        self.kind.rules().takes_answer()
    }

    /// The question under its final id.
    pub fn named(self, id: Option<String>) -> Question {
        let Self { kind, title, description, required, show_if, required_if, .. } = self;
        let title = title.or_else(|| id.clone()).unwrap_or_default();
        Question { id, kind, title, description, required, show_if, required_if }
    }

    /// The question under the id it has; `None` if it needs one and has none.
    pub fn kept(self) -> Option<Question> {
        let id = self.id.clone();
        (id.is_some() || !self.takes_answer()).then(|| self.named(id))
    }
}

/// Characters a description may have.
pub const MAX_DESCRIPTION: usize = 10_000;

fn read_kind(fields: &mut Fields<'_, '_>, limits: &Limits) -> Option<Kind> {
    let Value::String(name) = fields.needed("type")? else {
        fields.refuse("type", Rule::TypeMismatch, "`type` must be text");
        return None;
    };
    let kind = Kind::read(name, fields, limits);
    if kind.is_none() {
        let known = Kind::NAMES.join(", ");
        let message = format!("unknown question type `{name}`; known are {known}");
        let violation = Violation::new(fields.at("type"), Rule::UnknownQuestionType, message);
        fields.report(violation.instead(Kind::NAMES));
    }
    kind
}

fn read_id(fields: &mut Fields<'_, '_>) -> Option<String> {
    let value = fields.value("id")?;
    match value {
        Value::String(id) if is_id(id) => Some(id.clone()),
        Value::String(id) => {
            let message = if RESERVED.contains(&id.as_str()) {
                format!("`{id}` is a word of conditions and cannot be a question id")
            } else {
                format!(
                    "`{}` is no question id: use a letter, then letters, digits and _, lower case, 64 at most",
                    id.chars().take(80).collect::<String>()
                )
            };
            fields.refuse("id", Rule::InvalidQuestionId, message);
            None
        }
        other => {
            fields.refuse("id", Rule::TypeMismatch, format!("`id` must be text, not {}", other.kind()));
            None
        }
    }
}

/// Words that mean something else where ids stand: the combinators of conditions.
const RESERVED: [&str; 3] = ["any", "all", "not"];

fn is_id(text: &str) -> bool {
    let begins_well = text.starts_with(|first: char| first.is_ascii_lowercase());
    let tail_is_fine = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    begins_well && tail_is_fine && text.len() <= 64 && !RESERVED.contains(&text)
}
