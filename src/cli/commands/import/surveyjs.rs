//! Surveys of SurveyJS.

use std::collections::BTreeSet;

use crate::cli::commands::import::draft::{Draft, Members, Question, Text, place, text_of};
use crate::domain::json::Value;

/// Names, and what only concerns looks.
const LOOKS: &str =
    "name type startWithNewLine descriptionLocation titleLocation autocomplete colCount width minWidth";

struct Import {
    draft: Draft,
    texts: Texts,
    count: usize,
}

/// The language of the texts that are taken, and those of the others.
struct Texts {
    own: String,
    others: BTreeSet<String>,
}

impl Texts {
    /// Returns a text that may be given in several languages.
    fn read(&mut self, value: &Value) -> Text {
        let Value::Object(texts) = value else { return text_of(value) };
        let names = [self.own.as_str(), "default", "en"].into_iter().find(|name| value.get(name).is_some());
        let own = names.or_else(|| texts.first().map(|(name, _)| name.as_str()))?;
        self.others.extend(texts.iter().map(|(name, _)| name).filter(|name| *name != own).cloned());
        value.get(own).and_then(text_of)
    }
}

pub(super) fn convert(survey: &Value, name: &str) -> Draft {
    let survey = Members::new(survey, "showQuestionNumbers headerView completeText showProgressBar");
    let locale = survey.text("locale");
    let mut texts = Texts { own: locale.clone().unwrap_or_default(), others: BTreeSet::new() };
    let title = texts.read(survey.get("title"));
    let mut import = Import { draft: Draft::new(title, name, "{"), texts, count: 0 };
    import.draft.set(&["description"], import.texts.read(survey.get("description")));
    import.draft.set(&["settings", "language"], locale);
    let ending = import.texts.read(survey.get("completedHtml")).and_then(|html| plain(&html));
    import.draft.set(&["settings", "confirmation", "message"], ending);
    import.add_elements(survey.list("elements"));
    for (page, number) in survey.list("pages").iter().zip(1..) {
        import.add_group(&format!("page {number}"), &Members::new(page, LOOKS));
    }
    for language in import.texts.others {
        import.draft.lose("the form", format!("texts in `{language}` left out: a form has one language"));
    }
    import.draft.lose_unread("the survey", &[&survey]);
    import.draft
}

impl Import {
    fn add_group(&mut self, place: &str, group: &Members<'_>) {
        let [title, about] = ["title", "description"].map(|name| self.texts.read(group.get(name)));
        let condition = self.draft.condition(place, group, "visibleIf");
        self.draft.begin_group(place, title, about, condition);
        self.add_elements(group.list("elements"));
        self.draft.end_group();
        self.draft.lose_unread(place, &[group]);
    }

    fn add_elements(&mut self, elements: &[Value]) {
        for value in elements {
            let element = Members::new(value, LOOKS);
            let [kind, name] = ["type", "name"].map(|name| element.text(name).unwrap_or_default());
            self.count += 1;
            let title = self.texts.read(element.get("title")).or_else(|| Some(name.clone()));
            let place = place("question", self.count, title.as_deref(), &kind);
            if kind == "panel" {
                self.add_group(&place, &element);
            } else if let Some(mut question) = self.question(&place, &kind, title, &element) {
                self.add_settings(&place, &mut question, &element);
                self.draft.push(question, &name);
                self.draft.lose_unread(&place, &[&element]);
            } else {
                self.draft.lose(&place, "not supported, left out");
            }
        }
    }

