//! Parsing of conditions. Reports every violation that can be found without the questions.

use crate::domain::condition::{Clause, Condition, Operator, QuestionClause, Test};
use crate::domain::json::Value;
use crate::domain::pattern::{Anchor, Pattern};
use crate::domain::question::is_empty;
use crate::domain::validation::budget::{Budget, BudgetError, Counted};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation, join, shortened};

impl Condition {
    /// Parses the member `name`, if present, within `budget`, and reports every violation.
    pub fn read(fields: &mut Fields<'_, '_>, name: &'static str, budget: &mut Budget) -> Option<Self> {
        let (written, root) = (fields.value(name)?, fields.pointer_to(name));
        Some(Self::parse(written, root, budget, fields.violations))
    }

    /// Parses the condition `written` at the pointer `root`, within `budget`, and reports every violation.
    pub fn parse(
        written: &Value,
        root: String,
        budget: &mut Budget,
        violations: &mut Vec<Violation>,
    ) -> Self {
        let matched = budget.limits.matched;
        let root = ConditionReader { budget, violations, root }.clauses(written, "");
        Self { written: written.clone(), root, matched }
    }
}

struct ConditionReader<'b> {
    budget: &'b mut Budget,
    violations: &'b mut Vec<Violation>,
    /// The pointer to the condition, a prefix of all others.
    root: String,
}

impl ConditionReader<'_> {
    /// Returns what `take` takes from the budget, or reports at `at` that it is exceeded.
    fn within_budget<T>(
        &mut self,
        at: &str,
        take: impl FnOnce(&mut Budget) -> Result<T, BudgetError>,
    ) -> Option<T> {
        let taken = take(self.budget);
        let report = |(rule, message)| self.report(at, rule, message);
        taken.map_err(|error| error.map(report)).ok()
    }

    fn report(&mut self, at: &str, rule: Rule, message: impl Into<String>) {
        self.violations.push(Violation::new(format!("{}{at}", self.root), rule, message));
    }

    fn clauses(&mut self, value: &Value, at: &str) -> Clause {
        let Value::Object(members) = value else {
            let message =
                format!("a condition is an object such as {{\"q1\": \"yes\"}}, not {}", value.kind());
            self.report(at, Rule::TypeMismatch, message);
            return Clause::All(Vec::new());
        };
        if members.is_empty() {
            self.report(at, Rule::Empty, "a condition needs at least one question");
        }
        Clause::All(members.iter().map(|(key, value)| self.clause(key, value, join(at, key))).collect())
    }

    fn clause(&mut self, key: &str, value: &Value, at: String) -> Clause {
        match key {
            "all" => Clause::All(self.list(key, value, &at)),
            "any" => Clause::Any(self.list(key, value, &at)),
            "not" => Clause::Not(Box::new(self.clauses(value, &at))),
            _ => {
                let tests = self.tests(key, value, &at);
                Clause::Question(QuestionClause { question: key.to_owned(), at, tests })
            }
        }
    }

    fn list(&mut self, key: &str, value: &Value, at: &str) -> Vec<Clause> {
        let Value::Array(items) = value else {
            let message = format!("`{key}` is a list of conditions, not {}", value.kind());
            self.report(at, Rule::TypeMismatch, message);
            return Vec::new();
        };
        if items.is_empty() {
            let rule = if key == "any" { Rule::ImpossibleCondition } else { Rule::Empty };
            self.report(at, rule, format!("`{key}` needs at least one condition"));
        }
        let places = items.iter().enumerate();
        places.map(|(place, item)| self.clauses(item, &join(at, &place.to_string()))).collect()
    }

    fn tests(&mut self, question: &str, value: &Value, at: &str) -> Vec<Test> {
        let operators = match value {
            Value::Object(operators) => operators,
            Value::Array(_) => return self.test(Operator::In, value, at.to_owned()).into_iter().collect(),
            _ => return self.test(Operator::Eq, value, at.to_owned()).into_iter().collect(),
        };
        if operators.is_empty() {
            self.report(at, Rule::Empty, format!("`{question}` needs at least one operator"));
        }
        let test = |(name, operand): &(String, Value)| {
            let at = join(at, name);
            match Operator::parse(name) {
                Some(operator) => self.test(operator, operand, at),
                None => {
                    let message = format!("unknown operator `{}`", shortened(name));
                    let violation = Violation::new(self.root.clone() + &at, Rule::UnknownField, message);
                    self.violations.push(violation.allowed(name, Operator::ALL.map(Operator::name)));
                    None
                }
            }
        };
        operators.iter().filter_map(test).collect()
    }

    fn test(&mut self, operator: Operator, operand: &Value, at: String) -> Option<Test> {
        let mut pattern = None;
        match (operator, operand) {
            (Operator::Eq | Operator::Ne, _)
            | (
                Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte,
                Value::Number(_) | Value::String(_),
            ) => self.value(operand, &at)?,
            (Operator::In, Value::Array(items)) => self.values(items, &at)?,
            (Operator::Includes, _) => {
                self.within_budget(&at, |budget| budget.count(Counted::Includes))?;
                self.value(operand, &at)?;
            }
            (Operator::Matches, Value::String(text)) => pattern = Some(self.pattern(text, &at)?),
            (Operator::Answered, Value::Bool(_)) => {}
            (_, other) => {
                let expected = match operator {
                    Operator::In => "`in` is a list of values",
                    Operator::Matches => "`matches` is text",
                    Operator::Answered => "`answered` is true or false",
                    _ => "only a number or text can be compared",
                };
                self.report(&at, Rule::TypeMismatch, format!("{expected}, not {}", other.kind()));
                return None;
            }
        }
        Some(Test { at, operator, operand: operand.clone(), pattern })
    }

    /// Checks a value that answers are compared with.
    fn value(&mut self, operand: &Value, at: &str) -> Option<()> {
        if is_empty(operand) {
            let pointer = format!("{}{at}", self.root);
            let violation = Violation::new(pointer, Rule::ImpossibleCondition, "no answer is ever empty");
            self.violations.push(violation.help("write `{\"answered\": false}` to ask for no answer"));
            return None;
        }
        self.within_budget(at, |budget| budget.count(Counted::Values))
    }

    fn values(&mut self, items: &[Value], at: &str) -> Option<()> {
        if items.is_empty() {
            self.report(at, Rule::ImpossibleCondition, "`in` needs at least one value");
        }
        let places = items.iter().enumerate();
        // Collected first, so that every item is checked.
        let checked: Vec<_> =
            places.map(|(place, item)| self.value(item, &join(at, &place.to_string()))).collect();
        checked.into_iter().collect()
    }

    fn pattern(&mut self, text: &str, at: &str) -> Option<Pattern> {
        self.within_budget(at, |budget| {
            budget.count(Counted::Matches)?;
            budget.compile("matches", text, Anchor::None)
        })
    }
}
