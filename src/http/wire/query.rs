//! Parsing of query parameters: unknown, repeated and invalid ones are reported.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use utoipa::IntoParams;

use crate::api::Code;
use crate::app::{ApiError, Result};
use crate::clock::Timestamp;
use crate::domain::condition::FilterKey;
use crate::domain::json::Value;
use crate::domain::validation::violation::{Rule, Violation, join, shortened};
use crate::http::wire::state::Shared;
use crate::store::DEFAULT_PAGE;

const MAX_LIMIT: usize = 1_000;

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

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self> {
        let mut query = QueryReader::parse(parts.uri.query().unwrap_or_default());
        let parameters = T::from_query(&mut query);
        let violations = query.finish();
        if violations.is_empty() { Ok(Self(parameters)) } else { Err(ApiError::invalid_query(violations)) }
    }
}

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
    #[param(value_type = u32, minimum = 1, maximum = 1000, default = 100)]
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
        self.remaining.retain(|(written, value)| written != name || value != default);
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

    /// Takes the parameters `names`, as `read` parses an object of their texts.
    pub(crate) fn object<T: Default>(
        &mut self,
        names: &[&'static str],
        read: impl FnOnce(&Value) -> Result<T, Vec<Violation>>,
    ) -> T {
        let member = |name: &&'static str| Some(((*name).to_owned(), Value::String(self.text(name)?)));
        let members = names.iter().filter_map(member).collect();
        read(&Value::Object(members)).unwrap_or_else(|violations| {
            self.violations.extend(violations);
            T::default()
        })
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
        self.known.extend(["filter[question][operator]", "where"]);
        let is_clause = |(name, _): &mut (String, String)| name.starts_with("filter[") || name == "where";
        let mut filter = BTreeMap::new();
        for (name, value) in self.remaining.extract_if(.., is_clause) {
            let clause = match name.as_str() {
                "where" => parse_clause(&value).ok_or_else(|| {
                    let expected = "a question, an operator and a value, such as score.gte=4";
                    invalid_value(&name, Rule::TypeMismatch, expected, &value)
                }),
                _ => parse_filter_key(&name).map(|key| (key, value.as_str())).ok_or_else(|| {
                    let pointer = param_pointer(&name);
                    let violation = Violation::new(pointer, Rule::UnknownField, "not a valid filter");
                    violation.help("write `filter[question][operator]`")
                }),
            };
            match clause {
                Ok((key, _)) if filter.contains_key(&key) => {
                    self.violations.push(duplicate(
                        where_pointer(&name, &value).unwrap_or_else(|| filter_pointer(&key)),
                    ));
                }
                Ok((key, value)) => {
                    filter.insert(key, value.to_owned());
                }
                Err(violation) => self.violations.push(violation),
            }
        }
        filter
    }

    /// Takes `limit`, the page size; `default` if absent.
    pub(crate) fn limit(&mut self, default: usize) -> usize {
        let Some(text) = self.text("limit") else { return default };
        let number = text.parse().ok().filter(|number| (1..=MAX_LIMIT).contains(number));
        let number = number.filter(|_| !text.starts_with('+')).ok_or_else(|| {
            invalid_value("limit", Rule::OutOfRange, &format!("an integer from 1 to {MAX_LIMIT}"), &text)
        });
        self.ok_or_record(number).unwrap_or(default)
    }

    /// Returns the value, or records the violation.
    fn ok_or_record<T>(&mut self, found: Result<T, Violation>) -> Option<T> {
        found.map_err(|violation| self.violations.push(violation)).ok()
    }

    /// Returns all violations, including one for each remaining parameter.
    fn finish(self) -> Vec<Violation> {
        let Self { remaining, known, violations: found } = self;
        let unknown = remaining.iter().map(|(name, _)| {
            let violation = Violation::new(param_pointer(name), Rule::UnknownField, "unknown parameter");
            violation.allowed(name, known.iter().copied())
        });
        let mut violations = Vec::new();
        for violation in found.into_iter().chain(unknown.take(MAX_VIOLATIONS)) {
            if violations.len() < MAX_VIOLATIONS && !violations.contains(&violation) {
                violations.push(violation);
            }
        }
        violations
    }
}

