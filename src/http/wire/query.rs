//! The parameters behind `?`: each known, each at most once, each with a value that fits.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use utoipa::IntoParams;

use crate::clock::Timestamp;
use crate::domain::condition::FilterKey;
use crate::domain::validation::violation::{Rule, Violation, join, shortened};
use crate::http::wire::problem::Failure;
use crate::http::wire::state::Shared;
use crate::store::DEFAULT_PAGE;

/// Items a page may have.
const MAX_LIMIT: usize = 1_000;

/// Problems reported of one query.
const MAX_FAULTS: usize = 20;

/// A request's query, with no parameter besides those of `T`.
pub(crate) struct Parameters<T>(pub(crate) T);

/// What can be read from a query.
pub(crate) trait FromQuery: Sized {
    /// Takes all its parameters out of `query`; what is left is unknown.
    fn take(query: &mut Query) -> Self;
}

impl<T: FromQuery> FromRequestParts<Shared> for Parameters<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Failure> {
        let mut query = Query::read(parts.uri.query().unwrap_or_default());
        let parameters = T::take(&mut query);
        let faults = query.end();
        if faults.is_empty() { Ok(Self(parameters)) } else { Err(Failure::invalid_query(faults)) }
    }
}

/// No parameter at all.
pub(crate) struct Nothing {}

impl FromQuery for Nothing {
    fn take(_: &mut Query) -> Self {
        Self {}
    }
}

/// Which part of a list that is asked for nothing else.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListPart {
    /// Maximum number to return; fewer where they are large.
    #[param(value_type = u32, required = false, minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: usize,
    /// Where to continue: the `cursor` in the header `Link` of the page before.
    pub(crate) cursor: Option<String>,
}

impl FromQuery for ListPart {
    fn take(query: &mut Query) -> Self {
        Self { limit: query.limit(DEFAULT_PAGE), cursor: query.text("cursor") }
    }
}

/// A query that is being read.
pub(crate) struct Query {
    /// Names and values, as far as nobody has asked for them.
    left: Vec<(String, String)>,
    /// Names that were asked for.
    known: Vec<&'static str>,
    /// What is wrong with those that were.
    faults: Vec<Violation>,
}

impl Query {
    fn read(text: &str) -> Self {
        // The parser would put another character in the place of what is no UTF-8.
        let is_broken = |pair: &&str| percent_decode_str(pair).decode_utf8().is_err();
        let (broken, whole): (Vec<_>, Vec<_>) = text.split('&').partition(is_broken);
        let left =
            whole.iter().flat_map(|pair| form_urlencoded::parse(pair.as_bytes()).into_owned()).collect();
        Self { left, known: Vec::new(), faults: broken.into_iter().map(no_utf8).collect() }
    }

