//! Violations: the entries of `errors` in a problem document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::json::Value;
pub use crate::domain::json::{join, unescape};
use crate::domain::open_enum::{OpenEnum, named_enum};
use crate::domain::validation::similar::nearest_first;

/// Declares [`Rule`] with its names and meanings.
macro_rules! rules {
    ($($rule:ident $name:literal $meaning:literal;)*) => {
        named_enum! {
            /// Which rule of a definition or of an answer was broken.
            Rule { $(#[doc = $meaning] $rule = $name,)* }
        }

        impl Rule {
            /// An explanation of the rule, with the remedy.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$rule => $meaning,)* }
            }
        }
    };
}

rules! {
    MissingField "missing_field" "A required member is missing. The message names it.";
    UnknownField "unknown_field" "Unknown field. Unknown members are refused, never ignored: correct the name, to one of `allowed`, or remove it.";
    ReadOnlyField "read_only_field" "Only the server sets this member. Remove it.";
    TypeMismatch "type_mismatch" "The value has the wrong type: a number is `5`, not `\"5\"`; text is in quotes. Values are never converted silently.";
    Empty "empty" "The text or list is empty, or only white space. Fill it in or remove it.";
    TooShort "too_short" "The text has fewer characters than `min_length`.";
    TooLong "too_long" "The text has more characters or bytes than allowed; the message shows the limit.";
    TooMany "too_many" "There are more items than allowed; the message shows the limit.";
    InvalidRange "invalid_range" "A setting is out of range, or two settings contradict each other. With a `pattern`, or if a condition tests the answer with `matches`, `max_length` is at most 1000; `includes` works with longer texts.";
    InvalidPattern "invalid_pattern" "`pattern` or `matches` is not a valid regular expression in the syntax of Rust's `regex`, or it is too large. A pattern has at most 1,000 characters; all patterns of a form have at most 10,000 characters and compile to at most 256 KiB together, where a pattern with `\\b` counts four times. Unicode classes are large, and a repeat such as `{2,30}` takes 30 times the space: write `[A-Za-z0-9_]` for `\\w`, `[0-9]` for `\\d`, `[A-Za-z]` for `\\p{L}`, `(?-u:\\b)` for `\\b`, and limit lengths by `max_length`. Look-around and back-references are not supported: matching takes linear time.";
    UnknownQuestionType "unknown_question_type" "The `type` is not a question type. `allowed` lists the valid types, the most similar first.";
    UnknownIntegrationType "unknown_integration_type" "The `type` is not a type of integration. `allowed` lists the valid types, the most similar first.";
    InvalidTemplate "invalid_template" "The text is not a valid template. Templates have values such as `{{ form.title }}` and `{{ answers.q1 }}`, `{% if %}`, `{% for %}` and the filters listed in docs/integrations.md; the message names the line.";
    DuplicateName "duplicate_name" "Another integration of the form has this name or writes to this file, or a header is given twice. Choose another.";
    AddressNotAllowed "address_not_allowed" "Integrations may call only public addresses over HTTPS, on ports 80, 443 and from 1024. The operator of the server allows others, and plain HTTP there, with `serve --allow-net CIDR`. Where the store is a database, a new `csv_file` is refused: a file is on one machine's disk.";
    SecretRequired "secret_required" "A secret must be sent: none is stored, or `url` now leads to another host, which must not get a secret that was meant for the old one. Send its value again, or `null` to remove it (for a signing secret, to have a new one generated).";
    InvalidQuestionId "invalid_question_id" "A question id starts with a lower-case letter and has at most 64 lower-case letters, digits and `_`. `any`, `all` and `not` are reserved.";
    DuplicateQuestionId "duplicate_question_id" "Two questions have the same id. Every question needs its own id: answers are stored under it.";
    RetiredQuestionId "retired_question_id" "The id belonged to a removed question of another type, so its old answers would be misread. With its old type the question can come back, and its answers are seen again. Choose another id, or the old type.";
    UnknownReference "unknown_reference" "A condition names an id that does not belong to an earlier question: conditions are evaluated in the order of the questions, so they can only name earlier ones. Or a request names a form or workspace that does not exist.";
    ImpossibleCondition "impossible_condition" "A test of a condition can never be true (or, with `ne`, is always true): it compares with a value that is not a valid answer, with a number outside the range, or with an empty list. The question would be hidden for good without anybody noticing. Each test is examined by itself.";
    InvalidSlug "invalid_slug" "A slug has at most 64 characters: words of lower-case letters and digits, joined by single hyphens, such as `customer-feedback`.";
    SlugTaken "slug_taken" "Another form of this workspace has this slug. Choose another, or change that form.";
    Required "required" "The question requires an answer. Blank text, `null`, `[]` and `{}` count as no answer.";
    UnknownQuestion "unknown_question" "The form has no question with this id. With `{\"settings\":{\"unknown_answers\":\"drop\"}}` such answers are dropped, and listed in the header `Forms-Dropped`.";
    QuestionNotVisible "question_not_visible" "With the other answers, this question is not asked. Leave out its answer (in an edit, send `null` for it), or first correct the answer that the message names.";
    NotAnswerable "not_answerable" "Statements and pages are only shown: they take no answer.";
    InvalidCharacter "invalid_character" "The text contains a control character, or a line break where one line is expected.";
    PatternMismatch "pattern_mismatch" "The text does not match the question's pattern.";
    InvalidEmail "invalid_email" "The text is not an email address like name@example.com. Quoted local parts, comments and address literals are refused: nearly always they are mistakes.";
    DomainNotAllowed "domain_not_allowed" "The question accepts only addresses of certain domains, or none of this domain.";
    SchemeNotAllowed "scheme_not_allowed" "The question accepts only URLs with certain schemes.";
    InvalidUrl "invalid_url" "The text is not a valid absolute URL with scheme and host, such as `https://example.com/page`. Mistakes that a browser silently corrects, such as white space, are refused.";
    InvalidPhone "invalid_phone" "The text is not a valid phone number: write it with `+` and the country code, such as +49 30 901820, or as dialled in the question's default country.";
    InvalidDate "invalid_date" "The text is not a valid date such as 2027-03-13.";
    InvalidTime "invalid_time" "The text is not a valid time of day such as 09:30 or 09:30:00.";
    InvalidDatetime "invalid_datetime" "The text is not a valid date and time with offset in RFC 3339, such as 2027-03-13T09:30:00+01:00.";
    NotAnOption "not_an_option" "The value is not one of the question's options, or not one of the names listed in `allowed`. Send an option's `value`, not its label; case matters.";
    DuplicateOption "duplicate_option" "The same option appears twice in a list.";
    UnknownRow "unknown_row" "The question has no row with this name.";
    TooFew "too_few" "There are fewer items than required; the message shows the minimum.";
    NotAnInteger "not_an_integer" "The question expects a whole number.";
    OutOfRange "out_of_range" "The number, date or time is below or above what the question allows.";
    NotAStep "not_a_step" "The number is not a whole number of steps from `min`, or from 0 without one.";
}

/// Maximum violations that are reported at once. Nobody reads more, and each is larger than what was sent.
pub const MAX_VIOLATIONS: usize = 100;

/// Maximum violations of one rule whose `allowed` is computed from the ids of all questions: comparing takes time, and
/// nobody corrects more names at once.
pub const MAX_COMPARED: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// JSON pointer (RFC 6901) into the body that was sent.
    pub pointer: String,
    /// The id of the question, if the violation concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    pub code: OpenEnum<Rule>,
    /// The error, for a person.
    pub message: String,
    /// Valid values or names: the most similar first, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// How to correct it, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// JSON pointer to a related place, such as the first use of an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<String>,
    /// Unknown members sent by a newer server.
    #[serde(flatten)]
    pub extensions: BTreeMap<String, serde_json::Value>,
}

