//! Which answers a change of the questions hides.

use crate::cli::output::humanize::count_noun;
use crate::domain::json::Value;
use crate::domain::question::QuestionKind;

/// Removed options of one question whose answers are counted: each takes a search.
const MAX_OPTIONS: usize = 10;

/// Answers that a change hides: those to a removed question, or with a removed option.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HiddenAnswers {
    pub(super) question: String,
    /// Operator and value of the filter that finds the answers.
    pub(super) filter: (&'static str, String),
    pub(super) reason: Reason,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reason {
    QuestionRemoved,
    OptionRemoved,
    /// The question gets another type, by which its answers cannot be read.
    Retyped,
}

impl HiddenAnswers {
    /// Describes the change, which hides the number of answers `count`; `None` if that is not known.
    pub(super) fn warning(&self, count: Option<u64>) -> String {
        let Self { question, filter: (_, option), reason } = self;
        let answers = count.map_or("answers".to_owned(), |count| count_noun(count, "answer"));
        match reason {
            Reason::QuestionRemoved => format!("removes question {question}: hides {answers}"),
            Reason::Retyped => format!("changes the type of question {question}: hides {answers}"),
            Reason::OptionRemoved => {
                let say = if count == Some(1) { "says" } else { "say" };
                format!("removes option {option} of {question}: {answers} {say} {option}")
            }
        }
    }
}

/// Finds the changes from `before` to `after` that can hide answers.
pub(super) fn find_hidden(before: &Value, after: &Value) -> Vec<HiddenAnswers> {
    questions(before).iter().flat_map(|old| hidden_by(old, questions(after))).collect()
}

fn questions(form: &Value) -> &[Value] {
    form.get("questions").and_then(Value::as_array).unwrap_or_default()
}

fn hidden_by(old: &Value, after: &[Value]) -> Vec<HiddenAnswers> {
    let text = |question: &Value, name: &str| question.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text(old, "type").and_then(|name| QuestionKind::without_settings(&name));
    let Some((kind, question)) = kind.map(|(kind, _)| kind).zip(text(old, "id")) else { return Vec::new() };
    if !kind.rules().takes_answer() {
        return Vec::new();
    }
    let any_answer = |reason| {
        vec![HiddenAnswers { question: question.clone(), filter: ("answered", "true".to_owned()), reason }]
    };
    match after.iter().find(|new| text(new, "id").as_ref() == Some(&question)) {
        None => any_answer(Reason::QuestionRemoved),
        Some(new) if text(new, "type") != text(old, "type") => any_answer(Reason::Retyped),
        Some(new) => {
            let (kept, operator) = (options(new), if kind.answer_is_list() { "includes" } else { "eq" });
            let gone = options(old).into_iter().filter(|option| !kept.contains(option)).take(MAX_OPTIONS);
            let hidden = |option: &str| HiddenAnswers {
                question: question.clone(),
                filter: (operator, option.to_owned()),
                reason: Reason::OptionRemoved,
            };
            gone.map(hidden).collect()
        }
    }
}

fn options(question: &Value) -> Vec<&str> {
    let options = question.get("options").and_then(Value::as_array).unwrap_or_default();
    options.iter().filter_map(|option| option.get("value").unwrap_or(option).as_str()).collect()
}
