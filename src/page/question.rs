//! One question as the page draws it.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::domain::condition::{Condition, Names};
use crate::domain::html::escape;
use crate::domain::json::Value;
use crate::domain::language::{Texts, fill};
use crate::domain::question::Question;
use crate::domain::question::control::{Control, Line, LineKind};
use crate::domain::question::labels::Labels;
use crate::page::markdown::{to_html, to_inline_html};

/// Characters up to which a limit is shown: nobody counts to 20,000.
const MAX_SHOWN_LIMIT: usize = 2_000;

pub(super) struct QuestionView<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    /// The description, HTML.
    pub(super) description: Option<String>,
    pub(super) hints: Vec<String>,
    pub(super) is_required: bool,
    /// Whether the title says that an answer is optional.
    pub(super) is_optional: bool,
    pub(super) condition: Option<ConditionView>,
    pub(super) error: Option<&'a str>,
    /// What is stored without an answer, JSON.
    pub(super) default: Option<String>,
    pub(super) control: Control<'a>,
}

/// A condition, for the script and for people.
pub(super) struct ConditionView {
    /// The condition as JSON; `None` if only the server can evaluate it.
    pub(super) data: Option<String>,
    pub(super) text: String,
}

impl ConditionView {
    pub(super) fn new(condition: &Condition, questions: &[Question], texts: &Texts) -> Self {
        let is_live = condition.text_searches().flatten().next().is_none();
        let data = is_live.then(|| serde_json::to_string(condition).unwrap_or_default());
        let condition = condition.describe(texts, &PageNames { questions, texts });
        Self { data, text: fill(texts.answer_only_if, &[("condition", &condition)]) }
    }
}

/// Questions by their titles, and values as the page shows them.
pub(super) struct PageNames<'a> {
    pub(super) questions: &'a [Question],
    pub(super) texts: &'a Texts,
}

impl PageNames<'_> {
    fn question(&self, id: &str) -> Option<&Question> {
        self.questions.iter().find(|question| question.id.as_deref() == Some(id))
    }

    /// Returns what the page shows for a value of the question `id`, if that is not the value itself.
    pub(super) fn label(&self, id: &str, value: &Value) -> Option<&str> {
        match (self.question(id)?.kind.rules().control(), value) {
            (
                Control::One { options, .. } | Control::Several { options, .. } | Control::Ranking(options),
                Value::String(value),
            ) => options.labelled().find(|(option, _)| option == value).map(|(_, label)| label),
            (Control::YesNo(labels), Value::Bool(_)) => {
                labels.of(&value.to_string()).or(self.yes_or_no(value))
            }
            (Control::Consent(_), value) => self.yes_or_no(value),
            _ => None,
        }
    }

    fn yes_or_no(&self, value: &Value) -> Option<&'static str> {
        match value {
            Value::Bool(is_yes) => Some(if *is_yes { self.texts.yes } else { self.texts.no }),
            _ => None,
        }
    }
}

impl Names for PageNames<'_> {
    fn question(&self, id: &str) -> String {
        self.texts.quote(self.question(id).map_or(id, |question| &question.title))
    }

    fn value(&self, id: &str, value: &Value) -> String {
        self.label(id, value).map_or_else(|| value.display_text(), str::to_owned)
    }
}

impl<'a> QuestionView<'a> {
    pub(super) fn new(
        question: &'a Question,
        questions: &[Question],
        error: Option<&'a str>,
        texts: &Texts,
    ) -> Self {
        let control = question.kind.rules().control();
        let is_optional = !question.required && question.required_if.is_none() && question.takes_answer();
        let condition = question.show_if.as_ref();
        Self {
            id: question.id.as_deref().unwrap_or_default(),
            title: &question.title,
            description: question.description.as_deref().map(to_html),
            hints: hints(&control, texts),
            is_required: question.required,
            is_optional,
            condition: condition.map(|condition| ConditionView::new(condition, questions, texts)),
            error,
            default: question.kind.rules().default_answer().map(ToString::to_string),
            control,
        }
    }

    /// Whether anything is said above the control.
    pub(super) fn has_hint(&self) -> bool {
        self.description.is_some() || !self.hints.is_empty() || self.condition.is_some()
    }

    /// Returns the attributes `aria-describedby` and `aria-invalid` of its control, and `required`.
    pub(super) fn state(&self) -> String {
        let invalid = if self.error.is_some() { " aria-invalid=\"true\"" } else { "" };
        let required = if self.is_required { " required" } else { "" };
        format!("{}{invalid}{required}", self.described_by())
    }

    /// Returns the attribute `aria-describedby` of its control or group: hints, error, limit, time zone.
    pub(super) fn described_by(&self) -> String {
        let (id, limit) = (self.id, self.limit().map(|_| "-n"));
        let zone = self.is_datetime().then_some("-z");
        let parts = [self.has_hint().then_some("-h"), self.error.map(|_| "-e"), limit, zone];
        let ids: Vec<_> = parts.into_iter().flatten().map(|part| format!("{id}{part}")).collect();
        if ids.is_empty() { String::new() } else { format!(" aria-describedby=\"{}\"", ids.join(" ")) }
    }

    pub(super) fn is_datetime(&self) -> bool {
        matches!(self.control, Control::Line(Line { kind: LineKind::DateTime, .. }))
    }

    /// Whether the script shows it only with some answers.
    pub(super) fn has_logic(&self) -> bool {
        self.condition.as_ref().is_some_and(|condition| condition.data.is_some())
    }

