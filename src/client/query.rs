//! What lists are asked for, as parameters of a query.

use form_urlencoded::Serializer;

use super::pages::MAX_PAGE;

/// Which of the workspace's forms.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormQuery<'a> {
    /// Those with this status.
    pub status: Option<&'a str>,
    /// Those that do not accept answers for this reason.
    pub accepting_reason: Option<&'a str>,
    /// Those in the trash instead of those outside it.
    pub trashed: bool,
    /// Whether the server is to count them.
    pub count: bool,
}

impl FormQuery<'_> {
    pub(super) fn parameters(&self, page: usize) -> String {
        let mut parameters = paged(page);
        parameters.extend_pairs(self.status.map(|status| ("status", status)));
        parameters.extend_pairs(self.accepting_reason.map(|reason| ("accepting_reason", reason)));
        parameters.extend_pairs(self.trashed.then_some(("trashed", "true")));
        parameters.extend_pairs(self.count.then_some(("count", "true")));
        parameters.finish()
    }
}

/// Which of a form's submissions.
#[derive(Debug, Clone, Default)]
pub struct SubmissionQuery {
    /// Those of this moment and later, in RFC 3339.
    pub since: Option<String>,
    /// Those before this moment, in RFC 3339.
    pub until: Option<String>,
    /// Those whose answers hold: the question, the operator, and its value.
    pub answers: Vec<(String, String, String)>,
    /// Those in the trash instead of those outside it.
    pub trashed: bool,
}

impl SubmissionQuery {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.since.is_none() && self.until.is_none() && self.answers.is_empty() && !self.trashed
    }

    pub(super) fn parameters(&self, page: usize) -> String {
        let mut parameters = paged(page);
        parameters.extend_pairs(self.trashed.then_some(("trashed", "true")));
        parameters.extend_pairs(self.since.iter().map(|since| ("since", since)));
        parameters.extend_pairs(self.until.iter().map(|until| ("until", until)));
        for (question, operator, value) in &self.answers {
            parameters.append_pair(&format!("filter[{question}][{operator}]"), value);
        }
        parameters.finish()
    }
}

/// The parameters of a list, `page` items at a time.
fn paged(page: usize) -> Serializer<'static, String> {
    let mut parameters = Serializer::new(String::new());
    parameters.append_pair("limit", &page.clamp(1, MAX_PAGE).to_string());
    parameters
}
