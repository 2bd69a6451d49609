//! Refuses tests that no answer can ever satisfy, or that every answer does, given the question they name: a slip would
//! hide a question for good, or show it to all. Each test is looked at by itself.

use std::collections::HashMap;

use crate::domain::condition::{About, Answer, Clause, Condition, Test};
use crate::domain::json::Value;
use crate::domain::question::{Kind, Rules};
use crate::domain::validation::fields::quoted;
use crate::domain::validation::violation::{
    MOST_COMPARED, MOST_VIOLATIONS, Rule, Violation, join, shortened,
};

/// A question with its conditions, by the members they stand in.
pub struct Asked<'a> {
    pub id: Option<&'a str>,
    /// `None` if its definition cannot be read. What is asked of it is then not judged.
    pub kind: Option<&'a Kind>,
    pub conditions: Vec<(&'static str, &'a Condition)>,
}

/// Reports what is wrong with the conditions of `questions`, the questions of a form in their order.
///
/// Reported are references to anything but earlier questions, a `matches` about long texts, and tests that can never be
/// true, or by a slip always are. Once there are more violations than are reported, no further ones are looked for.
pub fn refuse_impossible<'a>(
    questions: impl IntoIterator<Item = Asked<'a>>,
    violations: &mut Vec<Violation>,
) {
    let (mut earlier, mut order, mut compared) = (HashMap::new(), Vec::new(), 0);
    for (place, asked) in questions.into_iter().enumerate() {
        for (name, condition) in asked.conditions {
            let (root, matched) = (format!("/questions/{place}/{name}"), condition.matched);
            Linter { earlier: &earlier, order: &order, compared: &mut compared, root, matched, violations }
                .clauses(&condition.all);
        }
        let takes_answer = asked.kind.is_none_or(|kind| kind.rules().takes_answer());
        if let Some(id) = asked.id.filter(|_| takes_answer) {
            // An id that is used twice is one name.
            if earlier.insert(id, asked.kind).is_none() {
                order.push(id);
            }
        }
    }
}

struct Linter<'a, 'j> {
    earlier: &'j HashMap<&'a str, Option<&'a Kind>>,
    /// The ids of those questions in their order.
    order: &'j [&'a str],
    /// References that were compared with them.
    compared: &'j mut usize,
    root: String,
    /// Characters that answers may have which a `matches` names.
    matched: usize,
    violations: &'j mut Vec<Violation>,
}

impl Linter<'_, '_> {
    fn clauses(&mut self, all: &[Clause]) {
        for clause in all {
            match clause {
                Clause::Question(about) => self.about(about),
                Clause::All(conditions) | Clause::Any(conditions) => {
                    conditions.iter().for_each(|all| self.clauses(all));
                }
                Clause::Not(all) => self.clauses(all),
            }
        }
    }

    fn about(&mut self, about: &About) {
        if self.violations.len() > MOST_VIOLATIONS {
            return;
        }
        match self.earlier.get(about.question.as_str()) {
            Some(Some(kind)) => {
                let rules = kind.rules();
                about.tests.iter().for_each(|test| self.test(about, test, rules));
            }
            Some(None) => {}
            None => self.refuse_reference(about),
        }
    }

    fn refuse_reference(&mut self, about: &About) {
        let id = shortened(&about.question);
        let message = format!("`{id}` is not an earlier question that takes an answer");
        let place = format!("{}{}", self.root, about.at);
        let violation = Violation::new(place, Rule::UnknownReference, message);
        self.violations.push(match connective(&id) {
            Some(meant) => violation.help(format!("write `{meant}`")),
            None if *self.compared >= MOST_COMPARED => violation,
            None => {
                *self.compared += 1;
                violation.allowing(&about.question, self.order.iter().copied())
            }
        });
    }

    fn test(&mut self, about: &About, test: &Test, rules: &dyn Rules) {
        let at = if about.is_bare { about.at.clone() } else { join(&about.at, test.name()) };
        let at = format!("{}{at}", self.root);
        if matches!(test, Test::Matches(_)) && is_text(rules) && rules.longest() > self.matched {
            return self.refuse_long(about, at, rules.longest());
        }
        let faults = faults(test, rules);
        let truth = match test {
            Test::Ne(_) if !faults.is_empty() => "is always true",
            _ => "can never be true",
        };
        for (item, why) in faults {
            let help =
                instead(&about.question, test, item, rules).map(|instead| format!("write `{instead}`"));
            let help = help.or_else(|| unquoted(test, item, rules));
            let message = format!("this {truth} of `{}`: {why}", about.question);
            let item = item.map(|item| format!("/{item}")).unwrap_or_default();
            let violation = Violation::new(format!("{at}{item}"), Rule::ImpossibleCondition, message);
            self.violations.push(Violation { help, ..violation });
        }
    }

