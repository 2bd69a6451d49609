//! Refuses tests that no valid answer satisfies, or that every one does: such a mistake would hide a question for good, or
//! always show it. Each test is examined by itself.

use std::collections::HashMap;

use crate::domain::condition::{Answer, Clause, Condition, QuestionClause, Test};
use crate::domain::json::Value;
use crate::domain::question::{Question, QuestionKind, Rules};
use crate::domain::validation::fields::quoted;
use crate::domain::validation::violation::{MAX_COMPARED, MAX_VIOLATIONS, Rule, Violation, join, shortened};

/// A question with its conditions and the names of their members.
pub struct LintInput<'a> {
    pub id: Option<&'a str>,
    /// `None` if the definition cannot be parsed; tests of the question are then skipped.
    pub kind: Option<&'a QuestionKind>,
    pub conditions: Vec<(&'static str, &'a Condition)>,
}

/// Checks the conditions of `questions`, the questions of a form in order.
///
/// Reports references to anything but earlier questions, a `matches` on long texts, and tests that can never be true or
/// are always true. Stops once there are more violations than are reported.
pub fn lint_conditions<'a>(
    questions: impl IntoIterator<Item = LintInput<'a>>,
    violations: &mut Vec<Violation>,
) {
    let (mut earlier, mut order, mut compared) = (HashMap::new(), Vec::new(), 0);
    for (place, asked) in questions.into_iter().enumerate() {
        for (name, condition) in asked.conditions {
            let (root, matched) = (format!("/questions/{place}/{name}"), condition.matched);
            let (earlier, order, compared) = (&earlier, &*order, &mut compared);
            Linter { scope: "an earlier question", earlier, order, compared, root, matched, violations }
                .clauses(&condition.all);
        }
        let takes_answer = asked.kind.is_none_or(|kind| kind.rules().takes_answer());
        if let Some(id) = asked.id.filter(|_| takes_answer) {
            // A duplicate id is listed once.
            if earlier.insert(id, asked.kind).is_none() {
                order.push(id);
            }
        }
    }
}

/// Checks `condition`, at `pointer`, whose references may be to any of `questions`.
pub fn lint_condition(
    condition: &Condition,
    questions: &[Question],
    pointer: &str,
    violations: &mut Vec<Violation>,
) {
    let answered = questions.iter().filter(|question| question.kind.rules().takes_answer());
    let known = answered.filter_map(|question| Some((question.id.as_deref()?, Some(&question.kind))));
    let (order, kinds): (Vec<_>, Vec<_>) = known.unzip();
    let earlier = order.iter().copied().zip(kinds).collect();
    Linter {
        scope: "a question of this form",
        earlier: &earlier,
        order: &order,
        compared: &mut 0,
        root: pointer.to_owned(),
        matched: condition.matched,
        violations,
    }
    .clauses(&condition.all);
}

struct Linter<'a, 'j> {
    /// What a reference must be to.
    scope: &'static str,
    earlier: &'j HashMap<&'a str, Option<&'a QuestionKind>>,
    order: &'j [&'a str],
    /// Number of unknown references that were compared with `order`.
    compared: &'j mut usize,
    root: String,
    /// Maximum characters of answers that a `matches` tests.
    matched: usize,
    violations: &'j mut Vec<Violation>,
}

impl Linter<'_, '_> {
    fn clauses(&mut self, all: &[Clause]) {
        for clause in all {
            match clause {
                Clause::Question(clause) => self.question(clause),
                Clause::All(conditions) | Clause::Any(conditions) => {
                    conditions.iter().for_each(|all| self.clauses(all));
                }
                Clause::Not(all) => self.clauses(all),
            }
        }
    }

    fn question(&mut self, clause: &QuestionClause) {
        if self.violations.len() > MAX_VIOLATIONS {
            return;
        }
        match self.earlier.get(clause.question.as_str()) {
            Some(Some(kind)) => {
                let rules = kind.rules();
                clause.tests.iter().for_each(|test| self.test(clause, test, rules));
            }
            Some(None) => {}
            None => self.refuse_reference(clause),
        }
    }

    fn refuse_reference(&mut self, clause: &QuestionClause) {
        let id = shortened(&clause.question);
        let message = format!("`{id}` is not {} that takes an answer", self.scope);
        let place = format!("{}{}", self.root, clause.at);
        let violation = Violation::new(place, Rule::UnknownReference, message);
        self.violations.push(match combinator(&id) {
            Some(meant) => violation.help(format!("write `{meant}`")),
            None if *self.compared >= MAX_COMPARED => violation,
            None => {
                *self.compared += 1;
                violation.allowed(&clause.question, self.order.iter().copied())
            }
        });
    }

    fn test(&mut self, clause: &QuestionClause, test: &Test, rules: &dyn Rules) {
        let at = if clause.is_bare { clause.at.clone() } else { join(&clause.at, test.name()) };
        let at = format!("{}{at}", self.root);
        if matches!(test, Test::Matches(_)) && is_text(rules) && rules.max_length() > self.matched {
            return self.refuse_long(clause, at, rules.max_length());
        }
        let errors = test_errors(test, rules);
        let truth = match test {
            Test::Ne(_) if !errors.is_empty() => "is always true",
            _ => "can never be true",
        };
        for (item, why) in errors {
            let value = compared(test, item);
            let help = value.and_then(|value| suggestion(&clause.question, test, value, rules));
            let message = format!("this {truth} of `{}`: {why}", clause.question);
            let item = item.map(|item| format!("/{item}")).unwrap_or_default();
            let violation = Violation::new(format!("{at}{item}"), Rule::ImpossibleCondition, message);
            self.violations.push(Violation { help, ..violation });
        }
    }

