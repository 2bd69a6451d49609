//! The pages that only say something: thank you, closed, not found, and the server's own.

use askama::Template;

use crate::domain::form::Form;
use crate::domain::form::Version;
use crate::domain::form::admission::AcceptingReason;
use crate::domain::form::settings::Confirmation as FormConfirmation;
use crate::domain::html::escape;
use crate::domain::json::Value;
use crate::domain::language::{Language, Texts, direction, fill};
use crate::page::Html;
use crate::page::answers::to_answers;
use crate::page::assets::{FORM_SCRIPT, STYLE, STYLE_HASH, style_hash, theme_style};
use crate::page::fields::Fields;
use crate::page::markdown::to_html;
use crate::page::question::PageNames;

/// What is shown after the answers were sent.
pub struct Confirmation<'a> {
    pub form: &'a Form,
    /// The id of the submission, if it is known.
    pub reference: Option<&'a str>,
    /// The address of the form, relative to this page.
    pub again: &'a str,
}

/// What a page says instead of a form.
pub struct Message<'a> {
    /// The form, if the visitor may know of it.
    pub form: Option<&'a Form>,
    title: String,
    /// HTML.
    text: String,
    /// The answers that were not taken: the titles of their questions, and what was answered.
    answers: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "message.html", config = "src/page/askama.toml")]
struct MessageTemplate<'a> {
    texts: &'static Texts,
    lang: &'a str,
    dir: &'static str,
    style: &'static str,
    theme_style: Option<String>,
    /// The id of the form whose answers were sent.
    sent: Option<String>,
    /// The path to the scripts.
    scripts: &'static str,
    script: &'static str,
    logo: Option<&'a str>,
    form_title: Option<&'a str>,
    title: &'a str,
    text: &'a str,
    reference: Option<&'a str>,
    again: Option<&'a str>,
    answers: &'a [(String, String)],
}

impl Confirmation<'_> {
    pub fn render(&self) -> Html {
        let settings = &self.form.settings;
        let texts = settings.language().texts();
        let text = match &settings.confirmation {
            Some(FormConfirmation::Message(message)) => to_html(message),
            Some(FormConfirmation::RedirectUrl(_)) | None => paragraph(texts.thanks_text),
        };
        // An author's own message usually begins with thanks.
        let title = match &settings.confirmation {
            Some(FormConfirmation::Message(_)) => texts.thanks_text.trim_end_matches(['.', '。']),
            Some(FormConfirmation::RedirectUrl(_)) | None => texts.thanks_title,
        };
        let template = MessageTemplate {
            sent: Some(self.form.id.to_string()),
            scripts: "../../_/",
            title,
            text: &text,
            reference: self.reference,
            again: Some(self.again),
            ..MessageTemplate::of(Some(self.form))
        };
        template.html()
    }
}

impl<'a> Message<'a> {
    /// There is no form at this address, or none that the visitor may see.
    pub fn not_found() -> Self {
        let texts = Language::English.texts();
        Self::new(None, texts.not_found_title, texts.not_found_text)
    }

    /// The form does not take answers, for this `reason`. What the visitor has answered is shown.
    pub fn not_accepting(
        form: &'a Form,
        reason: AcceptingReason,
        version: &Version,
        fields: &Fields,
    ) -> Self {
        let texts = form.settings.language().texts();
        let opens_at = form.settings.opens_at.map(|time| {
            let time = time.to_string();
            format!("{} {} UTC", &time[..10], &time[11..16])
        });
        let opens = fill(texts.not_open_text, &[("time", &opens_at.unwrap_or_default())]);
        let (title, text) = match reason {
            AcceptingReason::NotOpenYet => (texts.not_open_title, opens.as_str()),
            AcceptingReason::Full => (texts.full_title, texts.full_text),
            AcceptingReason::Draft | AcceptingReason::Closed | AcceptingReason::Expired => {
                (texts.closed_title, texts.closed_text)
            }
        };
        let mut message = Self::new(Some(form), title, text);
        if let Some(own) = reason.message(&form.settings) {
            message.text = to_html(&own);
        }
        message.answers = given_answers(version, fields, form.settings.language());
        if !message.answers.is_empty() {
            message.text += &paragraph(texts.not_sent);
        }
        message
    }

