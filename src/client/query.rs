//! Filters of lists, as query parameters.

use form_urlencoded::Serializer;

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

#[derive(Debug, Clone, Default)]
pub struct DeliveryQuery {
    /// Id or slug.
    pub form: Option<String>,
    /// Id, or with a form also the name.
    pub integration: Option<String>,
    pub submission: Option<String>,
    /// Names of statuses; empty for all.
    pub status: Vec<String>,
    /// Only events at this time or later, in RFC 3339.
    pub since: Option<String>,
    /// Only events before this time, in RFC 3339.
    pub until: Option<String>,
}

impl DeliveryQuery {
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
