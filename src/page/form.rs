//! The page of a form.

use std::collections::HashMap;

use askama::Template;

use crate::domain::form::settings::{Confirmation, Layout};
use crate::domain::form::{Form, Version};
use crate::domain::language::{Texts, direction, fill};
use crate::domain::question::control::Control;
use crate::domain::validation::violation::Violation;
use crate::page::Html;
use crate::page::answers::{other_field, row_field};
use crate::page::assets::{FORM_SCRIPT, LOGIC_SCRIPT, STYLE, STYLE_HASH, style_hash, theme_style};
use crate::page::fields::Fields;
use crate::page::markdown::to_html;
use crate::page::question::{
    QuestionView, consent_text, fill_one, line_attributes, scale_ends, scale_label, star_label,
};

/// What the page says at its top, besides errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// There is no token: the answers come from another site, which is not listed.
    FromElsewhere,
    /// The token is too old, or of other questions.
    Expired,
    /// The page was sent before, with other answers.
    AlreadySent,
    /// The answers would be accepted, if this was not a preview.
    PreviewAccepted,
    /// Too many answers came from the visitor's network; seconds to wait.
    TooMany(u64),
    /// The server could not store the answers.
    TryAgain,
}

/// What is needed to draw the page of a form.
pub struct FormPage<'a> {
    pub form: &'a Form,
    pub version: &'a Version,
    /// What the fields have in them.
    pub fields: &'a Fields,
    pub violations: &'a [Violation],
    pub notice: Option<Notice>,
    /// The signed token that is sent back with the answers.
    pub token: &'a str,
    /// Where the answers are sent: the address of this page, relative to it.
    pub action: &'a str,
    /// The page of another site that visitors are sent to afterwards.
    pub next: Option<&'a str>,
    pub is_preview: bool,
    pub is_embedded: bool,
}

/// A page of questions, or those before the first one.
struct Section<'a> {
    /// The question of type `page` that begins it.
    page: Option<QuestionView<'a>>,
    questions: Vec<QuestionView<'a>>,
}

#[derive(Template)]
#[template(path = "form.html", config = "src/page/askama.toml")]
struct FormTemplate<'a> {
    page: &'a FormPage<'a>,
    texts: &'static Texts,
    lang: &'a str,
    dir: &'static str,
    style: &'static str,
    theme_style: Option<String>,
    script: &'static str,
    logo: Option<&'a str>,
    description: Option<String>,
    /// Anchors and messages, in the order of the questions.
    errors: Vec<(&'a str, String)>,
    notice: Option<String>,
    sections: Vec<Section<'a>>,
    fields: &'a Fields,
    is_stepped: bool,
    has_logic: bool,
    /// Whether there are dates with times, which are in the visitor's time zone.
    has_zones: bool,
    /// Whether visitors are sent to another site afterwards.
    is_redirected: bool,
    decimal: &'static str,
}

impl FormPage<'_> {
    pub fn render(&self) -> Html {
        let language = self.form.settings.language();
        let texts = language.texts();
        let errors = self.errors();
        let theme = self.form.settings.theme.as_ref();
        let theme_style = theme_style(theme);
        let style_hashes = [Some(STYLE_HASH.clone()), theme_style.as_deref().map(style_hash)];
        let sections = self.sections(&errors, texts);
        let is_stepped = self.form.settings.layout() == Layout::Steps;
        let views = || sections.iter().flat_map(|section| section.page.iter().chain(&section.questions));
        let has_logic = is_stepped || views().any(QuestionView::has_logic);
        let has_zones = views().any(QuestionView::is_datetime);
        let confirmation = self.form.settings.confirmation.as_ref();
        let is_redirected = matches!(confirmation, Some(Confirmation::RedirectUrl(_)));
        let template = FormTemplate {
            page: self,
            texts,
            lang: self.form.settings.language.as_deref().unwrap_or(language.name()),
            dir: direction(self.form.settings.language.as_deref().unwrap_or_default()),
            style: STYLE,
            script: if has_logic { &LOGIC_SCRIPT.name } else { &FORM_SCRIPT.name },
            logo: theme.and_then(|theme| theme.logo.as_deref()),
            description: self.form.description.as_deref().map(to_html),
            notice: self.notice.as_ref().map(|notice| notice.text(texts)),
            sections,
            errors: self.summary(&errors),
            theme_style,
            fields: self.fields,
            is_stepped,
            has_logic,
            has_zones,
            is_redirected,
            decimal: if language.decimal_comma() { "," } else { "." },
        };
        let text = template.render().expect("a template can be written to a string");
        Html { text, style_hashes: style_hashes.into_iter().flatten().collect() }
    }

    /// Returns the first error of each question.
    fn errors(&self) -> HashMap<&str, &str> {
        let errors = self.violations.iter().rev();
        errors.filter_map(|error| Some((error.question.as_deref()?, error.message.as_str()))).collect()
    }

    /// Returns the errors in the order of the questions, each with the title, then those of no question.
    fn summary<'a>(&'a self, errors: &HashMap<&'a str, &'a str>) -> Vec<(&'a str, String)> {
        let of_questions = self.version.questions.iter().filter_map(|question| {
            let id = question.id.as_deref()?;
            let (message, title) = (errors.get(id)?, &question.title);
            let names_it = message.contains(title);
            Some((id, if names_it { (*message).to_owned() } else { format!("{title}: {message}") }))
        });
        let others = self.violations.iter().filter(|error| error.question.is_none());
        of_questions.chain(others.map(|error| ("", error.message.clone()))).collect()
    }

    fn sections<'a>(&'a self, errors: &HashMap<&'a str, &'a str>, texts: &Texts) -> Vec<Section<'a>> {
        let questions = &self.version.questions;
        let mut sections = vec![Section { page: None, questions: Vec::new() }];
        for question in questions {
            let error = question.id.as_deref().and_then(|id| errors.get(id).copied());
            let view = QuestionView::new(question, questions, error, texts);
            if matches!(view.control, Control::Page) {
                sections.push(Section { page: Some(view), questions: Vec::new() });
            } else if let Some(section) = sections.last_mut() {
                section.questions.push(view);
            }
        }
        sections.retain(|section| section.page.is_some() || !section.questions.is_empty());
        sections
    }
}

impl Notice {
    fn text(&self, texts: &Texts) -> String {
        match self {
            Self::FromElsewhere => texts.send_from_here.to_owned(),
            Self::Expired => texts.page_expired.to_owned(),
            Self::AlreadySent => texts.already_sent.to_owned(),
            Self::PreviewAccepted => texts.preview_accepted.to_owned(),
            Self::TooMany(seconds) => {
                let wait = fill(texts.too_many_text, &[("seconds", seconds)]);
                format!("{}. {wait}", texts.too_many_title)
            }
            Self::TryAgain => texts.try_again_text.to_owned(),
        }
    }
}
