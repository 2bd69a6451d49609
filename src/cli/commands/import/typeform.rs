//! Forms of Typeform, as its API returns them. There, answers jump to other fields; here, each question has a condition.

use std::collections::HashMap;

use crate::cli::commands::import::draft::{Draft, Members, Question, place, text_of};
use crate::cli::commands::import::expression::typed;
use crate::cli::commands::import::logic::Logic;
use crate::domain::json::Value;

/// Identifiers, and what only concerns looks.
const LOOKS: &str = "id ref type hide_marks vertical_alignment separator structure shape button_text show_button \
                     share_icons button_mode layout";

/// Where a jump to an end goes.
const END: usize = usize::MAX;

struct Import<'a> {
    draft: Draft,
    /// The index of the question of each field; if the field was left out, of the next one, and `false`.
    fields: HashMap<&'a str, (usize, bool)>,
    /// The labels of choices by reference.
    choices: HashMap<&'a str, &'a str>,
    count: usize,
}

pub(super) fn convert(form: &Value, name: &str) -> Draft {
    let form = Members::new(form, "id type theme workspace _links self settings");
    let draft = Draft::new(form.text("title"), name, "{{");
    let mut import = Import { draft, fields: HashMap::new(), choices: HashMap::new(), count: 0 };
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
    import.add_jumps(form.list("logic"));
    import.draft.lose_unread("the form", &[&form]);
    import.draft
}

impl<'a> Import<'a> {
    fn add_fields(&mut self, fields: &'a [Value]) {
        for value in fields {
            let field = Members::new(value, LOOKS);
            let text = |name| value.get(name).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (text("type"), text("ref"));
            if kind == "thankyou_screen" {
                continue;
            }
            self.count += 1;
            let place = place("question", self.count, field.text("title").as_deref(), kind);
            self.fields.insert(name, (self.draft.count(), false));
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

    fn add_question(&mut self, place: &str, kind: &str, field: &Members<'a>, name: &'a str) {
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
            let label = |choice: &'a Value| choice.get("label").and_then(Value::as_str);
            question
                .set_options("options", choices.iter().filter_map(label).map(|text| (text.to_owned(), None)));
            let by_name =
                choices.iter().filter_map(|choice| Some((choice.get("ref")?.as_str()?, label(choice)?)));
            self.choices.extend(by_name);
        }
        self.fields.insert(name, (self.draft.push(question, name), true));
        self.draft.lose_unread(place, &[field, &properties, &validations]);
    }

    /// Converts jumps: a question is asked if no earlier one that is asked jumps past it.
    fn add_jumps(&mut self, logic: &'a [Value]) {
        let mut jumps: Vec<(usize, Vec<(Logic, usize)>)> = Vec::new();
        for entry in logic {
            let name = entry.get("ref").and_then(Value::as_str).unwrap_or_default();
            let actions = entry.get("actions").and_then(Value::as_array).unwrap_or_default();
            let (from, is_kept) = self.fields.get(name).copied().unwrap_or_default();
            match actions.iter().map(|action| self.jump(action, from)).collect::<Result<Vec<_>, _>>() {
                Ok(read) if is_kept => jumps.push((from, read)),
                Ok(read) if read.iter().all(|(_, to)| *to <= from + 1) => {}
                Ok(_) => self.draft.lose(&format!("logic of `{name}`"), "left out with the field"),
                Err(reason) => self.draft.lose(&format!("logic of `{name}`"), format!("left out: {reason}")),
            }
        }
        for question in 0..self.draft.count() {
            let asked = jumps.iter().filter(|(from, _)| *from < question).map(|(from, jumps)| {
                // The first jump whose condition holds is taken.
                let passes = jumps.iter().rev().fold(Logic::Never, |others, (on, to)| match *to > question {
                    true => Logic::any([on.clone(), others]),
                    false => Logic::all([on.clone().negate(), others]),
                });
                let (id, asked) = self.draft.asked(*from);
                let passes =
                    if passes.needs_answer(id) { passes } else { Logic::all([asked.clone(), passes]) };
                passes.negate()
            });
            let asked = Logic::all(asked.collect::<Vec<_>>());
            self.draft.set_asked(question, asked);
        }
    }

    /// Returns the condition of a jump, and where it goes.
    fn jump(&self, action: &Value, from: usize) -> Result<(Logic, usize), String> {
        let text = |pointer: &str| action.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if text("/action") != "jump" {
            return Err(format!("`{}` is not supported", text("/action")));
        }
        let to = match (text("/details/to/type"), self.fields.get(text("/details/to/value"))) {
            ("thankyou", _) => END,
            (_, Some((to, _))) if *to >= from => *to,
            _ => {
                return Err(format!(
                    "it jumps back, or to the unknown field `{}`",
                    text("/details/to/value")
                ));
            }
        };
        Ok((self.condition(action.get("condition").unwrap_or(&Value::Null))?, to))
    }

    fn condition(&self, condition: &Value) -> Result<Logic, String> {
        let operator = condition.get("op").and_then(Value::as_str).unwrap_or_default();
        let vars = condition.get("vars").and_then(Value::as_array).unwrap_or_default();
        let parts = || vars.iter().map(|part| self.condition(part)).collect::<Result<Vec<_>, _>>();
        match (operator, vars) {
            _ if vars.len() > 50 => Err("it is too long".to_owned()),
            ("always", _) => Ok(Logic::Always),
            ("and", _) => parts().map(Logic::all),
            ("or", _) => parts().map(Logic::any),
            (_, [tested, value]) => self.test(operator, tested, value.get("value").unwrap_or(&Value::Null)),
            _ => Err(format!("`{operator}` is not supported")),
        }
    }

    fn test(&self, operator: &str, tested: &Value, value: &Value) -> Result<Logic, String> {
        let name = tested.get("value").and_then(Value::as_str).unwrap_or_default();
        let (id, kind) =
            self.draft.resolve(name).ok_or_else(|| format!("`{name}` is not a question that was kept"))?;
        let label = value.as_str().and_then(|name| self.choices.get(name)).map(|label| Value::from(*label));
        let value = typed(&kind, label.as_ref().unwrap_or(value))?;
        let escape = |character: char| match character.is_ascii_punctuation() {
            true => format!("\\{character}"),
            false => character.to_string(),
        };
        let escaped: String = value.as_str().unwrap_or_default().chars().map(escape).collect();
        let equals = if kind == "multiple_choice" { "includes" } else { "eq" };
        let (own, value) = match operator.trim_start_matches("not_") {
            "is" | "is_not" | "equal" | "on" => (equals, value),
            "lower_than" | "earlier_than" => ("lt", value),
            "lower_equal_than" | "earlier_than_or_on" => ("lte", value),
            "greater_than" | "later_than" => ("gt", value),
            "greater_equal_than" | "later_than_or_on" => ("gte", value),
            "contains" => ("includes", value),
            "begins_with" => ("matches", format!("^{escaped}").into()),
            "ends_with" => ("matches", format!("{escaped}$").into()),
            _ => return Err(format!("`{operator}` is not supported")),
        };
        let test = Logic::Test(id, own, value);
        Ok(if operator.contains("not") { test.negate() } else { test })
    }
}
