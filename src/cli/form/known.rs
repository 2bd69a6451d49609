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

#[cfg(test)]
mod tests {
    use super::Known;
    use crate::client::Revision;
    use crate::domain::json::parse;

    fn known(title: &str) -> Known {
        let form =
            |title: &str| parse(&format!(r#"{{"title":"{title}","questions":[{{"max":1.10}}]}}"#)).unwrap();
        Known { base: form("Mine"), now: form(title), revision: Revision::of_tag(format!("\"{title}\"")) }
    }

    #[test]
    fn a_text_says_what_it_began_with() {
        let (old, new) = (known("Old").line("frm_a"), known("New\u{2028}").line("frm_a"));
        let (text, found) = Known::split(&format!("title: Mine\n{old}# end\n{new}"), "frm_a");
        let found = found.unwrap();
        assert_eq!(text, "title: Mine\n# end\n");
        assert_eq!((&found.line("frm_a"), found.revision.tag()), (&new, "\"New\u{2028}\""));
    }

    #[test]
    fn of_another_form_it_says_nothing() {
        for line in [known("A").line("frm_b"), known("A").line("frm_a").replace('{', "")] {
            let (text, found) = Known::split(&format!("title: A\n{line}"), "frm_a");
            assert!(found.is_none() && text == "title: A\n", "{line}");
        }
    }
}