impl Violation {
    pub fn new(pointer: impl Into<String>, code: Rule, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            question: None,
            code: code.into(),
            message: message.into(),
            allowed: Vec::new(),
            help: None,
            related: None,
            extensions: BTreeMap::new(),
        }
    }

    /// A violation at `pointer`: the `value` called `name` is not what is `wanted`, such as `a list`.
    pub fn wrong_type(pointer: impl Into<String>, name: &str, wanted: &str, value: &Value) -> Self {
        let message = format!("`{name}` must be {wanted}, not {}", value.kind());
        Self::new(pointer, Rule::TypeMismatch, message)
    }

    #[must_use]
    pub fn question(mut self, id: &str) -> Self {
        self.question = Some(id.to_owned());
        self
    }

    /// Sets `allowed` to the valid `names`, sorted by similarity to the `written` one.
    #[must_use]
    pub fn allowed<'a>(mut self, written: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.allowed = nearest_first(written, names);
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    #[must_use]
    pub fn related(mut self, pointer: impl Into<String>) -> Self {
        self.related = Some(pointer.into());
        self
    }

    /// Returns the last name or index of the pointer, unescaped.
    pub fn last_step(&self) -> String {
        unescape(self.pointer.rsplit('/').next().unwrap_or_default())
    }
}

/// Runs `read` and returns its result, or the violations if it reports any.
pub(in crate::domain) fn collect_violations<T>(
    read: impl FnOnce(&mut Vec<Violation>) -> Option<T>,
) -> Result<T, Vec<Violation>> {
    let mut violations = Vec::new();
    read(&mut violations).filter(|_| violations.is_empty()).ok_or(violations)
}

/// Returns the first 80 characters of `text`, enough to recognize it.
pub fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
