//! Types of integrations with their members, for `forms help integrations`.

use serde::Serialize;

use crate::cli::output::wrap;
use crate::domain::integration::IntegrationType;
use crate::domain::integration::spec::{IntegrationSpec, Member, Need};
use crate::domain::integration::template::FILTERS;
use crate::domain::json;
use crate::domain::json::Value;

#[derive(Debug, Serialize)]
pub(super) struct TypeHelp {
    #[serde(rename = "type")]
    name: &'static str,
    about: &'static str,
    members: Vec<MemberHelp>,
    set_up: &'static str,
    limits: &'static str,
    repeats: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    source: &'static str,
}

#[derive(Debug, Serialize)]
struct MemberHelp {
    name: &'static str,
    about: &'static str,
    required: bool,
    secret: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
}

pub(super) fn all() -> Vec<TypeHelp> {
    IntegrationType::ALL.into_iter().map(TypeHelp::of).collect()
}

impl TypeHelp {
    pub(super) fn of(integration_type: IntegrationType) -> Self {
        let IntegrationSpec { about, members, set_up, limits, repeats, source, .. } =
            *integration_type.spec();
        let members = members.iter().map(MemberHelp::of).collect();
        Self { name: integration_type.name(), about, members, set_up, limits, repeats, source }
    }

    /// The section of the type on the help page.
    pub(super) fn text(&self) -> String {
        let mut text = format!("  {}\n{}", self.name, indented(self.about, 6));
        for member in &self.members {
            let notes = member.notes();
            let notes = if notes.is_empty() { String::new() } else { format!(" ({notes})") };
            text += &indented(&format!("{}: {}{notes}", member.name, member.about.trim_end_matches('.')), 8);
        }
        for (heading, body) in [("Set-up", self.set_up), ("Limits", self.limits), ("Repeats", self.repeats)] {
            text += &indented(&format!("{heading}: {body}"), 6);
        }
        text
    }
}

impl MemberHelp {
    fn of(member: &Member) -> Self {
        let default = match member.need {
            Need::Default(text) => json::parse(text).ok(),
            Need::Required | Need::Optional => None,
        };
        let required = member.need == Need::Required;
        Self { name: member.name, about: member.about, required, secret: member.is_secret(), default }
    }

    /// `required, secret`, `default: 10`, or nothing.
    fn notes(&self) -> String {
        let default = self.default.as_ref().map(|value| format!("default: {}", value.display_text()));
        let notes =
            [self.required.then(|| "required".to_owned()), self.secret.then(|| "secret".to_owned()), default];
        notes.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Variables of templates.
const VARIABLES: [&str; 7] = [
    "form.title",
    "form.id",
    "form.slug",
    "submission.id",
    "submission.submitted_at",
    "answers.q1",
    "event.type",
];

pub(super) fn text() -> String {
    let mut text = "Types of integrations, with the members of each.\n\n".to_owned();
    for help in all() {
        text += &help.text();
        text.push('\n');
    }
    // A no-break space keeps an expression on one line.
    let expressions = VARIABLES.map(|name| format!("{{{{\u{a0}{name}\u{a0}}}}}")).join(", ");
    let templates = format!(
        "Templates are Jinja with {expressions}, {{%\u{a0}if\u{a0}%}}, and \
         {{%\u{a0}for\u{a0}field\u{a0}in\u{a0}fields\u{a0}%}} with field.question, field.type, field.title and \
         field.text. Filters: {}.",
        FILTERS.join(", ")
    );
    text + "\
Every integration has a type, and can have name, enabled, events, when, fields
and retry. Secrets come from --set-secret, or in a file from { env: NAME }.

" + &indented(&templates, 0).replace('\u{a0}', " ")
}

fn indented(text: &str, indent: usize) -> String {
    wrap(text, 80 - indent).lines().map(|line| format!("{:indent$}{line}\n", "")).collect()
}
