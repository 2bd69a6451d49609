//! The kinds of question: their names, and the rules of each.

use super::Rules;
use super::boolean::{Boolean, Consent};
use super::calendar::{Calendar, Unit};
use super::choice::{MultipleChoice, Ranking, SingleChoice};
use super::email::Email;
use super::hidden::Hidden;
use super::matrix::Matrix;
use super::number::Quantity;
use super::phone::Phone;
use super::scale::Scale;
use super::silent::Silent;
use super::text::{Lines, Text};
use super::url::Url;
use crate::domain::budget::Budget;
use crate::domain::fields::Fields;
use crate::domain::json::Value;
use crate::domain::limits::Limits;
use crate::domain::violation::Rule;

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

    /// Reads the settings of the kind called `name`, within `budget`; `None` if there is no such kind.
    pub fn read(name: &str, fields: &mut Fields<'_, '_>, budget: &mut Budget) -> Option<Self> {
        Some(match name {
            "short_text" => Self::ShortText(Text::read(fields, Lines::One, budget)),
            "long_text" => Self::LongText(Text::read(fields, Lines::Many, budget)),
            "email" => Self::Email(Email::read(fields)),
            "url" => Self::Url(Url::read(fields)),
            "phone" => Self::Phone(Phone::read(fields)),
            "number" => Self::Number(Quantity::read(fields)),
            "rating" => Self::Rating(Scale::read_rating(fields)),
            "opinion_scale" => Self::OpinionScale(Scale::read_opinion(fields)),
            "boolean" => Self::Boolean(Boolean::read(fields)),
            "consent" => Self::Consent(Consent::read(fields)),
            "single_choice" => Self::SingleChoice(SingleChoice::read(fields, budget.limits())),
            "multiple_choice" => Self::MultipleChoice(MultipleChoice::read(fields, budget.limits())),
            "ranking" => Self::Ranking(Ranking::read(fields, budget.limits())),
            "matrix" => Self::Matrix(Matrix::read(fields, budget.limits())),
            "date" => Self::Date(Calendar::read(fields, Unit::Date)),
            "time" => Self::Time(Calendar::read(fields, Unit::Time)),
            "datetime" => Self::Datetime(Calendar::read(fields, Unit::Moment)),
            "hidden" => Self::Hidden(Hidden::read(fields)),
            "statement" => Self::Statement(Silent),
            "page" => Self::Page(Silent),
            _ => return None,
        })
    }

    /// The kind called `name` as it is without settings, and the names of those that it must have; `None` if there is
    /// no such kind.
    pub fn bare(name: &str) -> Option<(Self, Vec<String>)> {
        let (nothing, mut violations) = (Value::Object(Vec::new()), Vec::new());
        let mut fields = Fields::open(&nothing, "", name, &mut violations)?;
        let kind = Self::read(name, &mut fields, &mut Budget::new(&Limits::BOUNDLESS))?;
        let missing = violations.into_iter().filter(|violation| violation.code == Rule::MissingField);
        Some((kind, missing.flat_map(|violation| violation.candidates).collect()))
    }

    /// Whether it begins a page, which decides for all questions up to the next.
    pub fn begins_page(&self) -> bool {
        matches!(self, Self::Page(_))
    }

    /// Whether its answer is a list, which people give item by item.
    pub fn answer_is_list(&self) -> bool {
        matches!(self.rules().example(), Value::Array(_))
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
