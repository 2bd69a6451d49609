//! What is known of a form while it is edited: also as a line at the end of a text that was kept, so that the text,
//! sent later, overwrites nothing unseen.

use crate::client::Revision;
use crate::domain::json::{self, Value};

/// What the line begins with; JSON follows.
const MARK: &str = "#> For `forms edit`, what this text began with: ";

/// What is known of a form.
pub(super) struct Known {
    /// What the person began with: only what differs from it is sent.
    pub(super) base: Value,
    /// What is there now, as far as the person was told.
    pub(super) now: Value,
    /// The state of `now`.
    pub(super) revision: Revision,
}

impl Known {
    /// The line that says so of the form `id`.
    pub(super) fn line(&self, id: &str) -> String {
        let members = [
            ("form", id.into()),
            ("revision", self.revision.tag().into()),
            ("base", self.base.clone()),
            ("now", self.now.clone()),
        ];
        let members = members.map(|(name, value)| (name.to_owned(), value));
        format!("{MARK}{}\n", Value::Object(members.to_vec()))
    }

    /// `text` without such lines, and what the last of them says, if it is of the form `id`.
    pub(super) fn split(text: &str, id: &str) -> (String, Option<Self>) {
        let rest = text.split_inclusive('\n').filter(|line| !line.starts_with(MARK)).collect();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(MARK));
        (rest, lines.next_back().and_then(|line| Self::read(line, id)))
    }

    fn read(line: &str, id: &str) -> Option<Self> {
        let told = json::parse(line).ok().filter(|told| told.get("form") == Some(&id.into()))?;
        let Some(Value::String(tag)) = told.get("revision") else { return None };
        let value = |name| told.get(name).cloned();
        Some(Self { base: value("base")?, now: value("now")?, revision: Revision::of_tag(tag.clone()) })
    }
}
