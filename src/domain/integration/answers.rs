//! Answers as people read them: with the labels of options, without control characters.

use minijinja::value::Value as TemplateValue;
use url::Url;

use super::event::Subject;
use super::kind::Rendering;
use super::row::answer_text;
use super::smtp::is_unsafe_in_header;
use crate::domain::json::{Value, parse_object};
use crate::domain::question::is_empty;

/// The scheme of an address as a URL.
pub(super) const MAILTO: &str = "mailto:";

/// An answer with its question.
#[derive(Debug, Clone)]
pub(super) struct ShownAnswer {
    pub question: String,
    pub type_name: &'static str,
    pub title: String,
    /// For people: of several lines, if the respondent wrote so.
    pub text: String,
    value: Value,
}

impl ShownAnswer {
    /// Returns the answers that may leave the server, in the order of the form, without empty ones.
    pub(super) fn all(rendering: Rendering<'_>) -> Vec<Self> {
        let Subject::Submission(submission) = &rendering.event.subject else { return Vec::new() };
        let Some(version) = rendering.version else { return Vec::new() };
        let answers = parse_object(&submission.answers).unwrap_or_default();
        let shown = version.questions.iter().filter_map(|question| {
            let id = question.id.as_deref()?;
            let is_sent = rendering.selection.is_none_or(|selection| selection.includes(id));
            let (_, value, _) = answers.iter().find(|(key, ..)| is_sent && key == id)?;
            (!is_empty(value)).then(|| Self {
                question: id.to_owned(),
                type_name: question.kind.name(),
                title: plain(&question.title),
                text: plain(&answer_text(question, value)),
                value: value.clone(),
            })
        });
        shown.collect()
    }

    /// Where a `url` or `email` answer leads to, in characters that mean nothing in any markup but `&`.
    pub(super) fn link(&self) -> Option<String> {
        let text = match self.type_name {
            "url" => self.text.clone(),
            "email" => format!("{MAILTO}{}", self.text),
            _ => return None,
        };
        let link =
            Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "https" | "http" | "mailto"))?;
        let is_safe = |found: char| {
            found.is_ascii_alphanumeric()
                || matches!(
                    found,
                    ':' | '/' | '?' | '&' | '=' | '@' | '.' | '-' | '_' | '~' | '%' | '+' | '#' | ',' | ';'
                )
        };
        Some(String::from(link)).filter(|link| link.chars().all(is_safe))
    }

    /// The link as it is shown: a URL, or an address.
    pub(super) fn shown_link(&self) -> Option<String> {
        self.link().map(|link| link.strip_prefix(MAILTO).unwrap_or(&link).to_owned())
    }

    /// The answer for templates, which can compare numbers and truth values.
    pub(super) fn template_value(&self) -> TemplateValue {
        match &self.value {
            Value::Bool(flag) => (*flag).into(),
            Value::Number(number) => {
                number.integer().map_or_else(|| number.value().into(), TemplateValue::from)
            }
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => self.text.as_str().into(),
        }
    }
}

/// Returns `text` without control characters other than line feeds and tabs, and without those that change the direction of
/// what follows (Unicode's bidirectional controls), with which a text can show something else than it says.
pub(super) fn plain(text: &str) -> String {
    let unified = text.replace("\r\n", "\n").replace(['\r', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    let is_plain = |found: &char| matches!(found, '\n' | '\t') || !is_unsafe_in_header(*found);
    unified.chars().filter(is_plain).collect()
}
