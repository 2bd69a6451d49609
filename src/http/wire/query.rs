//! Parsing of query parameters: unknown, repeated and invalid ones are reported.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use utoipa::IntoParams;

use crate::clock::Timestamp;
use crate::domain::condition::FilterKey;
use crate::domain::validation::violation::{Rule, Violation, join, shortened};
use crate::http::wire::problem::ApiError;
use crate::http::wire::state::Shared;
use crate::store::DEFAULT_PAGE;

/// Maximum number of items on a page.
const MAX_LIMIT: usize = 1_000;

/// Maximum number of violations reported for one query.
const MAX_VIOLATIONS: usize = 20;

/// Extractor for the query, which may have only the parameters of `T`.
pub(crate) struct QueryParams<T>(pub(crate) T);

/// A type that can be read from a query.
pub(crate) trait FromQuery: Sized {
    /// Takes the known parameters out of `query`; the remaining ones are unknown.
    fn from_query(query: &mut QueryReader) -> Self;
}

impl<T: FromQuery> FromRequestParts<Shared> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, ApiError> {
        let mut query = QueryReader::parse(parts.uri.query().unwrap_or_default());
        let parameters = T::from_query(&mut query);
        let violations = query.finish();
        if violations.is_empty() { Ok(Self(parameters)) } else { Err(ApiError::invalid_query(violations)) }
    }
}

/// An empty query.
pub(crate) struct NoParams {}

impl FromQuery for NoParams {
    fn from_query(_: &mut QueryReader) -> Self {
        Self {}
    }
}

/// Parameters of a list that is only paged.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Maximum number to return; fewer where they are large.
    #[param(value_type = u32, required = false, minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: usize,
    /// Where to continue: the `cursor` in the header `Link` of the page before.
    pub(crate) cursor: Option<String>,
}

impl FromQuery for PageQuery {
    fn from_query(query: &mut QueryReader) -> Self {
        Self { limit: query.limit(DEFAULT_PAGE), cursor: query.text("cursor") }
    }
}

/// A query being parsed, with the violations found so far.
pub(crate) struct QueryReader {
    /// Names and values not taken yet.
    remaining: Vec<(String, String)>,
    /// Names of the known parameters.
    known: Vec<&'static str>,
    /// Violations of the parameters taken so far.
    violations: Vec<Violation>,
}

impl QueryReader {
    fn parse(text: &str) -> Self {
        // The parser would replace invalid UTF-8 by U+FFFD.
        let is_invalid = |pair: &&str| percent_decode_str(pair).decode_utf8().is_err();
        let (invalid, valid): (Vec<_>, Vec<_>) = text.split('&').partition(is_invalid);
        let remaining =
            valid.iter().flat_map(|pair| form_urlencoded::parse(pair.as_bytes()).into_owned()).collect();
        Self { remaining, known: Vec::new(), violations: invalid.into_iter().map(invalid_utf8).collect() }
    }

