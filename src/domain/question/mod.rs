//! Questions: what may be asked, with which settings, and which answers fit.
//!
//! A kind of question is a file that implements [`Rules`], a variant of [`Kind`], and an arm in each of its two
//! matches; the compiler names them.

mod email;
mod hidden;
mod rating;
mod silent;
mod text;

pub use email::Email;
pub use hidden::Hidden;
pub use rating::Rating;
pub use silent::Silent;
pub use text::ShortText;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::condition::{Asked, Condition, Sense};
use super::fields::Fields;
use super::json::Value;
use super::limits::Limits;
use super::violation::{Rule, Violation};

/// What the kinds of question have in common.
pub trait Rules {
    /// Reports all that is wrong with `answer`, which is not empty; nothing if it fits.
    fn check(&self, answer: &Value) -> Vec<Fault>;

    /// The settings that were set, in canonical order.
    fn settings(&self) -> Vec<(&'static str, Value)>;

    /// An answer that fits a question of this kind with no settings.
    fn example(&self) -> Value;

    /// What a person is to enter, in a few words: `a whole number from 1 to 5`.
    fn expects(&self) -> String;

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
    /// The broken rule.
    pub rule: Rule,
    /// What would be right, for the person who answers.
    pub message: String,
}

impl Fault {
    fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into() }
    }
}

/// The kind of a question, with its settings. In JSON it is the member `type`.
#[derive(Debug, Clone)]
pub enum Kind {
    ShortText(ShortText),
    Email(Email),
    Rating(Rating),
    Hidden(Hidden),
    Statement(Silent),
    Page(Silent),
}

impl Kind {
    /// The names of all kinds.
    pub const NAMES: [&str; 6] = ["short_text", "email", "rating", "hidden", "statement", "page"];

    /// Reads the settings of the kind called `name`; `None` if there is no such kind.
    pub fn read(name: &str, fields: &mut Fields<'_, '_>) -> Option<Self> {
        Some(match name {
            "short_text" => Self::ShortText(ShortText::read(fields)),
            "email" => Self::Email(Email::read(fields)),
            "rating" => Self::Rating(Rating::read(fields)),
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
            Self::Email(_) => "email",
            Self::Rating(_) => "rating",
            Self::Hidden(_) => "hidden",
            Self::Statement(_) => "statement",
            Self::Page(_) => "page",
        }
    }

    /// The kind's rules.
    pub fn rules(&self) -> &dyn Rules {
        match self {
            Self::ShortText(kind) => kind,
            Self::Email(kind) => kind,
            Self::Rating(kind) => kind,
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
    /// Reports all that is wrong with `answer`: nothing if it fits, or is empty and not `required`.
    pub fn check(&self, answer: Option<&Value>, required: bool, limits: &Limits) -> Vec<Fault> {
        let Some(answer) = answer.filter(|answer| !is_empty(answer)) else {
            let missing = Fault::new(Rule::Required, format!("\"{}\" needs an answer", self.title));
            return if required { vec![missing] } else { Vec::new() };
        };
        match answer {
            Value::String(text) if text.len() > limits.answer => {
                vec![Fault::new(Rule::TooLong, format!("An answer may have {} bytes at most", limits.answer))]
            }
            _ => self.kind.rules().check(answer),
        }
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
        let kind = read_kind(&mut fields);
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

fn read_kind(fields: &mut Fields<'_, '_>) -> Option<Kind> {
    let Value::String(name) = fields.needed("type")? else {
        fields.refuse("type", Rule::TypeMismatch, "`type` must be text");
        return None;
    };
    let kind = Kind::read(name, fields);
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