    fn question(&mut self, place: &str, kind: &str, title: Text, element: &Members<'_>) -> Option<Question> {
        let own = match (kind, element.get("inputType").as_str().unwrap_or_default()) {
            ("text", input @ ("email" | "url" | "date" | "time" | "number")) => input,
            ("text", "range") => "number",
            ("text", "tel") => "phone",
            ("text", "datetime-local" | "datetime") => "datetime",
            ("text", _) if element.get("maskType").as_str() == Some("numeric") => "number",
            ("text", _) => "short_text",
            ("comment", _) => "long_text",
            ("radiogroup" | "dropdown", _) => "single_choice",
            ("checkbox" | "tagbox", _) => "multiple_choice",
            ("html", _) => "statement",
            ("boolean" | "ranking" | "matrix" | "rating", _) => kind,
            _ => return None,
        };
        let mut question = match kind {
            "rating" => {
                let texts = ["minRateDescription", "maxRateDescription"];
                let ends = texts.map(|name| self.texts.read(element.get(name)));
                let high = element.integer("rateMax").or_else(|| element.integer("rateCount")).unwrap_or(5);
                Question::scale(place, title, [element.integer("rateMin").unwrap_or(1), high], ends)
            }
            _ => Question::new(place, own, title),
        };
        let labels = [("true", "labelTrue"), ("false", "labelFalse")];
        let labels = labels.map(|(value, name)| (value.to_owned(), self.texts.read(element.get(name))));
        question.set_labels(labels.into_iter());
        let lists: &[_] = match own {
            "single_choice" | "multiple_choice" | "ranking" => &[("choices", "options")],
            "matrix" => &[("rows", "rows"), ("columns", "columns")],
            _ => &[],
        };
        for (theirs, name) in lists {
            let mut options: Vec<_> =
                element.list(theirs).iter().filter_map(|choice| self.option(choice)).collect();
            if element.flag("showNoneItem") || element.flag("hasNone") {
                options.push(("none".to_owned(), self.texts.read(element.get("noneText"))));
            }
            question.set_options(name, options);
        }
        question.set("display", (kind == "dropdown").then_some("dropdown"));
        if own == "statement" {
            let text = self.texts.read(element.get("html")).and_then(|html| plain(&html))?;
            question.set_text(&text);
        }
        Some(question)
    }

    fn option(&mut self, choice: &Value) -> Option<(String, Text)> {
        let value = choice.get("value").unwrap_or(choice);
        Some((text_of(value)?, choice.get("text").and_then(|text| self.texts.read(text))))
    }

    fn add_settings(&mut self, place: &str, question: &mut Question, element: &Members<'_>) {
        question.show_if = self.draft.condition(place, element, "visibleIf");
        for name in ["description", "placeholder"] {
            if let Some(text) = self.texts.read(element.get(name)) {
                question.set(name, Some(text));
            }
        }
        question.copy(element, "isRequired=required min max step rateStep=step maxLength=max_length");
        question
            .copy(element, "showOtherItem=allow_other hasOther=allow_other isAllRowRequired=required_rows");
        question.copy(element, "minSelectedChoices=min_selected maxSelectedChoices=max_selected");
        for validator in element.list("validators") {
            let validator = Members::new(validator, "");
            let names = match validator.get("type").as_str().unwrap_or_default() {
                "numeric" => "minValue=min maxValue=max",
                "text" => "minLength=min_length maxLength=max_length",
                "answercount" => "minCount=min_selected maxCount=max_selected",
                "regex" => "regex=pattern text=pattern_message",
                _ => "",
            };
            question.copy(&validator, names);
            self.draft.lose_unread(place, &[&validator]);
        }
    }
}

/// Returns the text of HTML.
fn plain(html: &str) -> Text {
    let (mut pieces, mut text) = (html.split('<'), String::new());
    text += pieces.next().unwrap_or_default();
    for piece in pieces {
        let (tag, rest) = piece.split_once('>').unwrap_or(("", piece));
        let name = tag.split(' ').next().unwrap_or_default();
        if "br br/ /p /div /li h1 h2 h3 h4 /h1 /h2 /h3 /h4 tr".split(' ').any(|known| known == name) {
            text.push('\n');
        }
        text += rest;
    }
    for (entity, character) in [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")] {
        text = text.replace(entity, character);
    }
    text_of(&text.into())
}