    /// Takes the value of `name`, if present.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        // Most requests have no query: the known names are needed only to suggest one of them.
        if self.remaining.is_empty() {
            return None;
        }
        self.known.push(name);
        let mut values =
            self.remaining.extract_if(.., |(written, _)| written == name).map(|(_, value)| value);
        let value = values.next();
        if values.count() > 0 {
            self.violations.push(duplicate(param_pointer(name)));
        }
        value
    }

    /// Takes the boolean `name`; `false` if absent.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        self.one_of(name, &[("true", true), ("false", false)]).unwrap_or_default()
    }

    /// Takes `name` if it has its `default` value. It has no effect here, so any other value remains and is reported.
    pub(crate) fn allow_default(&mut self, name: &'static str, default: &str) {
        if let Some(at) =
            self.remaining.iter().position(|(written, value)| written == name && value == default)
        {
            self.remaining.remove(at);
        }
    }

    /// Takes the value of `name`, which must be one of `known`.
    pub(crate) fn one_of<T: Copy>(&mut self, name: &'static str, known: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        let words = || known.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        let names = known.iter().map(|(word, _)| *word);
        let found = found
            .ok_or_else(|| invalid_value(name, Rule::NotAnOption, &words(), &text).allowed(&text, names));
        self.ok_or_record(found)
    }

    /// Takes the date and time `name`.
    fn timestamp(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.text(name)?;
        let expected = "a date and time with its offset, such as 2027-01-31T18:00:00Z";
        let moment = Timestamp::parse(&text)
            .ok_or_else(|| invalid_value(name, Rule::InvalidDatetime, expected, &text));
        self.ok_or_record(moment)
    }

    /// Takes `since` and `until`, and checks their order.
    pub(crate) fn time_range(&mut self) -> [Option<Timestamp>; 2] {
        let span = ["since", "until"].map(|name| self.timestamp(name));
        if let [Some(since), Some(until)] = span
            && since > until
        {
            let message = format!("{since} is after {until}");
            self.violations.push(Violation::new("/since", Rule::InvalidRange, message).related("/until"));
        }
        span
    }

    /// Takes the values of `filter[question][operator]`, of `filter[question]`, which means `eq`, and of
    /// `where=question.operator=value`.
    pub(crate) fn filter(&mut self) -> BTreeMap<FilterKey, String> {
        let mut filter = BTreeMap::new();
        if self.remaining.is_empty() {
            return filter;
        }
        self.known.extend(["filter[question][operator]", "where"]);
        for (name, value) in self.remaining.extract_if(.., |(name, _)| name.starts_with("filter[")) {
            let Some(key) = parse_filter_key(&name) else {
                let violation =
                    Violation::new(param_pointer(&name), Rule::UnknownField, "not a valid filter");
                self.violations.push(violation.help("write `filter[question][operator]`"));
                continue;
            };
            let pointer = filter_pointer(&key);
            if filter.insert(key, value).is_some() {
                self.violations.push(duplicate(pointer));
            }
        }
        for (_, text) in self.remaining.extract_if(.., |(name, _)| name == "where") {
            let Some((key, value)) = parse_clause(&text) else {
                let expected = "a question, an operator and a value, such as score.gte=4";
                self.violations.push(invalid_value("where", Rule::TypeMismatch, expected, &text));
                continue;
            };
            let pointer = filter_pointer(&key);
            if filter.insert(key, value.to_owned()).is_some() {
                self.violations.push(duplicate(pointer));
            }
        }
        filter
    }

    /// Takes `limit`, the page size; `default` if absent.
    pub(crate) fn limit(&mut self, default: usize) -> usize {
        let Some(text) = self.text("limit") else { return default };
        let number = Some(&text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number =
            number.and_then(|text| text.parse().ok()).filter(|number| (1..=MAX_LIMIT).contains(number));
        let expected = || format!("an integer from 1 to {MAX_LIMIT}");
        let number = number.ok_or_else(|| invalid_value("limit", Rule::OutOfRange, &expected(), &text));
        self.ok_or_record(number).unwrap_or(default)
    }

    /// Returns the value, or records the violation.
    fn ok_or_record<T>(&mut self, found: Result<T, Violation>) -> Option<T> {
        found.map_err(|violation| self.violations.push(violation)).ok()
    }

    /// Returns all violations, including one for each remaining parameter.
    fn finish(mut self) -> Vec<Violation> {
        let unknown = self.remaining.iter().take(MAX_VIOLATIONS).map(|(name, _)| self.unknown(name));
        let unknown: Vec<_> = unknown.collect();
        self.violations.extend(unknown);
        let mut violations = Vec::new();
        for violation in self.violations {
            if violations.len() < MAX_VIOLATIONS && !violations.contains(&violation) {
                violations.push(violation);
            }
        }
        violations
    }

    fn unknown(&self, name: &str) -> Violation {
        let violation = Violation::new(param_pointer(name), Rule::UnknownField, "unknown parameter");
        violation.allowed(name, self.known.iter().copied())
    }
}

/// Returns the pointer to the parameter `name`.
fn param_pointer(name: &str) -> String {
    join("", &shortened(name))
}

/// Returns the pointer to a clause of a filter, whichever syntax it was written in.
fn filter_pointer(FilterKey { question, operator }: &FilterKey) -> String {
    [question, operator]
        .iter()
        .fold(param_pointer("filter"), |pointer, step| join(&pointer, &shortened(step)))
}

/// Returns the violation for a parameter whose value is not what is `expected`.
fn invalid_value(name: &str, rule: Rule, expected: &str, found: &str) -> Violation {
    Violation::new(param_pointer(name), rule, format!("expected {expected}, found `{}`", shortened(found)))
}

/// Parses a parameter name, `filter[question][operator]`.
fn parse_filter_key(name: &str) -> Option<FilterKey> {
    let within = name.strip_prefix("filter[")?.strip_suffix(']')?;
    let (question, operator) = within.split_once("][").unwrap_or((within, "eq"));
    let is_name = |text: &str| !text.is_empty() && !text.contains(['[', ']']);
    let key = FilterKey { question: question.to_owned(), operator: operator.to_owned() };
    (is_name(question) && is_name(operator)).then_some(key)
}

/// Parses `question.operator=value`; the operator defaults to `eq`.
fn parse_clause(text: &str) -> Option<(FilterKey, &str)> {
    let (name, value) = text.split_once('=')?;
    let (question, operator) = name.split_once('.').unwrap_or((name, "eq"));
    let key = FilterKey { question: question.to_owned(), operator: operator.to_owned() };
    (!question.is_empty() && !operator.is_empty()).then_some((key, value))
}

fn invalid_utf8(pair: &str) -> Violation {
    let name = percent_decode_str(pair.split('=').next().unwrap_or_default()).decode_utf8_lossy();
    Violation::new(param_pointer(&name), Rule::InvalidCharacter, "not valid UTF-8 after percent-decoding")
}

fn duplicate(pointer: String) -> Violation {
    Violation::new(pointer, Rule::TooMany, "given more than once")
}
