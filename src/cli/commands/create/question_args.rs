//! Questions in short form, `-Q 'single_choice:Colour:red,green'`, as used by the flag and the wizard.

use crate::domain::json::Value;
use crate::domain::question::QuestionKind;

/// Returns the required settings of a question type, besides its title. For every type these are lists.
pub(super) fn list_settings(kind: &str) -> Vec<String> {
    QuestionKind::without_settings(kind).map(|(_, lists)| lists).unwrap_or_default()
}

/// Whether a question of this type takes an answer.
pub(super) fn takes_answer(kind: &str) -> bool {
    QuestionKind::without_settings(kind).is_some_and(|(kind, _)| kind.rules().takes_answer())
}

/// Returns the question types a person may choose from. Hidden ones are only useful in a file.
pub(super) fn type_names() -> Vec<&'static str> {
    let is_shown =
        |name: &&str| QuestionKind::without_settings(name).is_some_and(|(kind, _)| kind.rules().is_shown());
    QuestionKind::NAMES.into_iter().filter(is_shown).collect()
}

/// Builds a question with the values of its [`list_settings`].
pub(super) fn question(kind: &str, title: &str, is_required: bool, lists: &[Vec<String>]) -> Value {
    let mut members = vec![("type".to_owned(), kind.into()), ("title".to_owned(), title.trim().into())];
    if is_required {
        members.push(("required".to_owned(), true.into()));
    }
    let lists = list_settings(kind).into_iter().zip(lists);
    members.extend(lists.map(|(name, items)| (name, items.iter().map(String::as_str).collect())));
    Value::Object(members)
}

/// Parses `TYPE:TITLE`, `TYPE:TITLE!`, and for types with lists `TYPE:TITLE:ITEM,ITEM`. A title may contain colons: the
/// lists follow the last ones.
pub(super) fn parse(argument: &str) -> Result<Value, String> {
    let (kind, mut rest) = argument.split_once(':').ok_or("expected TYPE:TITLE")?;
    let mut lists = Vec::new();
    for name in list_settings(kind).into_iter().rev() {
        let (before, list) = rest
            .rsplit_once(':')
            .ok_or_else(|| format!("{name} of a {kind} are expected after a colon: {argument}:one,two"))?;
        let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
        lists.insert(0, items.map(str::to_owned).collect());
        rest = before;
    }
    let (title, is_required) = rest.strip_suffix('!').map_or((rest, false), |title| (title, true));
    Ok(question(kind, title, is_required, &lists))
}
