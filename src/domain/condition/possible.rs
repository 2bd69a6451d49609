//! Refuses conditions that can never be true, given the questions they name, and tests that always are: a slip would hide
//! a question for good, or show it to all.

use std::collections::HashMap;

use super::left::{Patience, Scope};
use super::{About, Clause, Condition, Test};
use crate::domain::json::Value;
use crate::domain::question::{Kind, Rules};
use crate::domain::violation::{MOST_VIOLATIONS, Rule, Violation, join};

/// What stands between a fault and the condition that was meant.
pub(super) const INSTEAD: &str = "; write ";

/// Searches that all conditions of a form may ask for.
const MAX_SEARCHES: usize = 5_000;

/// A question with its conditions, by the members they stand in.
pub struct Asked<'a> {
    pub id: Option<&'a str>,
    /// `None` if its definition cannot be read. What is asked of it is then not judged.
    pub kind: Option<&'a Kind>,
    pub conditions: Vec<(&'static str, &'a Condition)>,
}

/// Reports what is wrong with the conditions of `questions`, the questions of a form in their order: a reference to what
/// is no earlier question, and what can never be true, or by a slip always is.
///
/// Once violations are more than are told, no further ones are looked for.
pub fn refuse_impossible<'a>(
    questions: impl IntoIterator<Item = Asked<'a>>,
    violations: &mut Vec<Violation>,
) {
    let (mut earlier, mut searches, mut patience) = (HashMap::new(), 0, Patience::default());
    for (place, asked) in questions.into_iter().enumerate() {
        for (name, condition) in asked.conditions {
            let root = format!("/questions/{place}/{name}");
            searches += condition.searches;
            if searches > MAX_SEARCHES {
                let message = "the conditions of this form have too many `matches` or `includes`";
                violations.push(Violation::new(root, Rule::TooMany, message));
                return;
            }
            let mut judging = Judging { earlier: &earlier, root, patience: &mut patience, violations };
            judging.clauses(&condition.all, &mut Scope::default());
        }
        let takes_answer = asked.kind.is_none_or(|kind| kind.rules().takes_answer());
        earlier.extend(asked.id.filter(|_| takes_answer).map(|id| (id, asked.kind)));
    }
}

struct Judging<'a, 'j> {
    earlier: &'j HashMap<&'a str, Option<&'a Kind>>,
    root: String,
    patience: &'j mut Patience,
    violations: &'j mut Vec<Violation>,
}

impl Judging<'_, '_> {
    /// What must hold together, within `scope`.
    fn clauses<'c>(&mut self, all: &'c [Clause], scope: &mut Scope<'_, 'c>) {
        for clause in all {
            match clause {
                Clause::Question(about) => self.about(about, scope),
                Clause::All(conditions) => conditions.iter().for_each(|all| self.clauses(all, scope)),
                Clause::Any(_) | Clause::Not(_) => {}
            }
        }
        // All that holds beside an alternative is known now.
        for clause in all {
            match clause {
                Clause::Any(conditions) => {
                    conditions.iter().for_each(|all| self.clauses(all, &mut scope.alternative()));
                }
                Clause::Not(all) => self.clauses(all, &mut Scope::default()),
                Clause::All(_) | Clause::Question(_) => {}
            }
        }
    }

    fn about<'c>(&mut self, about: &'c About, scope: &mut Scope<'_, 'c>) {
        if self.violations.len() > MOST_VIOLATIONS {
            return;
        }
        let Some(kind) = self.earlier.get(about.question.as_str()) else {
            let id = about.question.chars().take(80).collect::<String>();
            let message = format!("`{id}` is no earlier question that takes an answer");
            let place = format!("{}{}", self.root, about.at);
            let violation = match connective(&id) {
                Some(meant) => {
                    Violation::new(place, Rule::UnknownReference, format!("{message}{INSTEAD}`{meant}`"))
                }
                None => Violation::new(place, Rule::UnknownReference, message)
                    .instead(self.earlier.keys().copied()),
            };
            return self.violations.push(violation);
        };
        let Some(kind) = kind else { return };
        let rules = kind.rules();
        for test in &about.tests {
            let at = if about.is_bare { about.at.clone() } else { join(&about.at, test.name()) };
            let mut faults = faults(test, rules);
            let truth = match test {
                Test::Ne(_) if !faults.is_empty() => "is always true",
                _ => "can never be true",
            };
            for (item, why) in &mut faults {
                if let Some(instead) = instead(&about.question, test, *item, rules) {
                    why.push_str(&format!("{INSTEAD}`{instead}`"));
                }
            }
            if !rules.is_untyped()
                && faults.is_empty()
                && !scope.takes(&about.question, test, rules, self.patience)
            {
                faults.push((None, without_answer(&about.question, test, rules)));
            }
            self.violations.extend(faults.into_iter().map(|(item, why)| {
                let message = format!("this {truth} of `{}`: {why}", about.question);
                let item = item.map(|item| format!("/{item}")).unwrap_or_default();
                Violation::new(format!("{}{at}{item}", self.root), Rule::ImpossibleCondition, message)
            }));
        }
    }
}

