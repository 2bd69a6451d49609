//! Validation of answers against the questions of a form: which questions are asked, which answers are valid, and which
//! defaults are added.

use std::collections::{HashMap, HashSet};

use crate::clock::Timestamp;
use crate::domain::condition::{Answer, Condition, Decision};
use crate::domain::form::Version;
use crate::domain::json::Value;
use crate::domain::language::{ENGLISH, Texts, fill};
use crate::domain::question::{AnswerError, Question, too_large};
use crate::domain::submission::Answers;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{
    MAX_COMPARED, MAX_VIOLATIONS, Rule, Violation, join, shortened, unescape,
};

/// Default answers by question id, stored if none is sent.
pub type Defaults<'a> = Vec<(&'a str, &'a Value)>;

impl Version {
    /// Checks `answers`, sent at the time `now`, against the questions. Returns the defaults to store with them, or
    /// all violations, with messages made of `texts`.
    pub fn check(
        &self,
        answers: &[(String, Value)],
        limits: &Limits,
        now: Timestamp,
        texts: &Texts,
    ) -> Result<Defaults<'_>, Vec<Violation>> {
        self.check_with_help(answers, limits, now, texts, "leave it out")
    }

    /// Checks `answers`, with `remedy` as the help for an answer to a question that is not asked.
    pub(in crate::domain) fn check_with_help(
        &self,
        answers: &[(String, Value)],
        limits: &Limits,
        now: Timestamp,
        texts: &Texts,
        remedy: &str,
    ) -> Result<Defaults<'_>, Vec<Violation>> {
        if answers.len() > limits.answers {
            let message = format!("{} answers are too many, {} are allowed", answers.len(), limits.answers);
            return Err(vec![Violation::new("/answers", Rule::TooMany, message)]);
        }
        let (sent, mut state) = (by_question(answers), ConditionState::new(&self.questions));
        let (mut known, mut defaults, mut violations) = (0, Defaults::new(), Vec::new());
        for question in &self.questions {
            // The rest would not be reported.
            if violations.len() > MAX_VIOLATIONS {
                break;
            }
            let asked = state.visibility(question);
            let Some(id) = question.id.as_deref() else { continue };
            let (sent, rules) = (sent.get(id).copied(), question.kind.rules());
            known += usize::from(sent.is_some());
            if !asked.holds {
                let sent = sent.filter(|sent| !rules.is_empty(sent));
                violations.extend(sent.map(|_| not_visible(id, question, asked.refused, texts, remedy)));
                state.mark_dependent(id, asked.refused);
                continue;
            }
            let default = rules.default_answer().filter(|_| sent.is_none());
            defaults.extend(default.map(|default| (id, default)));
            let answer = sent.or(default);
            let needed = Decision::all([asked, state.requirement(question)]);
            let errors = question.check(answer, needed.holds, limits, now, texts);
            state.record_answer(id, question, answer.filter(|answer| is_bounded(answer, limits)));
            state.mark_dependent(id, asked.refused.or((!errors.is_empty()).then_some(id)));
            for error in errors {
                let names = match violations.len() {
                    ..MAX_COMPARED => rules.allowed_values(error.rule),
                    _ => Vec::new(),
                };
                let written = written_value(answer, &error);
                violations.push(to_violation(id, error, needed.refused).allowed(&written, names));
            }
        }
        // Keys are unique, so the counts can be compared.
        if known < answers.len() {
            self.refuse_unknown(answers.iter().map(|(key, _)| key.as_str()), &mut violations);
        }
        if violations.is_empty() { Ok(defaults) } else { Err(violations) }
    }

    /// Splits `answers` into those to questions of this version, and the other keys.
    pub fn split_unknown(&self, answers: Answers) -> (Answers, Vec<String>) {
        let ids: HashSet<&str> = self.ids().collect();
        answers.retain(|key| ids.contains(key))
    }

    /// Returns for each question whether it is shown with these answers, in the order of the questions.
    pub fn shown(&self, answers: &[(String, Value)]) -> Vec<bool> {
        self.decide_each(answers, |_, _, is_shown| is_shown)
    }

    /// Returns for each question whether its `show_if` and its `required_if` hold with these answers; `None` if it has no
    /// such condition, or if the condition made no difference, since the page or the question is not shown.
    pub fn conditions_held(&self, answers: &[(String, Value)]) -> Vec<[Option<bool>; 2]> {
        self.decide_each(answers, |state, question, is_shown| {
            let holds = |condition: &Option<Condition>| Some(state.decide(condition.as_ref()?).holds);
            let matters = state.page.holds || question.kind.begins_page();
            [holds(&question.show_if).filter(|_| matters), holds(&question.required_if).filter(|_| is_shown)]
        })
    }

    /// Calls `decide` for each question with the state of the conditions and whether the question is shown.
    fn decide_each<'a, T>(
        &'a self,
        answers: &'a [(String, Value)],
        decide: impl Fn(&ConditionState<'a>, &Question, bool) -> T,
    ) -> Vec<T> {
        let (sent, mut state) = (by_question(answers), ConditionState::new(&self.questions));
        let step = |question: &'a Question| {
            let is_shown = state.visibility(question).holds;
            let decided = decide(&state, question, is_shown);
            if let (true, Some(id)) = (is_shown, question.id.as_deref()) {
                state.record_answer(
                    id,
                    question,
                    sent.get(id).copied().or(question.kind.rules().default_answer()),
                );
            }
            decided
        };
        self.questions.iter().map(step).collect()
    }

    /// Reports the `keys` of answers that are not ids of questions, up to one more than is reported.
    pub(in crate::domain) fn refuse_unknown<'a>(
        &self,
        keys: impl Iterator<Item = &'a str>,
        violations: &mut Vec<Violation>,
    ) {
        let ids: HashSet<&str> = self.ids().collect();
        let unknown = keys.filter(|key| !ids.contains(key)).take(MAX_VIOLATIONS + 1);
        for (place, key) in unknown.enumerate() {
            let message = format!("`{}` is not a question of this form", shortened(key));
            let violation = Violation::new(join("/answers", key), Rule::UnknownQuestion, message);
            violations.push(match place {
                ..MAX_COMPARED => violation.allowed(key, self.ids()),
                _ => violation,
            });
        }
    }
}

