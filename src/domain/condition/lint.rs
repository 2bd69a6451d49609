//! Refuses tests that no valid answer satisfies, or that every one does: such a mistake would hide a question for good, or
//! always show it. Each test is examined by itself.

use std::collections::HashMap;

use crate::domain::condition::{Answer, Condition, Operator, QuestionClause, Test};
use crate::domain::json::Value;
use crate::domain::language::ENGLISH;
use crate::domain::question::{Question, Rules};
use crate::domain::validation::fields::quoted;
use crate::domain::validation::violation::{MAX_COMPARED, MAX_VIOLATIONS, Rule, Violation, shortened};

/// Checks the conditions of `questions`, the questions of a form in order with their ids. A question is `None` if its
/// definition cannot be parsed; tests of it are skipped.
///
/// Reports references to anything but earlier questions, a `matches` on long texts, and tests that can never be true or
/// are always true. Stops once there are more violations than are reported.
pub fn lint_conditions<'a>(
    questions: impl IntoIterator<Item = (Option<&'a str>, Option<&'a Question>)>,
    violations: &mut Vec<Violation>,
) {
    let mut linter = Linter::new("an earlier question", violations);
    for (place, (id, question)) in questions.into_iter().enumerate() {
        for (name, condition) in question.into_iter().flat_map(Question::conditions) {
            linter.check(condition, &format!("/questions/{place}/{name}"));
        }
        linter.add(id, question);
    }
}

/// Checks `condition`, at `pointer`, whose references may be to any of `questions`.
pub fn lint_condition(
    condition: &Condition,
    questions: &[Question],
    pointer: &str,
    violations: &mut Vec<Violation>,
) {
    let mut linter = Linter::new("a question of this form", violations);
    questions.iter().for_each(|question| linter.add(question.id.as_deref(), Some(question)));
    linter.check(condition, pointer);
}

struct Linter<'a, 'j> {
    /// Description of the questions that conditions may test, for messages: `an earlier question`.
    scope: &'static str,
    questions: HashMap<&'a str, Option<&'a Question>>,
    /// The ids of `questions`, in the order of the form.
    ids: Vec<&'a str>,
    /// Number of unknown references that were compared with `ids`.
    compared: usize,
    violations: &'j mut Vec<Violation>,
}

impl<'a, 'j> Linter<'a, 'j> {
    fn new(scope: &'static str, violations: &'j mut Vec<Violation>) -> Self {
        Self { scope, questions: HashMap::new(), ids: Vec::new(), compared: 0, violations }
    }

    /// Adds a question that conditions may test, if it takes an answer.
    fn add(&mut self, id: Option<&'a str>, question: Option<&'a Question>) {
        if let Some(id) = id.filter(|_| question.is_none_or(Question::takes_answer)) {
            // A duplicate id is listed once.
            if self.questions.insert(id, question).is_none() {
                self.ids.push(id);
            }
        }
    }

    fn check(&mut self, condition: &Condition, root: &str) {
        for clause in condition.root.questions() {
            if self.violations.len() > MAX_VIOLATIONS {
                return;
            }
            let QuestionClause { question: id, at, tests } = clause;
            match self.questions.get(id.as_str()) {
                Some(Some(question)) => {
                    let rules = question.kind.rules();
                    let check = |test: &Test| check_test(id, test, rules, condition.matched, root);
                    self.violations.extend(tests.iter().flat_map(check));
                }
                Some(None) => {}
                None => self.refuse_reference(id, format!("{root}{at}")),
            }
        }
    }

    fn refuse_reference(&mut self, id: &str, pointer: String) {
        let message = format!("`{}` is not {} that takes an answer", shortened(id), self.scope);
        let violation = Violation::new(pointer, Rule::UnknownReference, message);
        self.violations.push(match id {
            "or" => violation.help("write `any`"),
            "and" => violation.help("write `all`"),
            _ if self.compared >= MAX_COMPARED => violation,
            _ => {
                self.compared += 1;
                violation.allowed(id, self.ids.iter().copied())
            }
        });
    }
}