    fn refuse_long(
        &mut self,
        QuestionClause { question, .. }: &QuestionClause,
        at: String,
        max_length: usize,
    ) {
        let message = format!(
            "`matches` needs answers of at most {} characters, those to `{question}` may have {max_length}",
            self.matched
        );
        let help =
            format!("set the `max_length` of `{question}`, or use `includes`, which serves longer texts");
        self.violations.push(Violation::new(at, Rule::InvalidRange, message).help(help));
    }
}

/// Explains why `test` has the same result for every valid answer; with the index of the value in a list.
fn test_errors(test: &Test, rules: &dyn Rules) -> Vec<(Option<usize>, String)> {
    let error = match test {
        Test::In(values) => {
            let errors = values.iter().enumerate();
            let errors = errors.filter_map(|(item, value)| Some((Some(item), value_error(rules, value)?)));
            return errors.take(MAX_VIOLATIONS + 1).collect();
        }
        Test::Eq(value) | Test::Ne(value) => value_error(rules, value),
        Test::Lt(value) | Test::Lte(value) | Test::Gt(value) | Test::Gte(value) => {
            order_error(rules, value).or_else(|| range_error(test, value, rules))
        }
        Test::Includes(value) => inclusion_error(rules, value),
        Test::Matches(_) if !is_text(rules) => Some(format!("its answer is {}", rules.expects())),
        Test::Matches(_) | Test::Answered(_) => None,
    };
    error.map(|why| (None, why)).into_iter().collect()
}

fn is_text(rules: &dyn Rules) -> bool {
    matches!(rules.example(), Value::String(_))
}

/// Returns our name for a combinator of other languages: `any` for `or`.
fn combinator(id: &str) -> Option<&'static str> {
    match id {
        "or" => Some("any"),
        "and" => Some("all"),
        _ => None,
    }
}

/// The value that `test` compares the answer with, or its `item` of a list.
fn compared(test: &Test, item: Option<usize>) -> Option<&Value> {
    match test {
        Test::Eq(value) | Test::Ne(value) => Some(value),
        Test::In(values) => values.get(item?),
        _ => None,
    }
}

/// Suggests `includes` if `value` is an option of a list, and quotes if it would be a valid answer as text.
fn suggestion(id: &str, test: &Test, value: &Value, rules: &dyn Rules) -> Option<String> {
    let is_list = matches!(rules.example(), Value::Array(_)) && !matches!(test, Test::Ne(_));
    if is_list && inclusion_error(rules, value).is_none() {
        return Some(format!("write `{{\"{id}\": {{\"includes\": {value}}}}}`"));
    }
    let is_text_meant = value_error(rules, &Value::String(value.to_string())).is_none();
    quoted(value).filter(|_| is_text_meant)
}

pub(super) fn value_error(rules: &dyn Rules, value: &Value) -> Option<String> {
    rules.check(value, None).into_iter().next().map(|error| error.message)
}

/// Explains why `value` cannot be ordered among the answers. A value that is out of range can be.
fn order_error(rules: &dyn Rules, value: &Value) -> Option<String> {
    let is_of_another_form = |rule| {
        matches!(rule, Rule::TypeMismatch | Rule::InvalidDate | Rule::InvalidTime | Rule::InvalidDatetime)
    };
    let mut errors = rules.check(value, None).into_iter();
    errors.find(|error| is_of_another_form(error.rule)).map(|error| error.message)
}

/// Explains why no answer is on the side of `value` that `test` asks for.
fn range_error(test: &Test, value: &Value, rules: &dyn Rules) -> Option<String> {
    let [least, greatest] = rules.range();
    let (bound, side) = match test {
        Test::Lt(_) => (least?, "<"),
        Test::Lte(_) => (least?, "<="),
        Test::Gt(_) => (greatest?, ">"),
        _ => (greatest?, ">="),
    };
    let answer = Answer { value: &bound, value_type: rules.value_type(), max_length: rules.max_length() };
    // The bound is the answer most likely to satisfy the test: if it does not, none does.
    let holds = answer.order(value).is_none() || test.holds(Some(answer));
    (!holds).then(|| format!("its answer is {}, never {side} {value}", rules.expects()))
}

pub(super) fn inclusion_error(rules: &dyn Rules, value: &Value) -> Option<String> {
    match (rules.example(), value) {
        (Value::String(_), Value::String(_)) => None,
        // Only errors of the item itself: a list of one item may be too short.
        (Value::Array(_), _) => {
            let errors = rules.check(&Value::Array(vec![value.clone()]), None);
            errors.into_iter().find(|error| !error.at.is_empty()).map(|error| error.message)
        }
        _ => Some(format!("its answer is {}", rules.expects())),
    }
}
