//! Which answers a change of the questions hides.

use crate::cli::output::humanize::count_noun;
use crate::domain::json::Value;
use crate::domain::question::QuestionKind;

/// Removed options of one question whose answers are counted: each takes a search.
const MAX_OPTIONS: usize = 10;

/// Answers that a change hides: those to a removed question or one with another type, or with a removed option.
#[derive(Debug)]
pub(super) struct HiddenAnswers {
    /// Question, operator and value of the filter that finds the answers.
    pub(super) filter: (String, String, String),
    /// The change, such as `removes question q1`.
    change: String,
    /// Whether the question gets another type, by which its answers cannot be read.
    pub(super) is_retyped: bool,
}

impl HiddenAnswers {
    /// Describes the change, which hides the number of answers `count`; `None` if that is not known.
    pub(super) fn warning(&self, count: Option<u64>) -> String {
        let Self { filter: (_, operator, option), change, .. } = self;
        let answers = count.map_or("answers".to_owned(), |count| count_noun(count, "answer"));
        match (&**operator, count) {
            ("answered", _) => format!("{change}: hides {answers}"),
            (_, Some(1)) => format!("{change}: {answers} says {option}"),
            _ => format!("{change}: {answers} say {option}"),
        }
    }
}

/// Finds the changes from `before` to `after` that can hide answers.
pub(super) fn find_hidden(before: &Value, after: &Value) -> Vec<HiddenAnswers> {
    list(before, "questions").iter().flat_map(|old| hidden_by(old, list(after, "questions"))).collect()
}

fn hidden_by(old: &Value, after: &[Value]) -> Vec<HiddenAnswers> {
    let text = |question: &Value, name: &str| question.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text(old, "type").and_then(|name| QuestionKind::without_settings(&name));
    let Some((kind, id)) = kind.map(|(kind, _)| kind).zip(text(old, "id")) else { return Vec::new() };
    if !kind.rules().takes_answer() {
        return Vec::new();
    }
    let hidden = |operator: &str, value: &str, change: String| {
        let filter = (id.clone(), operator.to_owned(), value.to_owned());
        HiddenAnswers { filter, change, is_retyped: false }
    };
    match after.iter().find(|new| text(new, "id").as_ref() == Some(&id)) {
        None => vec![hidden("answered", "true", format!("removes question {id}"))],
        Some(new) if text(new, "type") != text(old, "type") => {
            let hidden = hidden("answered", "true", format!("changes the type of question {id}"));
            vec![HiddenAnswers { is_retyped: true, ..hidden }]
        }
        Some(new) => {
            let (kept, operator) = (options(new), if kind.answer_is_list() { "includes" } else { "eq" });
            let gone = options(old).into_iter().filter(|option| !kept.contains(option)).take(MAX_OPTIONS);
            gone.map(|option| hidden(operator, option, format!("removes option {option} of {id}"))).collect()
        }
    }
}

fn options(question: &Value) -> Vec<&str> {
    let options = list(question, "options").iter();
    options.filter_map(|option| option.get("value").unwrap_or(option).as_str()).collect()
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).unwrap_or_default()
}
