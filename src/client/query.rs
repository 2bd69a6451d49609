//! Filters of lists, as query parameters.

use form_urlencoded::Serializer;
use serde::Serialize;

use super::pages::MAX_PAGE;

#[derive(Debug, Clone, Copy, Default)]
pub struct FormQuery<'a> {
    pub status: Option<&'a str>,
    /// Only forms that do not accept submissions for this reason.
    pub accepting_reason: Option<&'a str>,
    /// Only trashed ones, instead of those outside the trash.
    pub trashed: bool,
    pub count: bool,
}

impl FormQuery<'_> {
    pub(super) fn parameters(&self, page: usize) -> String {
        let mut parameters = page_params(page);
        parameters.extend_pairs(self.status.map(|status| ("status", status)));
        parameters.extend_pairs(self.accepting_reason.map(|reason| ("accepting_reason", reason)));
        parameters.extend_pairs(self.trashed.then_some(("trashed", "true")));
        parameters.extend_pairs(self.count.then_some(("count", "true")));
        parameters.finish()
    }
}

#[derive(Debug, Clone, Default)]
pub struct SubmissionQuery {
    /// Only submissions created at this time or later, in RFC 3339.
    pub since: Option<String>,
    /// Only submissions created before this time, in RFC 3339.
    pub until: Option<String>,
    /// Conditions on answers: question, operator and value.
    pub answers: Vec<(String, String, String)>,
    /// Only trashed ones, instead of those outside the trash.
    pub trashed: bool,
}

impl SubmissionQuery {
    pub fn is_empty(&self) -> bool {
        self.since.is_none() && self.until.is_none() && self.answers.is_empty() && !self.trashed
    }

    pub(super) fn parameters(&self, page: usize) -> String {
        let mut parameters = page_params(page);
        parameters.extend_pairs(self.trashed.then_some(("trashed", "true")));
        parameters.extend_pairs(self.since.iter().map(|since| ("since", since)));
        parameters.extend_pairs(self.until.iter().map(|until| ("until", until)));
        for (question, operator, value) in &self.answers {
            parameters.append_pair(&format!("filter[{question}][{operator}]"), value);
        }
        parameters.finish()
    }
}

/// Which deliveries to list, to send again or to cancel: all that match. `dry_run` and `rate` are for changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeliverySelection {
    /// Id or slug.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// Id, or with `form` also the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission: Option<String>,
    /// Names of statuses; empty for the operation's default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// Earliest time of the event, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The time of the event is earlier, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Only count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How fast to send again, such as `10/s`; `None` for at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
}

impl DeliverySelection {
    pub(super) fn parameters(&self, page: usize) -> String {
        let mut parameters = page_params(page);
        let status = (!self.status.is_empty()).then(|| self.status.join(","));
        for (name, value) in [
            ("form", &self.form),
            ("integration", &self.integration),
            ("submission", &self.submission),
            ("status", &status),
            ("since", &self.since),
            ("until", &self.until),
        ] {
            parameters.extend_pairs(value.iter().map(|value| (name, value)));
        }
        parameters.finish()
    }
}

/// Creates the parameters of a page of `page` items.
fn page_params(page: usize) -> Serializer<'static, String> {
    let mut parameters = Serializer::new(String::new());
    parameters.append_pair("limit", &page.clamp(1, MAX_PAGE).to_string());
    parameters
}
