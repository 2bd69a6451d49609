//! What lists are asked for, as parameters of a query.

use super::escaped;

/// Which of the workspace's forms.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormQuery<'a> {
    /// Those with this status.
    pub status: Option<&'a str>,
    /// Those in the trash instead of those outside it.
    pub trashed: bool,
    /// Whether the server is to count them.
    pub count: bool,
}

impl FormQuery<'_> {
    pub(super) fn parameters(&self) -> String {
        let status = self.status.map(|status| format!("&status={}", escaped(status))).unwrap_or_default();
        let flags = [("&trashed=true", self.trashed), ("&count=true", self.count)];
        flags.into_iter().filter(|(_, is_on)| *is_on).fold(status, |text, (flag, _)| text + flag)
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

    pub(super) fn parameters(&self) -> String {
        let moments = [("since", &self.since), ("until", &self.until)];
        let moments =
            moments.into_iter().filter_map(|(name, moment)| Some((name.to_owned(), moment.as_ref()?)));
        let answers = self.answers.iter();
        let answers =
            answers.map(|(question, operator, value)| (format!("filter[{question}][{operator}]"), value));
        let trashed = if self.trashed { "&trashed=true" } else { "" };
        moments
            .chain(answers)
            .map(|(name, value)| format!("&{}={}", escaped(&name), escaped(value)))
            .fold(trashed.to_owned(), |text, parameter| text + &parameter)
    }
}