/// Why `test` says the same of every answer that `rules` accept, and which of its values is at fault if it has several.
fn faults(test: &Test, rules: &dyn Rules) -> Vec<(Option<usize>, String)> {
    let fault = match test {
        Test::In(values) => {
            let faults = values.values().iter().enumerate();
            let faults = faults.filter_map(|(item, value)| Some((Some(item), misfit(rules, value)?)));
            return faults.take(MOST_VIOLATIONS + 1).collect();
        }
        Test::Eq(value) | Test::Ne(value) => misfit(rules, value),
        Test::Lt(value) | Test::Lte(value) | Test::Gt(value) | Test::Gte(value) => {
            without_order(rules, value)
        }
        Test::Includes(value) => not_included(rules, value),
        Test::Matches(_) if !is_text(rules) => Some(format!("its answer is {}", rules.expects())),
        Test::Matches(_) | Test::Answered(_) => None,
    };
    fault.map(|why| (None, why)).into_iter().collect()
}

pub(super) fn is_text(rules: &dyn Rules) -> bool {
    matches!(rules.example(), Value::String(_))
}

/// What other languages call `any` and `all`.
fn connective(id: &str) -> Option<&'static str> {
    match id {
        "or" => Some("any"),
        "and" => Some("all"),
        _ => None,
    }
}

/// Why no answer to `question` is left for `test`: there is none by itself, or none beside the tests before it.
fn without_answer(question: &str, test: &Test, rules: &dyn Rules) -> String {
    match Scope::default().takes(question, test, rules, &mut Patience::default()) {
        true => "no answer is this and all else that is asked of it; `in` and `any` take one of several"
            .to_owned(),
        false => format!("none is left that is {}", rules.expects()),
    }
}

/// Values of a list that are written out where something else was meant by it.
const FEW: usize = 5;

/// What was meant by `test` of the question `id`, or by its value `item`: an option where the answer is a list, each of
/// several values, words besides the options.
fn instead(id: &str, test: &Test, item: Option<usize>, rules: &dyn Rules) -> Option<String> {
    let includes = |value: &Value| format!("{{\"{id}\": {{\"includes\": {value}}}}}");
    let fits = |value: &Value| misfit(rules, value).is_none();
    let is_option =
        |value: &Value| matches!(rules.example(), Value::Array(_)) && not_included(rules, value).is_none();
    let other = |value: &Value| Value::Object(vec![("other".to_owned(), value.clone())]);
    match test {
        Test::Includes(Value::Array(items)) if items.len() <= FEW && items.iter().all(is_option) => {
            let items: Vec<_> = items.iter().map(includes).collect();
            Some(format!("{{\"any\": [{}]}}", items.join(", ")))
        }
        Test::Ne(list @ Value::Array(items)) if items.len() <= FEW && items.iter().all(fits) => {
            Some(format!("{{\"not\": {{\"{id}\": {list}}}}}"))
        }
        Test::Includes(value) => Some(other(value)).filter(is_option).map(|other| includes(&other)),
        Test::Eq(_) | Test::In(_) => {
            let value = test.values()?.get(item.unwrap_or_default())?;
            let words = [value.clone(), other(value)];
            let equal = |value: &Value| format!("{{\"{id}\": {{\"eq\": {value}}}}}");
            let option = words.iter().find(|value| is_option(value)).map(includes);
            option.or_else(|| words.last().filter(|other| fits(other)).map(equal))
        }
        _ => None,
    }
}

/// Why `value` is not accepted as an answer.
pub(super) fn misfit(rules: &dyn Rules, value: &Value) -> Option<String> {
    rules.check(value, None).into_iter().next().map(|fault| fault.message)
}

/// Why no answer lies before or behind `value`. One that is out of range has its place among them all the same.
fn without_order(rules: &dyn Rules, value: &Value) -> Option<String> {
    let is_of_another_form = |rule| {
        matches!(rule, Rule::TypeMismatch | Rule::InvalidDate | Rule::InvalidTime | Rule::InvalidDatetime)
    };
    let mut faults = rules.check(value, None).into_iter();
    faults.find(|fault| is_of_another_form(fault.rule)).map(|fault| fault.message)
}

/// Why no answer includes `value`.
pub(super) fn not_included(rules: &dyn Rules, value: &Value) -> Option<String> {
    match (rules.example(), value) {
        (Value::String(_), Value::String(_)) => None,
        // Only what is wrong with the option itself: a list of one may be too short.
        (Value::Array(_), _) => {
            let faults = rules.check(&Value::Array(vec![value.clone()]), None);
            faults.into_iter().find(|fault| !fault.at.is_empty()).map(|fault| fault.message)
        }
        _ => Some(format!("its answer is {}", rules.expects())),
    }
}