/// Returns violations if `test`, of the answer to the question `id`, has the same result for every valid answer, or matches
/// answers longer than `matched`.
fn check_test(id: &str, test: &Test, rules: &dyn Rules, matched: usize, root: &str) -> Vec<Violation> {
    let (operand, pointer) = (&test.operand, format!("{root}{}", test.at));
    let truth = if test.operator == Operator::Ne { "is always true" } else { "can never be true" };
    let refuse = |pointer: String, why: String| {
        Violation::new(pointer, Rule::ImpossibleCondition, format!("this {truth} of `{id}`: {why}"))
    };
    let refuse_value = |pointer: String, value: &Value, why: String| {
        let refused = refuse(pointer, why);
        let message = mismatch(id, value, rules).unwrap_or(refused.message);
        Violation { message, help: suggestion(id, test.operator, value, rules), ..refused }
    };
    let why = match test.operator {
        Operator::In => {
            let items = operand.as_array().unwrap_or_default().iter().enumerate();
            let refused = items.filter_map(|(place, value)| {
                let why = value_error(rules, value)?;
                Some(refuse_value(format!("{pointer}/{place}"), value, why))
            });
            return refused.take(MAX_VIOLATIONS + 1).collect();
        }
        Operator::Eq | Operator::Ne => {
            let why = value_error(rules, operand);
            return why.map(|why| refuse_value(pointer, operand, why)).into_iter().collect();
        }
        Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte => match order_error(rules, operand) {
            Some(why) => return vec![Violation { help: None, ..refuse_value(pointer, operand, why) }],
            None => range_error(test, rules),
        },
        Operator::Includes => inclusion_error(rules, operand),
        Operator::Matches if !is_text(rules) => Some(format!("its answer is {}", rules.expects(ENGLISH))),
        Operator::Matches if rules.max_length() > matched => {
            return vec![refuse_long(id, pointer, rules.max_length(), matched)];
        }
        Operator::Matches | Operator::Answered => None,
    };
    why.map(|why| refuse(pointer, why)).into_iter().collect()
}

fn refuse_long(id: &str, pointer: String, max_length: usize, matched: usize) -> Violation {
    let message = format!(
        "`matches` needs answers of at most {matched} characters, those to `{id}` may have {max_length}"
    );
    let help = format!("set the `max_length` of `{id}`, or use `includes`, which serves longer texts");
    Violation::new(pointer, Rule::InvalidRange, message).help(help)
}

fn is_text(rules: &dyn Rules) -> bool {
    matches!(rules.example(), Value::String(_))
}

/// Suggests `includes` if `value` is an option of a list, and quotes if it would be a valid answer as text.
fn suggestion(id: &str, operator: Operator, value: &Value, rules: &dyn Rules) -> Option<String> {
    let is_list = matches!(rules.example(), Value::Array(_)) && operator != Operator::Ne;
    if is_list && inclusion_error(rules, value).is_none() {
        return Some(format!("write `{{\"{id}\": {{\"includes\": {value}}}}}`"));
    }
    let is_text_meant = value_error(rules, &Value::String(value.to_string())).is_none();
    quoted(value).filter(|_| is_text_meant)
}

/// Describes a `value` that is nothing like the answers to `id`.
fn mismatch(id: &str, value: &Value, rules: &dyn Rules) -> Option<String> {
    let error = rules.check(value, None, ENGLISH).into_iter().next()?;
    let is_simple = !matches!(rules.example(), Value::Object(_));
    let is_mismatch =
        is_of_another_form(error.rule) || matches!(error.rule, Rule::OutOfRange | Rule::NotAnInteger);
    let message = || format!("`{id}` is {}, not {}", rules.expects(ENGLISH), shortened(&value.to_string()));
    (is_simple && is_mismatch).then(message)
}

pub(super) fn value_error(rules: &dyn Rules, value: &Value) -> Option<String> {
    rules.check(value, None, ENGLISH).into_iter().next().map(|error| error.message)
}

fn is_of_another_form(rule: Rule) -> bool {
    matches!(rule, Rule::TypeMismatch | Rule::InvalidDate | Rule::InvalidTime | Rule::InvalidDatetime)
}

/// Explains why `value` cannot be ordered among the answers. A value that is out of range can be.
fn order_error(rules: &dyn Rules, value: &Value) -> Option<String> {
    let mut errors = rules.check(value, None, ENGLISH).into_iter();
    errors.find(|error| is_of_another_form(error.rule)).map(|error| error.message)
}

/// Explains why no answer is on the side of the operand that `test` asks for.
fn range_error(test: &Test, rules: &dyn Rules) -> Option<String> {
    let [least, greatest] = rules.range();
    let (bound, side) = match test.operator {
        Operator::Lt => (least?, "<"),
        Operator::Lte => (least?, "<="),
        Operator::Gt => (greatest?, ">"),
        _ => (greatest?, ">="),
    };
    let answer = Answer::new(&bound, rules);
    // The bound is the answer most likely to satisfy the test: if it does not, none does.
    let holds = answer.order(&test.operand).is_none() || test.holds(Some(answer));
    (!holds).then(|| format!("its answer is {}, never {side} {}", rules.expects(ENGLISH), test.operand))
}

pub(super) fn inclusion_error(rules: &dyn Rules, value: &Value) -> Option<String> {
    match (rules.example(), value) {
        (Value::String(_), Value::String(_)) => None,
        // Only errors of the item itself: a list of one item may be too short.
        (Value::Array(_), _) => {
            let errors = rules.check(&Value::Array(vec![value.clone()]), None, ENGLISH);
            errors.into_iter().find(|error| !error.at.is_empty()).map(|error| error.message)
        }
        _ => Some(format!("its answer is {}", rules.expects(ENGLISH))),
    }
}