    /// The server could not show the page.
    pub fn failure(text: &str) -> Self {
        Self::new(None, Language::English.texts().problem_heading, text)
    }

    fn new(form: Option<&'a Form>, title: &str, text: &str) -> Self {
        Self { form, title: title.to_owned(), text: paragraph(text), answers: Vec::new() }
    }

    pub fn render(&self) -> Html {
        let template = MessageTemplate {
            title: &self.title,
            text: &self.text,
            answers: &self.answers,
            ..MessageTemplate::of(self.form)
        };
        template.html()
    }
}

impl<'a> MessageTemplate<'a> {
    fn of(form: Option<&'a Form>) -> Self {
        let settings = form.map(|form| &form.settings);
        let tag = settings.and_then(|settings| settings.language.as_deref());
        let language = Language::of_tag(tag);
        let theme = settings.and_then(|settings| settings.theme.as_ref());
        Self {
            texts: language.texts(),
            lang: tag.unwrap_or(language.name()),
            dir: direction(tag.unwrap_or_default()),
            style: STYLE,
            theme_style: theme_style(theme),
            sent: None,
            scripts: "../_/",
            script: &FORM_SCRIPT.name,
            logo: theme.and_then(|theme| theme.logo.as_deref()),
            form_title: form.map(|form| form.title.as_str()),
            title: "",
            text: "",
            reference: None,
            again: None,
            answers: &[],
        }
    }

    fn html(&self) -> Html {
        let hashes = [Some(STYLE_HASH.clone()), self.theme_style.as_deref().map(style_hash)];
        let text = self.render().expect("a template can be written to a string");
        Html { text, style_hashes: hashes.into_iter().flatten().collect() }
    }
}

/// The page of the server itself.
pub fn home() -> Html {
    let text = "<p>This server builds forms and collects answers. Each form has an address of its own: to answer one, \
                follow the link that was sent to you.</p>\
                <p>Programs find the API at <a href=\"api/v1/openapi.json\">api/v1/openapi.json</a>.</p>";
    let template = MessageTemplate { title: "Form server", text, scripts: "_/", ..MessageTemplate::of(None) };
    template.html()
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", escape(text))
}

/// Returns the titles of questions with the answers in `fields`, as the page shows them.
fn given_answers(version: &Version, fields: &Fields, language: Language) -> Vec<(String, String)> {
    let questions = &version.questions;
    let names = PageNames { questions, texts: language.texts() };
    let answers = to_answers(version, fields, language).into_iter();
    let given = answers.filter_map(|(id, answer)| {
        let question = questions.iter().find(|question| question.id.as_ref() == Some(&id))?;
        let is_shown = question.kind.rules().is_shown();
        is_shown.then(|| (question.title.clone(), answer_text(&names, &id, &answer)))
    });
    given.collect()
}

/// Writes an answer for people: options by their labels, the rows of a matrix each on a line.
fn answer_text(names: &PageNames<'_>, id: &str, answer: &Value) -> String {
    let join = |texts: Vec<String>, separator| texts.join(separator);
    match answer {
        Value::Array(items) => join(items.iter().map(|item| answer_text(names, id, item)).collect(), ", "),
        Value::Object(members) => match members.as_slice() {
            [(name, Value::String(text))] if name == "other" => text.clone(),
            rows => {
                let row = |(row, cell): &(String, Value)| format!("{row}: {}", answer_text(names, id, cell));
                join(rows.iter().map(row).collect(), "\n")
            }
        },
        Value::String(text) => names.label(id, answer).unwrap_or(text).to_owned(),
        answer => names.label(id, answer).map_or_else(|| answer.to_string(), str::to_owned),
    }
}