    /// The value of `name`, if it is there.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        // Most requests have no query, and need not remember what it could have had.
        if self.left.is_empty() {
            return None;
        }
        self.known.push(name);
        let mut values = self.left.extract_if(.., |(written, _)| written == name).map(|(_, value)| value);
        let value = values.next();
        if values.count() > 0 {
            self.faults.push(twice(at(name)));
        }
        value
    }

    /// Whether `name` is `true`; if it is not there, it is `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        self.one_of(name, &[("true", true), ("false", false)]).unwrap_or_default()
    }

    /// Takes `name`, which has no effect here: only its `default` may be sent.
    pub(crate) fn default_only(&mut self, name: &'static str, default: &str) {
        if let Some(at) = self.left.iter().position(|(written, value)| written == name && value == default) {
            self.left.remove(at);
        }
    }

    /// What the value of `name` stands for among `known`.
    pub(crate) fn one_of<T: Copy>(&mut self, name: &'static str, known: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        let words = || known.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        let names = known.iter().map(|(word, _)| *word);
        let found =
            found.ok_or_else(|| unfit(name, Rule::NotAnOption, &words(), &text).allowed(&text, names));
        self.fitting(found)
    }

    /// A date and time.
    fn moment(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.text(name)?;
        let expected = "a date and time with its offset, such as 2027-01-31T18:00:00Z";
        let moment =
            Timestamp::parse(&text).ok_or_else(|| unfit(name, Rule::InvalidDatetime, expected, &text));
        self.fitting(moment)
    }

    /// `since` and `until`, between which there is something.
    pub(crate) fn span(&mut self) -> [Option<Timestamp>; 2] {
        let span = ["since", "until"].map(|name| self.moment(name));
        if let [Some(since), Some(until)] = span
            && since > until
        {
            let message = format!("{since} is after {until}");
            self.faults.push(Violation::new("/since", Rule::InvalidRange, message).related("/until"));
        }
        span
    }

    /// The values of `filter[question][operator]`, and of `filter[question]`, which is `eq`; also those of `where`, as in
    /// `where=question.operator=value`.
    pub(crate) fn filter(&mut self) -> BTreeMap<FilterKey, String> {
        let mut filter = BTreeMap::new();
        if self.left.is_empty() {
            return filter;
        }
        self.known.extend(["filter[question][operator]", "where"]);
        for (name, value) in self.left.extract_if(.., |(name, _)| name.starts_with("filter[")) {
            let Some(key) = filter_key(&name) else {
                let fault = Violation::new(at(&name), Rule::UnknownField, "not a valid filter");
                self.faults.push(fault.help("write `filter[question][operator]`"));
                continue;
            };
            let pointer = pointer(&key);
            if filter.insert(key, value).is_some() {
                self.faults.push(twice(pointer));
            }
        }
        for (_, text) in self.left.extract_if(.., |(name, _)| name == "where") {
            let Some((key, value)) = clause(&text) else {
                let expected = "a question, an operator and a value, such as score.gte=4";
                self.faults.push(unfit("where", Rule::TypeMismatch, expected, &text));
                continue;
            };
            let pointer = pointer(&key);
            if filter.insert(key, value.to_owned()).is_some() {
                self.faults.push(twice(pointer));
            }
        }
        filter
    }

    /// How many items a page is to have: `limit`, or `default` if it is not there.
    pub(crate) fn limit(&mut self, default: usize) -> usize {
        let Some(text) = self.text("limit") else { return default };
        let number = Some(&text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number =
            number.and_then(|text| text.parse().ok()).filter(|number| (1..=MAX_LIMIT).contains(number));
        let expected = || format!("a number from 1 to {MAX_LIMIT}");
        let number = number.ok_or_else(|| unfit("limit", Rule::OutOfRange, &expected(), &text));
        self.fitting(number).unwrap_or(default)
    }

    /// What was `found`, or nothing, and its fault is reported.
    fn fitting<T>(&mut self, found: Result<T, Violation>) -> Option<T> {
        found.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// All that is wrong: also that a parameter is left.
    fn end(mut self) -> Vec<Violation> {
        let unknown = self.left.iter().take(MAX_FAULTS).map(|(name, _)| self.unknown(name));
        let unknown: Vec<_> = unknown.collect();
        self.faults.extend(unknown);
        let mut faults = Vec::new();
        for fault in self.faults {
            if faults.len() < MAX_FAULTS && !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        faults
    }

    fn unknown(&self, name: &str) -> Violation {
        let violation = Violation::new(at(name), Rule::UnknownField, "unknown parameter");
        violation.allowed(name, self.known.iter().copied())
    }
}

/// Points to the parameter `name`.
fn at(name: &str) -> String {
    join("", &shortened(name))
}

/// Points to the test of a filter, however it is written.
fn pointer(FilterKey { question, operator }: &FilterKey) -> String {
    [question, operator].iter().fold(at("filter"), |pointer, step| join(&pointer, &shortened(step)))
}

/// The parameter `name` has the value `found`, which is not what is `expected`.
fn unfit(name: &str, rule: Rule, expected: &str, found: &str) -> Violation {
    Violation::new(at(name), rule, format!("expected {expected}, found `{}`", shortened(found)))
}

/// The test that a parameter called `name` asks for.
fn filter_key(name: &str) -> Option<FilterKey> {
    let within = name.strip_prefix("filter[")?.strip_suffix(']')?;
    let (question, operator) = within.split_once("][").unwrap_or((within, "eq"));
    let is_name = |text: &str| !text.is_empty() && !text.contains(['[', ']']);
    let key = FilterKey { question: question.to_owned(), operator: operator.to_owned() };
    (is_name(question) && is_name(operator)).then_some(key)
}

/// Reads `question.operator=value`; without an operator it is `eq`.
fn clause(text: &str) -> Option<(FilterKey, &str)> {
    let (name, value) = text.split_once('=')?;
    let (question, operator) = name.split_once('.').unwrap_or((name, "eq"));
    let key = FilterKey { question: question.to_owned(), operator: operator.to_owned() };
    (!question.is_empty() && !operator.is_empty()).then_some((key, value))
}

fn no_utf8(pair: &str) -> Violation {
    let name = percent_decode_str(pair.split('=').next().unwrap_or_default()).decode_utf8_lossy();
    Violation::new(at(&name), Rule::InvalidCharacter, "not UTF-8 once it is percent-decoded")
}

fn twice(pointer: String) -> Violation {
    Violation::new(pointer, Rule::TooMany, "given more than once")
}
