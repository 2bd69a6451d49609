//! Questions in a few words: `-Q 'single_choice:Colour:red,green'`, and what the wizard asks.

use crate::domain::json::Value;
use crate::domain::question::Kind;

/// The lists that a question of this type must have, and what they are called.
pub(super) fn lists(kind: &str) -> &'static [(&'static str, &'static str)] {
    match kind {
        "single_choice" | "multiple_choice" | "ranking" => &[("options", "Options")],
        "matrix" => &[("rows", "Rows"), ("columns", "Columns")],
        _ => &[],
    }
}

/// Whether a question of this type is answered by whoever sees it.
pub(super) fn is_answered(kind: &str) -> bool {
    !matches!(kind, "statement" | "page" | "hidden")
}

/// The types a person may choose from: a hidden question is of use only with a file.
pub(super) fn kinds() -> Vec<&'static str> {
    Kind::NAMES.into_iter().filter(|kind| *kind != "hidden").collect()
}

/// The question with the items of its lists, each list in text with commas between.
pub(super) fn question(kind: &str, title: &str, is_required: bool, items: &[String]) -> Value {
    let mut members = vec![("type".to_owned(), kind.into()), ("title".to_owned(), title.trim().into())];
    if is_required {
        members.push(("required".to_owned(), true.into()));
    }
    let lists = lists(kind).iter().zip(items);
    members.extend(lists.map(|((name, _), items)| {
        let items = items.split(',').map(str::trim).filter(|item| !item.is_empty());
        ((*name).to_owned(), items.collect())
    }));
    Value::Object(members)
}

/// Reads `TYPE:TITLE`, `TYPE:TITLE!`, and with lists `TYPE:TITLE:ITEM,ITEM`. A title may have colons of its own: the
/// lists are what follows the last ones.
pub(super) fn parse(argument: &str) -> Result<Value, String> {
    let (kind, mut rest) = argument.split_once(':').ok_or("expected TYPE:TITLE")?;
    let mut items = Vec::new();
    for (_, what) in lists(kind).iter().rev() {
        let (before, list) = rest.rsplit_once(':').ok_or_else(|| {
            format!("{} of a {kind} follow behind a colon: {argument}:one,two", what.to_lowercase())
        })?;
        items.insert(0, list.to_owned());
        rest = before;
    }
    let (title, is_required) = rest.strip_suffix('!').map_or((rest, false), |title| (title, true));
    Ok(question(kind, title, is_required, &items))
}

/// Whether the form has a question that takes an answer.
pub(super) fn asks_something(form: &Value) -> bool {
    let Some(Value::Array(questions)) = form.get("questions") else { return false };
    let is_asked = |question: &Value| match question.get("type") {
        Some(Value::String(kind)) => is_answered(kind),
        _ => false,
    };
    questions.iter().any(is_asked)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_question_is_its_type_its_title_and_its_lists() {
        for (argument, expected) in [
            ("email:Your email", r#"{"type":"email","title":"Your email"}"#),
            ("email: Your email!", r#"{"type":"email","title":"Your email","required":true}"#),
            ("short_text:When: now?", r#"{"type":"short_text","title":"When: now?"}"#),
            (
                "single_choice:Colour!:red, green,,",
                r#"{"type":"single_choice","title":"Colour","required":true,"options":["red","green"]}"#,
            ),
            (
                "ranking:Best: of all:1.10,no",
                r#"{"type":"ranking","title":"Best: of all","options":["1.10","no"]}"#,
            ),
            (
                "matrix:Taste:soup,rice:good,bad",
                r#"{"type":"matrix","title":"Taste","rows":["soup","rice"],"columns":["good","bad"]}"#,
            ),
        ] {
            assert_eq!(parse(argument).unwrap().to_string(), expected, "{argument}");
        }
        for argument in ["email", "single_choice:Colour", "matrix:Taste:soup,rice"] {
            assert!(parse(argument).is_err(), "{argument}");
        }
    }
}
