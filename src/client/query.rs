//! Filters of lists, as query parameters.

use form_urlencoded::Serializer;
use serde::Serialize;
use serde_json::{Map, Value};

use super::pages::MAX_PAGE;

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct FormQuery<'a> {
    pub status: Option<&'a str>,
    /// Only forms that do not accept submissions for this reason.
    pub accepting_reason: Option<&'a str>,
    /// Only trashed ones, instead of those outside the trash.
    pub trashed: bool,
    pub count: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct SubmissionQuery {
    /// Only submissions created at this time or later, in RFC 3339.
    pub since: Option<String>,
    /// Only submissions created before this time, in RFC 3339.
    pub until: Option<String>,
    /// Only trashed ones, instead of those outside the trash.
    pub trashed: bool,
    /// Only submissions with this status; no other list has those that are `quarantined`.
    pub status: Option<&'static str>,
    /// Only submissions with this text in an answer.
    pub q: Option<String>,
    /// `asc` for the oldest first.
    pub order: Option<&'static str>,
    /// Conditions on answers: question, operator and value.
    #[serde(skip)]
    pub answers: Vec<(String, String, String)>,
}

impl SubmissionQuery {
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && members(self).is_empty()
    }

    pub(super) fn parameters(&self, page: usize) -> String {
        self.with_conditions(parameters(self, page))
    }

    /// Returns the query of a summary.
    pub(super) fn filter(&self) -> String {
        self.with_conditions(append(Serializer::new(String::new()), self))
    }

    /// Returns the text and the conditions as the query of an erasure.
    pub(super) fn what(&self) -> String {
        let mut text = Serializer::new(String::new());
        self.with_conditions(text.extend_pairs(self.q.iter().map(|text| ("q", text))).finish())
    }

    fn with_conditions(&self, parameters: String) -> String {
        let filter = |(question, operator, value): &(String, String, String)| {
            (format!("filter[{question}][{operator}]"), value.clone())
        };
        Serializer::new(parameters).extend_pairs(self.answers.iter().map(filter)).finish()
    }
}

/// Returns the members of a filter that are set.
pub(super) fn members(filter: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(members)) = serde_json::to_value(filter) else { return Map::new() };
    let is_set =
        |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value != &Value::Array(vec![]);
    members.into_iter().filter(|(_, value)| is_set(value)).collect()
}

/// Returns the query for a page of at most `page` items that match the filter.
pub(super) fn parameters(filter: &impl Serialize, page: usize) -> String {
    let mut parameters = Serializer::new(String::new());
    parameters.append_pair("limit", &page.clamp(1, MAX_PAGE).to_string());
    append(parameters, filter)
}

/// Appends the members of the filter that are set.
fn append(mut parameters: Serializer<'_, String>, filter: &impl Serialize) -> String {
    let text = |value: Value| match value {
        Value::String(text) => text,
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    parameters.extend_pairs(members(filter).into_iter().map(|(name, value)| (name, text(value)))).finish()
}