/// Refuses the parameters in `names`, which have no effect on a `query` whose result is sent as a whole.
pub(crate) fn refuse_parameters(query: &str, names: &[&str]) -> Result<()> {
    let sent = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| names.contains(&&**name));
    let refused = sent.map(|(name, _)| {
        let message = "cannot be used with a list that is sent as a whole";
        Violation::new(param_pointer(&name), Rule::UnknownField, message)
    });
    let refused: Vec<_> = refused.collect();
    if refused.is_empty() { Ok(()) } else { Err(ApiError::invalid_query(refused)) }
}

fn param_pointer(name: &str) -> String {
    join("", &shortened(name))
}

/// Makes the violations of a filter point to the `where` of the `query` that they come from, such as `/where/score.gte`.
pub(crate) fn point_to_where(error: ApiError, query: &str) -> ApiError {
    if error.problem.code != Code::InvalidQuery {
        return error;
    }
    let mut violations = error.problem.errors;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(sent) = where_pointer(&name, &value) else { continue };
        let Some((key, _)) = parse_clause(&value) else { continue };
        let question = join("/filter", &key.question);
        let test = join(&question, &key.operator);
        for violation in violations.iter_mut().filter(|one| [&question, &test].contains(&&one.pointer)) {
            violation.pointer.clone_from(&sent);
        }
    }
    ApiError::invalid_query(violations)
}

/// Returns the pointer to the clause `value` if `name` is `where`.
fn where_pointer(name: &str, value: &str) -> Option<String> {
    let (test, _) = value.split_once('=').filter(|_| name == "where")?;
    Some(join(&param_pointer(name), &shortened(test)))
}

fn filter_pointer(FilterKey { question, operator }: &FilterKey) -> String {
    [question, operator]
        .iter()
        .fold(param_pointer("filter"), |pointer, step| join(&pointer, &shortened(step)))
}

/// Returns the violation for a parameter whose value is not what is `expected`.
fn invalid_value(name: &str, rule: Rule, expected: &str, found: &str) -> Violation {
    Violation::new(param_pointer(name), rule, format!("expected {expected}, found `{}`", shortened(found)))
}

/// Parses a parameter name, `filter[question][operator]`; the operator defaults to `eq`.
fn parse_filter_key(name: &str) -> Option<FilterKey> {
    let within = name.strip_prefix("filter[")?.strip_suffix(']')?;
    let (question, operator) = within.split_once("][").unwrap_or((within, "eq"));
    filter_key(question, operator)
        .filter(|_| !question.contains(['[', ']']) && !operator.contains(['[', ']']))
}

/// Parses `question.operator=value`; the operator defaults to `eq`.
fn parse_clause(text: &str) -> Option<(FilterKey, &str)> {
    let (name, value) = text.split_once('=')?;
    let (question, operator) = name.split_once('.').unwrap_or((name, "eq"));
    Some((filter_key(question, operator)?, value))
}

fn filter_key(question: &str, operator: &str) -> Option<FilterKey> {
    let key = FilterKey { question: question.to_owned(), operator: operator.to_owned() };
    (!question.is_empty() && !operator.is_empty()).then_some(key)
}

fn invalid_utf8(pair: &str) -> Violation {
    let name = percent_decode_str(pair.split('=').next().unwrap_or_default()).decode_utf8_lossy();
    Violation::new(param_pointer(&name), Rule::InvalidCharacter, "not valid UTF-8 after percent-decoding")
}

fn duplicate(pointer: String) -> Violation {
    Violation::new(pointer, Rule::TooMany, "given more than once")
}
