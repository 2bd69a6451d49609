//! What a message to people says about an event, before a service's form and limits are applied.

use minijinja::context;
use minijinja::value::Value as TemplateValue;

use super::answers::{ShownAnswer, plain};
use super::event::{EventType, Subject};
use super::kind::Rendering;
use super::template;

/// Maximum characters of a title.
pub(super) const MAX_TITLE: usize = 150;

/// A message to people, as plain text without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// One line.
    pub title: String,
    pub fields: Vec<MessageField>,
    /// How many answers are left out.
    pub more: usize,
    /// What it is about: the form and the ids by which it can be found; one line.
    pub footer: String,
}

/// An answer: the title of its question, one line, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageField {
    pub title: String,
    pub text: String,
}

impl Message {
    /// Returns the message about an event, with at most `max_fields` answers. `title` is a template.
    pub(super) fn new(rendering: Rendering<'_>, title: Option<&str>, max_fields: usize) -> Self {
        let answers = ShownAnswer::all(rendering);
        let more = answers.len().saturating_sub(max_fields);
        let title = title_of(rendering, title, &answers);
        let field = |answer: ShownAnswer| MessageField { title: one_line(&answer.title), text: answer.text };
        let fields = answers.into_iter().take(max_fields).map(field).collect();
        Self { title, fields, more, footer: footer(rendering) }
    }

    /// `… (3 more answers)`, if answers are left out.
    fn note(&self) -> Option<String> {
        match self.more {
            0 => None,
            1 => Some("… (1 more answer)".to_owned()),
            more => Some(format!("… ({more} more answers)")),
        }
    }

    /// The last lines: how many answers are left out, and what it is about.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.note().into_iter().chain([self.footer.clone()])
    }

    /// Returns what `build` makes of the message, with so few answers that `fits` is satisfied.
    pub fn fit<T>(&self, build: impl Fn(&Self) -> T, fits: impl Fn(&T) -> bool) -> T {
        let mut message = self.clone();
        let mut built = build(&message);
        while !fits(&built) && message.fields.pop().is_some() {
            message.more += 1;
            built = build(&message);
        }
        built
    }
}

/// Renders the template of a title. One that fails is replaced by the default title: the message arrives.
fn title_of(rendering: Rendering<'_>, template: Option<&str>, answers: &[ShownAnswer]) -> String {
    let rendered = template.map(|source| template::render(source, &context_of(rendering, answers)));
    let own = rendered.and_then(Result::ok).map(|title| one_line(&title)).filter(|title| !title.is_empty());
    let title = own.unwrap_or_else(|| default_title(rendering));
    title.chars().take(MAX_TITLE).collect()
}

/// What an event is called if its author gives no title.
pub(super) fn default_title(rendering: Rendering<'_>) -> String {
    let form = one_line(&rendering.form.title);
    match (rendering.event.event_type, &rendering.event.subject) {
        (EventType::SubmissionCompleted, _) => format!("New response: {form}"),
        (EventType::SubmissionUpdated, _) => format!("Response changed: {form}"),
        (EventType::SubmissionDeleted, _) => format!("Response deleted: {form}"),
        (EventType::FormPublished, _) => format!("Published: {form}"),
        (EventType::FormUnpublished, _) => format!("No longer published: {form}"),
        (EventType::FormDeleted, _) => format!("Form deleted: {form}"),
        (EventType::IntegrationDisabled, Subject::Integration { name, reason, .. }) => {
            one_line(&format!("Integration {name} of {form} is paused: {reason}"))
        }
        (EventType::IntegrationDisabled, _) => format!("An integration is paused: {form}"),
        (EventType::IntegrationTest, _) => format!("Test: {form}"),
    }
}

pub(super) fn footer(rendering: Rendering<'_>) -> String {
    let Rendering { event, form, .. } = rendering;
    let id = event.submission().map_or_else(|| form.id.to_string(), |id| id.to_string());
    format!("{} · {id} · {}", one_line(&form.title).chars().take(MAX_TITLE).collect::<String>(), event.at)
}

/// What templates may use.
pub(super) fn context_of(rendering: Rendering<'_>, shown: &[ShownAnswer]) -> TemplateValue {
    let Rendering { event, form, .. } = rendering;
    let answers = shown.iter().map(|answer| (answer.question.clone(), answer.template_value()));
    let answers = TemplateValue::from_pairs(answers);
    let field = |answer: &ShownAnswer| {
        let ShownAnswer { question, type_name, title, text, .. } = answer;
        context! { question, type => *type_name, title, text }
    };
    let fields: Vec<_> = shown.iter().map(field).collect();
    let submitted_at = match &event.subject {
        Subject::Submission(submission) => Some(submission.submitted_at().to_string()),
        Subject::Form | Subject::DeletedSubmission(_) | Subject::Integration { .. } => None,
    };
    context! {
        event => context! { type => event.event_type.name(), at => event.at.to_string() },
        form => context! { id => form.id.to_string(), title => plain(&form.title), slug => form.slug.as_deref() },
        submission => context! { id => event.submission().map(|id| id.to_string()), submitted_at },
        answers,
        fields,
    }
}

/// Returns `text` in one line.
pub(super) fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
