//! Forms of Google Forms, as its API returns them.

use crate::cli::commands::import::draft::{Draft, Members, Question, Text, place, text_of};
use crate::domain::json::Value;

pub(super) fn convert(form: &Value, name: &str) -> Draft {
    let form = Members::new(form, "formId revisionId responderUri linkedSheetId publishSettings");
    let info = Members::new(form.get("info"), "documentTitle");
    let mut draft = Draft::new(info.text("title").or_else(|| info.text("documentTitle")), name, "");
    draft.set(&["description"], info.text("description"));
    let settings = Members::new(form.get("settings"), "");
    let quiz = Members::new(settings.get("quizSettings"), "");
    for (item, number) in form.list("items").iter().zip(1..) {
        add(&mut draft, item, number);
    }
    draft.lose_unread("the form", &[&form, &info, &settings, &quiz]);
    draft
}

/// Returns the name of the only member of `source` that is an object, with its members.
fn variant<'a>(source: &Members<'a>, names: &'a str) -> (&'a str, Members<'a>) {
    let found = names.split(' ').find(|name| matches!(source.get(name), Value::Object(_)));
    found.map_or(("unknown", Members::new(&Value::Null, "")), |name| {
        (name, Members::new(source.get(name), ""))
    })
}

fn add(draft: &mut Draft, item: &Value, number: usize) {
    let item = Members::new(item, "itemId");
    let title = item.text("title");
    let (kind, content) =
        variant(&item, "questionItem questionGroupItem pageBreakItem textItem imageItem videoItem");
    let place = place("item", number, title.as_deref(), kind);
    let question = match kind {
        "questionItem" => {
            question(draft, &place, title, &Members::new(content.get("question"), "questionId"))
        }
        "questionGroupItem" => matrix(draft, &place, title, &content),
        "textItem" => Some(Question::new(&place, "statement", title)),
        "pageBreakItem" => Some(Question::new(&place, "page", title)),
        _ => None,
    };
    let Some(mut question) = question else { return draft.lose(&place, "not supported, left out") };
    question.copy(&item, "description");
    draft.push(question, "");
    draft.lose_unread(&place, &[&item, &content]);
}

fn question(draft: &mut Draft, place: &str, title: Text, source: &Members<'_>) -> Option<Question> {
    let (kind, settings) = variant(
        source,
        "textQuestion choiceQuestion scaleQuestion dateQuestion timeQuestion ratingQuestion fileUploadQuestion",
    );
    let shape = settings.text("type").unwrap_or_default();
    let own = match kind {
        "textQuestion" if settings.flag("paragraph") => "long_text",
        "textQuestion" => "short_text",
        "choiceQuestion" if shape == "CHECKBOX" => "multiple_choice",
        "choiceQuestion" => "single_choice",
        "scaleQuestion" => "opinion_scale",
        "ratingQuestion" => "rating",
        "timeQuestion" if !settings.flag("duration") => "time",
        "dateQuestion" if settings.flag("includeTime") => "datetime",
        "dateQuestion" => "date",
        _ => return None,
    };
    let mut question = match kind {
        "scaleQuestion" => {
            let range = [settings.integer("low").unwrap_or(1), settings.integer("high").unwrap_or(5)];
            Question::scale(place, title, range, [settings.text("lowLabel"), settings.text("highLabel")])
        }
        _ => Question::new(place, own, title),
    };
    if kind == "choiceQuestion" {
        add_options(draft, place, &mut question, "options", settings.list("options"));
        question.set("display", (shape == "DROP_DOWN").then_some("dropdown"));
    }
    settings.get("includeYear");
    question.copy(&settings, "ratingScaleLevel=max");
    question.copy(source, "required");
    draft.lose_unread(place, &[source, &settings]);
    Some(question)
}

fn add_options(draft: &mut Draft, place: &str, question: &mut Question, name: &str, options: &[Value]) {
    let options: Vec<_> = options.iter().map(|option| Members::new(option, "value isOther")).collect();
    let (other, listed): (Vec<_>, Vec<_>) = options.iter().partition(|option| option.flag("isOther"));
    question.set("allow_other", (!other.is_empty()).then_some(true));
    question.set_options(name, listed.iter().filter_map(|option| Some((option.text("value")?, None))));
    draft.lose_unread(place, &options.iter().collect::<Vec<_>>());
}

fn matrix(draft: &mut Draft, place: &str, title: Text, group: &Members<'_>) -> Option<Question> {
    let grid = Members::new(group.get("grid"), "");
    let columns = Members::new(grid.get("columns"), "");
    let mut question = Question::new(place, "matrix", title);
    let row = |row: &Value| row.pointer("/rowQuestion/title").and_then(text_of);
    let (rows, is_required) =
        (group.list("questions"), |row: &&Value| row.get("required") == Some(&true.into()));
    let required: Vec<Value> = rows.iter().filter(is_required).filter_map(row).map(Value::from).collect();
    question.set_options("rows", rows.iter().filter_map(row).map(|row| (row, None)));
    question.set("required_rows", (!required.is_empty()).then_some(Value::Array(required)));
    add_options(draft, place, &mut question, "columns", columns.list("options"));
    question.set("multiple", Some(columns.text("type")? == "CHECKBOX"));
    draft.lose_unread(place, &[&grid, &columns]);
    Some(question)
}
