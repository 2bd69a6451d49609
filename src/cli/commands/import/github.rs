//! Issue forms of GitHub.

use crate::cli::commands::import::draft::{Draft, Members, Question, Text, place, text_of};
use crate::domain::json::Value;

pub(super) fn convert(form: &Value, name: &str) -> Draft {
    let form = Members::new(form, "");
    let mut draft = Draft::new(form.text("name"), name, "");
    draft.set(&["description"], form.text("description"));
    for (field, number) in form.list("body").iter().zip(1..) {
        add(&mut draft, field, number);
    }
    draft.lose_unread("the form", &[&form]);
    draft
}

fn add(draft: &mut Draft, field: &Value, number: usize) {
    let field = Members::new(field, "id");
    let attributes = Members::new(field.get("attributes"), "");
    let validations = Members::new(field.get("validations"), "");
    let (kind, id) = (field.text("type").unwrap_or_default(), field.text("id").unwrap_or_default());
    let title = attributes.text("label");
    let text = if kind == "markdown" { attributes.text("value") } else { None };
    let place = place("field", number, title.as_deref().or(text.as_deref()), &kind);
    let (own, options) = match kind.as_str() {
        "markdown" => ("statement", None),
        "checkboxes" => return add_checkboxes(draft, &place, &id, title, &attributes),
        "input" => ("short_text", None),
        "textarea" => ("long_text", None),
        "dropdown" if attributes.flag("multiple") => ("multiple_choice", Some("options")),
        "dropdown" => ("single_choice", Some("options")),
        _ => return draft.lose(&place, "not supported, left out"),
    };
    let mut question = Question::new(&place, own, title);
    if own == "statement" {
        question.set_text(&text.unwrap_or_default());
    } else if let Some(name) = options {
        let values = attributes.list(name).iter().filter_map(text_of);
        question.set_options(name, values.map(|value| (value, None)));
        question.set("display", (own == "single_choice").then_some("dropdown"));
    } else if attributes.get("placeholder").as_str().is_none() && attributes.text("value").is_some() {
        question.copy(&attributes, "value=placeholder");
        draft.lose(&place, "`value` became the placeholder: a field begins empty");
    }
    question.copy(&attributes, "description placeholder");
    question.copy(&validations, "required");
    draft.push(question, &id);
    draft.lose_unread(&place, &[&field, &attributes, &validations]);
}

/// Adds boxes to tick: one question, or consents if some must be ticked.
fn add_checkboxes(draft: &mut Draft, place: &str, id: &str, title: Text, attributes: &Members<'_>) {
    let boxes: Vec<_> = attributes.list("options").iter().map(|option| Members::new(option, "")).collect();
    let has_consent = boxes.iter().any(|option| option.flag("required"));
    let mut question = Question::new(place, if has_consent { "statement" } else { "multiple_choice" }, title);
    question.copy(attributes, "description");
    if !has_consent {
        let labels = boxes.iter().filter_map(|option| option.text("label"));
        question.set_options("options", labels.map(|label| (label, None)));
    }
    draft.push(question, if has_consent { "" } else { id });
    for option in boxes.iter().filter(|_| has_consent) {
        let mut consent = Question::new(place, "consent", option.text("label"));
        consent.copy(option, "required");
        draft.push(consent, if boxes.len() == 1 { id } else { "" });
        draft.lose_unread(place, &[option]);
    }
    draft.lose_unread(place, &[attributes]);
}