    /// Reports a `matches` about answers of up to `longest` characters.
    fn refuse_long(&mut self, About { question, .. }: &About, at: String, longest: usize) {
        let message = format!(
            "`matches` needs answers of at most {} characters, those to `{question}` may have {longest}",
            self.matched
        );
        let help =
            format!("set the `max_length` of `{question}`, or use `includes`, which serves longer texts");
        self.violations.push(Violation::new(at, Rule::InvalidRange, message).help(help));
    }
}

/// Why `test` says the same of every answer that `rules` accept, and which of its values is at fault if it has several.
fn faults(test: &Test, rules: &dyn Rules) -> Vec<(Option<usize>, String)> {
    let fault = match test {
        Test::In(values) => {
            let faults = values.iter().enumerate();
            let faults = faults.filter_map(|(item, value)| Some((Some(item), misfit(rules, value)?)));
            return faults.take(MOST_VIOLATIONS + 1).collect();
        }
        Test::Eq(value) | Test::Ne(value) => misfit(rules, value),
        Test::Lt(value) | Test::Lte(value) | Test::Gt(value) | Test::Gte(value) => {
            without_order(rules, value).or_else(|| out_of_range(test, value, rules))
        }
        Test::Includes(value) => not_included(rules, value),
        Test::Matches(_) if !is_text(rules) => Some(format!("its answer is {}", rules.expects())),
        Test::Matches(_) | Test::Answered(_) => None,
    };
    fault.map(|why| (None, why)).into_iter().collect()
}

fn is_text(rules: &dyn Rules) -> bool {
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
    let in_other_words = |value: &Value| {
        let words = [value.clone(), other(value)];
        let equal = |value: &Value| format!("{{\"{id}\": {{\"eq\": {value}}}}}");
        let option = words.iter().find(|value| is_option(value)).map(includes);
        option.or_else(|| words.last().filter(|other| fits(other)).map(equal))
    };
    match test {
        Test::Includes(Value::Array(items)) if items.len() <= FEW && items.iter().all(is_option) => {
            let items: Vec<_> = items.iter().map(includes).collect();
            Some(format!("{{\"any\": [{}]}}", items.join(", ")))
        }
        Test::Ne(list @ Value::Array(items)) if items.len() <= FEW && items.iter().all(fits) => {
            Some(format!("{{\"not\": {{\"{id}\": {list}}}}}"))
        }
        Test::Includes(value) => Some(other(value)).filter(is_option).map(|other| includes(&other)),
        Test::Eq(value) => in_other_words(value),
        Test::In(values) => in_other_words(values.get(item?)?),
        _ => None,
    }
}

/// How the value of `test`, or its `item`, is written where the text of it is an answer.
fn unquoted(test: &Test, item: Option<usize>, rules: &dyn Rules) -> Option<String> {
    let value = match test {
        Test::Eq(value) | Test::Ne(value) => value,
        Test::In(values) => values.get(item?)?,
        _ => return None,
    };
    let is_text_meant = misfit(rules, &Value::String(value.to_string())).is_none();
    quoted(value).filter(|_| is_text_meant)
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

/// Why no answer lies on that side of `value` which `test` asks for.
fn out_of_range(test: &Test, value: &Value, rules: &dyn Rules) -> Option<String> {
    let [least, greatest] = rules.range();
    let (bound, side) = match test {
        Test::Lt(_) => (least?, "<"),
        Test::Lte(_) => (least?, "<="),
        Test::Gt(_) => (greatest?, ">"),
        _ => (greatest?, ">="),
    };
    let answer = Answer { value: &bound, sense: rules.sense(), longest: rules.longest() };
    // The bound is the answer nearest to that side: if it does not hold for that, it does for none.
    let holds = answer.order(value).is_none() || test.holds(Some(answer));
    (!holds).then(|| format!("its answer is {}, never {side} {value}", rules.expects()))
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
