//! What a message to people says about an event, before a service's form and limits are applied.

use minijinja::context;
use minijinja::value::Value as TemplateValue;
use time::OffsetDateTime;

use super::answers::{ShownAnswer, plain};
use super::event::{EventType, Subject};
use super::kind::Rendering;
use super::template;
use crate::clock::Timestamp;

/// Shortest limit of an answer; if even that is too much for the message, the last answers are left out.
const MIN_ANSWER: usize = 100;

/// Maximum characters of what a title says about the respondent.
const MAX_RESPONDENT: usize = 60;

/// Maximum characters of a form's title in a title, so that the respondent is in it too.
const MAX_FORM: usize = 80;

/// Maximum characters of a title.
pub(super) const MAX_TITLE: usize = 150;

/// A message to people, as plain text without control characters.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// One line.
    pub title: String,
    /// The answers; the title of each is one line.
    pub fields: Vec<ShownAnswer>,
    /// How many answers are left out.
    more: usize,
    /// The form with the time, and the command that shows more (or an id); one line each.
    footer: [String; 2],
}

impl Message {
    /// Returns the message about an event, with at most `max_fields` answers. `title` is a template.
    pub(super) fn new(rendering: Rendering<'_>, title: Option<&str>, max_fields: usize) -> Self {
        let answers = ShownAnswer::all(rendering);
        let more = answers.len().saturating_sub(max_fields);
        let title = title_of(rendering, title, &answers);
        let mut fields = answers;
        fields.truncate(max_fields);
        fields.iter_mut().for_each(|field| field.title = one_line(&field.title));
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

    /// The last lines: how many answers are left out, and the footer.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.note().into_iter().chain(self.footer.clone())
    }

    /// Returns the result of `build` with the largest limit per answer, at most `max` units, for which it still `fits`.
    /// Shorter answers stay whole. If [`MIN_ANSWER`] is too much, the last answers are left out.
    pub(super) fn fit<T>(
        &self,
        max: usize,
        build: impl Fn(&Self, usize) -> T,
        fits: impl Fn(&T) -> bool,
    ) -> T {
        let mut message = self.clone();
        let mut best = build(&message, MIN_ANSWER);
        while !fits(&best) && message.fields.pop().is_some() {
            message.more += 1;
            best = build(&message, MIN_ANSWER);
        }
        let (mut share, mut too_much) = (MIN_ANSWER, max + 1);
        while share + 1 < too_much {
            let middle = share.midpoint(too_much);
            let built = build(&message, middle);
            if fits(&built) {
                (share, best) = (middle, built);
            } else {
                too_much = middle;
            }
        }
        best
    }
}

/// Renders the template of a title. One that fails is replaced by the default title: the message arrives.
fn title_of(rendering: Rendering<'_>, template: Option<&str>, answers: &[ShownAnswer]) -> String {
    let rendered = template.map(|source| template::render(source, &context_of(rendering, answers)));
    let own = rendered.and_then(Result::ok).map(|title| one_line(&title)).filter(|title| !title.is_empty());
    let title = own.unwrap_or_else(|| default_title(rendering, answers));
    title.chars().take(MAX_TITLE).collect()
}

/// Default title of a message: `New response: Visit – ann@example.com`. A respondent without an address
/// is named by the first answer.
pub(super) fn default_title(rendering: Rendering<'_>, answers: &[ShownAnswer]) -> String {
    let title = event_title(rendering);
    let respondent = answers.iter().find(|answer| answer.type_name == "email").or(answers.first());
    let respondent = respondent.map(|answer| one_line(&answer.text)).filter(|text| !text.is_empty());
    match respondent {
        Some(text) => format!("{title} – {}", text.chars().take(MAX_RESPONDENT).collect::<String>()),
        None => title,
    }
}

fn event_title(rendering: Rendering<'_>) -> String {
    let form = one_line(&rendering.form.title).chars().take(MAX_FORM).collect::<String>();
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

/// The form and the time, and what shows the subject of the event: a command, or an id.
pub(super) fn footer(rendering: Rendering<'_>) -> [String; 2] {
    let Rendering { event, form, .. } = rendering;
    let title: String = one_line(&form.title).chars().take(MAX_TITLE).collect();
    let name = form.slug.clone().unwrap_or_else(|| form.id.to_string());
    let reference = match &event.subject {
        Subject::Submission(submission) => format!("forms responses show {name} {}", submission.id),
        Subject::DeletedSubmission(id) => id.to_string(),
        Subject::Form | Subject::Integration { .. } => format!("forms show {name}"),
    };
    [format!("{title} · {}", short_time(event.at)), reference]
}

/// Returns `23 Nov 2026, 14:05 UTC`.
fn short_time(at: Timestamp) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(at.millis().div_euclid(1_000));
    let Ok(moment) = moment else { return at.to_string() };
    let month: String = moment.month().to_string().chars().take(3).collect();
    let (day, year, hour, minute) = (moment.day(), moment.year(), moment.hour(), moment.minute());
    format!("{day} {month} {year}, {hour:02}:{minute:02} UTC")
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

pub(super) fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
