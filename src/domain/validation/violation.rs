//! One broken rule, and where: the entries of `errors` in a problem document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::open_enum::OpenEnum;
use crate::domain::validation::similar::nearest_first;

/// Declares [`Rule`] with its names and meanings.
macro_rules! rules {
    ($($rule:ident $name:literal $meaning:literal;)*) => {
        /// Which rule of a definition or of an answer was broken. The text form is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Rule {
            $(#[doc = $meaning] #[serde(rename = $name)] $rule,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$rule,)*];

            /// The stable text: `missing_field`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$rule => $name,)* }
            }

            /// The rule called `name`.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|rule| rule.name() == name)
            }

            /// What it means and what to do.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$rule => $meaning,)* }
            }
        }
    };
}

rules! {
    MissingField "missing_field" "A member that must be there is not. The message names it.";
    UnknownField "unknown_field" "Unknown field. Unknown members are refused, never ignored: correct the name, to one of `allowed`, or take it out.";
    ReadOnlyField "read_only_field" "Only the server sets this member. Take it out.";
    TypeMismatch "type_mismatch" "The value is of another kind than is wanted: a number is `5`, not `\"5\"`; text is in quotes. Nothing is converted silently.";
    Empty "empty" "The text or list is empty, or only white space. Fill it in or take it out.";
    TooShort "too_short" "The text has fewer characters than `min_length`.";
    TooLong "too_long" "The text has more characters or bytes than allowed; the message says how many are.";
    TooMany "too_many" "There are more items than allowed; the message says how many are.";
    InvalidRange "invalid_range" "A setting lies outside what is possible, or two settings contradict each other. With a `pattern`, and where a condition has a `matches`, `max_length` is at most 1000; `includes` serves longer texts.";
    InvalidPattern "invalid_pattern" "`pattern` or `matches` is not a valid regular expression in the syntax of Rust's `regex`, or too large: one has at most 1,000 characters; all of a form have at most 10,000 together and compile to at most 256 KiB, where one with `\\b` takes four times its size. Unicode classes are large, and a repeat such as `{2,30}` takes 30 times the space: write `[A-Za-z0-9_]` for `\\w`, `[0-9]` for `\\d`, `[A-Za-z]` for `\\p{L}`, `(?-u:\\b)` for `\\b`, and limit lengths by `max_length`. Look-around and back-references do not exist: matching takes linear time.";
    UnknownQuestionType "unknown_question_type" "The question's `type` is not a question type. `allowed` lists those that exist, the nearest first.";
    InvalidQuestionId "invalid_question_id" "A question id begins with a lower-case letter and has lower-case letters, digits and `_`, 64 at most. `any`, `all` and `not` are reserved.";
    DuplicateQuestionId "duplicate_question_id" "Two questions have the same id. Every question needs its own: answers are stored under it.";
    RetiredQuestionId "retired_question_id" "The id belonged to a question that was removed. It is never given to another, so that old answers keep their meaning: choose a new one.";
    UnknownReference "unknown_reference" "A condition names an id that is not of an earlier question. Conditions are decided in the order of the questions, so only earlier ones can be named.";
    ImpossibleCondition "impossible_condition" "A test of a condition can never be true: it asks for a value that the question cannot have (with `ne`, it is always true), a number outside its range, or one of no values. It would hide the question for good, without anybody noticing. Each test is examined by itself.";
    InvalidSlug "invalid_slug" "A slug is words of lower-case letters and digits, joined by single hyphens, 64 characters at most: `customer-feedback`.";
    SlugTaken "slug_taken" "Another form of this workspace has this slug. Choose another, or change that form.";
    Required "required" "The question must have an answer. Empty text, only white space, `null`, `[]` and `{}` count as none.";
    UnknownQuestion "unknown_question" "The form has no question with this id. With `{\"settings\":{\"unknown_answers\":\"drop\"}}` such answers are left out, and named in the header `Forms-Dropped`.";
    QuestionNotVisible "question_not_visible" "With the other answers as they are, this question is not asked. Leave its answer out (in an edit, send `null` for it), or first mend the other one that the message names.";
    NotAnswerable "not_answerable" "Statements and pages are shown and not asked: they take no answer.";
    InvalidCharacter "invalid_character" "The text holds a control character, or a line break where one line is asked for.";
    PatternMismatch "pattern_mismatch" "The text does not match the question's pattern.";
    InvalidEmail "invalid_email" "The text is not an email address like name@example.com. Quoted local parts, comments and address literals are refused: nearly always they are mistakes.";
    DomainNotAllowed "domain_not_allowed" "The question takes addresses of certain domains only, or not of this one.";
    SchemeNotAllowed "scheme_not_allowed" "The question takes addresses with certain schemes only.";
    InvalidUrl "invalid_url" "The text is not a valid absolute URL with scheme and host, such as `https://example.com/page`. What a browser would mend in silence, such as white space, is refused.";
    InvalidPhone "invalid_phone" "The text is not a valid phone number: write it with `+` and its country, like +49 30 901820, or as it is dialled in the question's default country.";
    InvalidDate "invalid_date" "The text is not a valid date such as 2027-03-13.";
    InvalidTime "invalid_time" "The text is not a valid time of day such as 09:30 or 09:30:00.";
    InvalidDatetime "invalid_datetime" "The text is not a valid date and time with offset in RFC 3339, such as 2027-03-13T09:30:00+01:00.";
    NotAnOption "not_an_option" "The value is none of the question's options. What counts is an option's `value`, not its label, and case matters.";
    DuplicateOption "duplicate_option" "The same option appears twice in a list.";
    UnknownRow "unknown_row" "The question has no row with this name.";
    TooFew "too_few" "There are fewer items than asked for; the message says how many must be.";
    NotAnInteger "not_an_integer" "The question asks for a whole number.";
    OutOfRange "out_of_range" "The number, date or time is below or above what the question allows.";
    NotAStep "not_a_step" "The number is not a whole number of steps from `min`, else from 0.";
}