/// The state that conditions are evaluated in, updated question by question.
struct ConditionState<'a> {
    /// Answers to the questions asked so far; only recorded if there are conditions.
    answers: Option<HashMap<&'a str, Answer<'a>>>,
    /// For a question, the question whose invalid answer its own answer, or lack of one, depends on.
    refused: HashMap<&'a str, &'a str>,
    page: Decision<'a>,
}

impl<'a> ConditionState<'a> {
    fn new(questions: &[Question]) -> Self {
        let has_conditions = questions.iter().any(|question| question.conditions().next().is_some());
        let answers = has_conditions.then(HashMap::new);
        Self { answers, refused: HashMap::new(), page: Decision::certain(true) }
    }

    /// Whether `question` is asked. A page's condition applies to all questions up to the next page.
    fn visibility(&mut self, question: &Question) -> Decision<'a> {
        let own =
            question.show_if.as_ref().map_or(Decision::certain(true), |condition| self.decide(condition));
        if question.kind.begins_page() {
            self.page = own;
        }
        Decision::all([self.page, own])
    }

    fn requirement(&self, question: &Question) -> Decision<'a> {
        match &question.required_if {
            Some(condition) if !question.required => self.decide(condition),
            _ => Decision::certain(question.required),
        }
    }

    fn decide(&self, condition: &Condition) -> Decision<'a> {
        let answers = |id: &str| self.answers.as_ref()?.get(id).copied();
        condition.decide(&answers, &|id| self.refused.get(id).copied())
    }

    /// Records that the answer to the question `id` depends on an invalid one, if `refused` is some.
    fn mark_dependent(&mut self, id: &'a str, refused: Option<&'a str>) {
        if self.answers.is_some() {
            self.refused.extend(refused.map(|refused| (id, refused)));
        }
    }

    /// Records the answer to `question`, which is asked.
    fn record_answer(&mut self, id: &'a str, question: &Question, answer: Option<&'a Value>) {
        let rules = question.kind.rules();
        let answer = answer.filter(|answer| !rules.is_empty(answer));
        let (Some(answers), Some(value)) = (&mut self.answers, answer) else { return };
        answers.insert(id, Answer::new(value, rules));
    }
}

/// Whether conditions may test `answer`: an invalid one may be far larger than any valid one.
fn is_bounded(answer: &Value, limits: &Limits) -> bool {
    let is_list_bounded = match answer {
        Value::Array(items) => items.len() <= limits.options.saturating_add(1),
        _ => true,
    };
    is_list_bounded && too_large(answer, limits, ENGLISH).is_none()
}

fn not_visible(
    id: &str,
    Question { title, .. }: &Question,
    refused: Option<&str>,
    texts: &Texts,
    remedy: &str,
) -> Violation {
    let violation =
        |message| Violation::new(join("/answers", id), Rule::QuestionNotVisible, message).question(id);
    match refused {
        Some(refused) => violation(fill(texts.asked_depends_on, &[("title", title), ("question", &refused)]))
            .related(join("/answers", refused))
            .help(format!("correct `{refused}` first")),
        None => violation(fill(texts.not_asked, &[("title", title)])).help(remedy),
    }
}

/// Converts `error` in the answer to the question `id`. Whether an answer is required may depend on a `refused` one.
fn to_violation(id: &str, error: AnswerError, refused: Option<&str>) -> Violation {
    let violation = Violation::new(join("/answers", id) + &error.at, error.rule, error.message).question(id);
    match refused.filter(|_| error.rule == Rule::Required) {
        Some(refused) => violation
            .related(join("/answers", refused))
            .help(format!("correct `{refused}` first: the answer may then not be needed")),
        None => violation,
    }
}

/// Returns the text in `answer` that `error` is about: a value, or the name of a row.
fn written_value(answer: Option<&Value>, error: &AnswerError) -> String {
    let value =
        answer.filter(|_| error.rule != Rule::UnknownRow).and_then(|answer| answer.pointer(&error.at));
    match value {
        Some(value) => value.as_str().unwrap_or_default().to_owned(),
        None => unescape(error.at.rsplit('/').next().unwrap_or_default()),
    }
}

fn by_question(answers: &[(String, Value)]) -> HashMap<&str, &Value> {
    answers.iter().map(|(key, value)| (key.as_str(), value)).collect()
}