    /// The maximum number of characters, if it is shown.
    pub(super) fn limit(&self) -> Option<usize> {
        match self.control {
            Control::Lines { max_length, .. } => Some(max_length).filter(|max| *max <= MAX_SHOWN_LIMIT),
            _ => None,
        }
    }

    /// How the script reads the answer.
    pub(super) fn value_type(&self) -> &'static str {
        match &self.control {
            Control::Line(line) if matches!(line.kind, LineKind::Number | LineKind::WholeNumber) => "number",
            Control::Line(Line { kind: LineKind::DateTime, .. }) => "datetime",
            Control::Line(Line { kind: LineKind::Time, .. }) => "time",
            Control::Line(Line { kind: LineKind::Url, .. }) => "url",
            Control::Scale { .. } => "number",
            Control::YesNo(_) | Control::Consent(_) => "boolean",
            Control::Several { .. } | Control::Ranking(_) => "list",
            Control::Matrix { .. } => "matrix",
            Control::Line(_)
            | Control::Lines { .. }
            | Control::One { .. }
            | Control::Hidden { .. }
            | Control::Statement
            | Control::Page => "text",
        }
    }

    /// Whether the labels of a scale are more than its two ends, and so are listed.
    pub(super) fn lists_labels(&self) -> bool {
        let Control::Scale { values, labels, .. } = &self.control else { return false };
        let mut inner = *values.start() + 1..*values.end();
        inner.any(|value| labels.of(&value.to_string()).is_some())
    }
}

/// Returns the attributes of a line's `<input>`.
pub(super) fn line_attributes(line: &Line<'_>) -> String {
    let fixed = match line.kind {
        LineKind::Text => "type=\"text\" dir=\"auto\"",
        LineKind::Email => {
            "type=\"email\" dir=\"ltr\" autocomplete=\"email\" spellcheck=\"false\" autocapitalize=\"none\""
        }
        LineKind::Url => {
            "type=\"url\" dir=\"ltr\" autocomplete=\"url\" spellcheck=\"false\" autocapitalize=\"none\""
        }
        LineKind::Phone => "type=\"tel\" autocomplete=\"tel\" class=\"short\"",
        LineKind::Number => {
            "type=\"text\" dir=\"ltr\" inputmode=\"decimal\" autocomplete=\"off\" class=\"short\""
        }
        LineKind::WholeNumber => {
            "type=\"text\" dir=\"ltr\" inputmode=\"numeric\" autocomplete=\"off\" class=\"short\""
        }
        LineKind::Date => "type=\"date\" class=\"short\"",
        LineKind::Time => "type=\"time\" class=\"short\"",
        LineKind::DateTime => "type=\"datetime-local\" class=\"short\"",
    };
    let has_bounds = matches!(line.kind, LineKind::Date | LineKind::Time);
    let mut attributes = fixed.to_owned();
    for (name, bound) in ["min", "max"].into_iter().zip(line.bounds) {
        if let Some(bound) = bound.filter(|_| has_bounds) {
            attributes += &format!(" {name}=\"{}\"", escape(bound));
        }
    }
    if let Some(placeholder) = line.placeholder {
        attributes += &format!(" placeholder=\"{}\"", escape(placeholder));
    }
    attributes
}

/// Returns what the page itself says about how to answer.
fn hints(control: &Control<'_>, texts: &Texts) -> Vec<String> {
    let hint = match control {
        Control::Several { options, fewest, most, takes_other } => {
            let all = options.len() + usize::from(*takes_other);
            match (*fewest, *most) {
                (0 | 1, most) if most >= all => texts.choose_several.to_owned(),
                (0 | 1, most) => fill(texts.choose_at_most, &[("max", &most)]),
                (fewest, most) if most >= all => fill(texts.choose_at_least, &[("min", &fewest)]),
                (fewest, most) => fill(texts.choose_between, &[("min", &fewest), ("max", &most)]),
            }
        }
        Control::Ranking(_) => texts.rank_hint.to_owned(),
        _ => return Vec::new(),
    };
    vec![hint]
}

/// Fills the one place of a text.
pub(super) fn fill_one(template: &str, name: &str, value: impl Display) -> String {
    fill(template, &[(name, &value)])
}

/// Returns what a star of a rating is called.
pub(super) fn star_label(texts: &Texts, value: &i64, max: &i64, labels: &Labels) -> String {
    fill(texts.stars, &[("number", &scale_label(value, labels)), ("max", max)])
}

/// Returns the labels of the two ends of a scale, if either has one.
pub(super) fn scale_ends<'a>(values: &RangeInclusive<i64>, labels: &'a Labels) -> Option<(&'a str, &'a str)> {
    let [low, high] = [values.start(), values.end()].map(|value| labels.of(&value.to_string()));
    low.or(high).map(|_| (low.unwrap_or_default(), high.unwrap_or_default()))
}

/// Returns what is agreed to, HTML.
pub(super) fn consent_text(text: Option<&str>, texts: &Texts) -> String {
    text.map_or_else(|| escape(texts.agree), to_inline_html)
}

/// Returns what a value of a scale is called for those who do not see where it stands.
pub(super) fn scale_label(value: &i64, labels: &Labels) -> String {
    match labels.of(&value.to_string()) {
        Some(label) => format!("{value} – {label}"),
        None => value.to_string(),
    }
}
