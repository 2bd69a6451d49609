//! Forms of Typeform, as its API returns them. Their jumps are left out.

use crate::cli::commands::import::draft::{Draft, Members, Question, place, text_of};
use crate::cli::commands::import::logic::Logic;
use crate::domain::json::Value;

/// Identifiers, and what only concerns looks.
const LOOKS: &str = "id ref type hide_marks vertical_alignment separator structure shape button_text show_button \
                     share_icons button_mode layout";

struct Import {
    draft: Draft,
    count: usize,
}

pub(super) fn convert(form: &Value, name: &str) -> Draft {
    let form = Members::new(form, "id type theme workspace _links self settings");
    let draft = Draft::new(form.text("title"), name, "{{");
    let mut import = Import { draft, count: 0 };
    let language = form.get("settings").get("language").and_then(text_of);
    import.draft.set(&["settings", "language"], language);
    for name in form.list("hidden").iter().filter_map(Value::as_str) {
        let mut hidden = Question::new(&format!("hidden `{name}`"), "hidden", None);
        hidden.set("from_url", Some(name));
        import.draft.push(hidden, name);
    }
    for screen in form.list("welcome_screens") {
        import.add_question("the welcome screen", "statement", &Members::new(screen, LOOKS), "");
    }
    for (screen, number) in form.list("thankyou_screens").iter().zip(1..) {
        let ending = Members::new(screen, LOOKS);
        let about = Members::new(ending.get("properties"), LOOKS);
        let text: Vec<_> = [ending.text("title"), about.text("description")].into_iter().flatten().collect();
        if number == 1 {
            import.draft.set(&["settings", "confirmation", "message"], Some(text.join("\n\n")));
            import.draft.lose_unread("ending 1", &[&ending, &about]);
        } else {
            import.draft.lose(&format!("ending {number}"), "left out: a form has one ending");
        }
    }
    import.add_fields(form.list("fields"));
    for entry in form.list("logic") {
        let name = entry.get("ref").and_then(text_of).unwrap_or_default();
        import.draft.lose(&format!("logic of `{name}`"), "left out: jumps are not supported");
    }
    import.draft.lose_unread("the form", &[&form]);
    import.draft
}

impl Import {
    fn add_fields(&mut self, fields: &[Value]) {
        for value in fields {
            let field = Members::new(value, LOOKS);
            let text = |name| value.get(name).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (text("type"), text("ref"));
            if kind == "thankyou_screen" {
                continue;
            }
            self.count += 1;
            let place = place("question", self.count, field.text("title").as_deref(), kind);
            let properties = Members::new(field.get("properties"), LOOKS);
            let nested = properties.list("fields");
            if nested.is_empty() || kind == "matrix" {
                self.add_question(&place, kind, &field, name);
                continue;
            }
            let about = properties.text("description");
            self.draft.begin_group(&place, field.text("title"), about, Logic::Always);
            self.draft.lose_unread(&place, &[&field, &properties]);
            self.add_fields(nested);
            self.draft.end_group();
        }
    }

    fn add_question(&mut self, place: &str, kind: &str, field: &Members<'_>, name: &str) {
        let properties = Members::new(field.get("properties"), LOOKS);
        let validations = Members::new(field.get("validations"), "");
        let is_multiple = properties.flag("allow_multiple_selection");
        let own = match kind {
            "short_text" | "long_text" | "email" | "number" => kind,
            "date" | "statement" | "ranking" | "rating" => kind,
            "yes_no" => "boolean",
            "legal" => "consent",
            "website" => "url",
            "phone_number" => "phone",
            "nps" | "opinion_scale" => "opinion_scale",
            "multiple_choice" | "picture_choice" if is_multiple => "multiple_choice",
            "dropdown" | "multiple_choice" | "picture_choice" => "single_choice",
            _ => return self.draft.lose(place, "not supported, left out"),
        };
        let mut question = Question::new(place, own, field.text("title"));
        question.set("display", (kind == "dropdown").then_some("dropdown"));
        question.set("nps", (kind == "nps").then_some(true));
        if kind == "opinion_scale" {
            let low = i64::from(properties.flag("start_at_one"));
            let high = properties.integer("steps").unwrap_or(11).saturating_add(low - 1);
            let labels = Members::new(properties.get("labels"), "");
            question = Question::scale(place, field.text("title"), [low, high], [None, None]);
            let values = [low, low.midpoint(high.saturating_add(1)), high].map(|value| value.to_string());
            let texts = ["left", "center", "right"].map(|name| labels.text(name));
            question.set_labels(values.into_iter().zip(texts));
        }
        question.copy(&properties, if own == "rating" { "steps=max description" } else { "description" });
        question.copy(&properties, "default_country_code=default_country allow_other_choice=allow_other");
        question.copy(&validations, "required min_value=min max_value=max max_length");
        question.copy(&validations, "min_selection=min_selected max_selection=max_selected");
        let choices = properties.list("choices");
        if !choices.is_empty() {
            let label = |choice: &Value| choice.get("label").and_then(text_of);
            question.set_options("options", choices.iter().filter_map(label).map(|text| (text, None)));
        }
        self.draft.push(question, name);
        self.draft.lose_unread(place, &[field, &properties, &validations]);
    }
}