impl OpenEnum<Rule> {
    /// The text: `missing_field`.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(rule) => rule.name(),
            Self::Unknown(name) => name,
        }
    }
}

/// Violations that are told at once. Nobody reads more, and each takes more room than what was sent.
pub const MAX_VIOLATIONS: usize = 100;

/// Violations of one kind whose `allowed` are looked for among the ids of all questions: comparing costs time, and nobody
/// corrects more names at once.
pub const MAX_COMPARED: usize = 10;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON pointer (RFC 6901) into the body that was sent.
    pub pointer: String,
    /// The question's id, where one is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The rule.
    pub code: OpenEnum<Rule>,
    /// What is wrong, for a person.
    pub message: String,
    /// Values or names that are right in this place: the nearest first, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// The one thing to do about it, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// JSON pointer to the other place that the message means, such as the first use of an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<String>,
    /// Members that a newer server has sent.
    #[serde(flatten)]
    pub others: BTreeMap<String, serde_json::Value>,
}

impl Violation {
    /// A violation of `code` at `pointer`.
    pub fn new(pointer: impl Into<String>, code: Rule, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            question: None,
            code: code.into(),
            message: message.into(),
            allowed: Vec::new(),
            help: None,
            related: None,
            others: BTreeMap::new(),
        }
    }

    /// The same, about the question `id`.
    #[must_use]
    pub fn question(mut self, id: &str) -> Self {
        self.question = Some(id.to_owned());
        self
    }

    /// The same, with the `names` that are right in place of the `written` one.
    #[must_use]
    pub fn allowed<'a>(mut self, written: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.allowed = nearest_first(written, names);
        self
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, which another place explains.
    #[must_use]
    pub fn related(mut self, pointer: impl Into<String>) -> Self {
        self.related = Some(pointer.into());
        self
    }

    /// The last name or index of its pointer, unescaped.
    pub fn last_step(&self) -> String {
        unescape(self.pointer.rsplit('/').next().unwrap_or_default())
    }
}

/// The name that stands as `step` in a JSON pointer.
pub fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The pointer to the member or item `key` of what `pointer` names; `~` and `/` are escaped (RFC 6901 §3).
pub fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Runs `read` and returns its result, or the violations if it reports any.
pub(in crate::domain) fn collect_violations<T>(
    read: impl FnOnce(&mut Vec<Violation>) -> Option<T>,
) -> Result<T, Vec<Violation>> {
    let mut violations = Vec::new();
    read(&mut violations).filter(|_| violations.is_empty()).ok_or(violations)
}

/// The first 80 characters of `text`, enough to recognize it.
pub fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
