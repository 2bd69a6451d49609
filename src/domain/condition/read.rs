//! Parsing of conditions. Reports every violation that can be found without the questions.

use crate::domain::condition::{Clause, Clauses, Condition, QuestionClause, Test};
use crate::domain::json::Value;
use crate::domain::pattern::{Anchor, Pattern};
use crate::domain::question::is_empty;
use crate::domain::validation::budget::{Budget, BudgetError, Counted};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::{Rule, Violation, join, shortened};

/// The operators, in the order of suggestions.
const OPERATORS: [&str; 10] = ["eq", "ne", "lt", "lte", "gt", "gte", "in", "includes", "matches", "answered"];

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
        let all = ConditionReader { budget, violations, root }.clauses(written, "");
        Self { written: written.clone(), all, matched }
    }
}

struct ConditionReader<'b> {
    budget: &'b mut Budget,
    violations: &'b mut Vec<Violation>,
    /// The pointer to the condition, a prefix of all others.
    root: String,
}

impl ConditionReader<'_> {
    /// Reports the error of `result` at `at`, and returns its value.
    fn within_budget<T>(&mut self, at: &str, result: Result<T, BudgetError>) -> Option<T> {
        result
            .map_err(|error| {
                if let BudgetError::Exceeded(rule, message) = error {
                    self.report(at, rule, message);
                }
            })
            .ok()
    }

    fn report(&mut self, at: &str, rule: Rule, message: impl Into<String>) {
        self.violations.push(Violation::new(format!("{}{at}", self.root), rule, message));
    }

    fn clauses(&mut self, value: &Value, at: &str) -> Clauses {
        let Value::Object(members) = value else {
            let message =
                format!("a condition is an object such as {{\"q1\": \"yes\"}}, not {}", value.kind());
            self.report(at, Rule::TypeMismatch, message);
            return Clauses::new();
        };
        if members.is_empty() {
            self.report(at, Rule::Empty, "a condition needs at least one question");
        }
        members.iter().map(|(key, value)| self.clause(key, value, &join(at, key))).collect()
    }

    fn clause(&mut self, key: &str, value: &Value, at: &str) -> Clause {
        match key {
            "all" => Clause::All(self.list(key, value, at)),
            "any" => Clause::Any(self.list(key, value, at)),
            "not" => Clause::Not(self.clauses(value, at)),
            _ => Clause::Question(self.question(key, value, at)),
        }
    }

    fn list(&mut self, key: &str, value: &Value, at: &str) -> Vec<Clauses> {
        let Value::Array(items) = value else {
            let message = format!("`{key}` is a list of conditions, not {}", value.kind());
            self.report(at, Rule::TypeMismatch, message);
            return Vec::new();
        };
        match key {
            "any" if items.is_empty() => {
                self.report(at, Rule::ImpossibleCondition, "`any` needs at least one condition");
            }
            _ if items.is_empty() => self.report(at, Rule::Empty, "`all` needs at least one condition"),
            _ => {}
        }
        let places = items.iter().enumerate();
        places.map(|(place, item)| self.clauses(item, &join(at, &place.to_string()))).collect()
    }

    fn question(&mut self, question: &str, value: &Value, at: &str) -> QuestionClause {
        let is_bare = !matches!(value, Value::Object(_));
        let tests = match value {
            Value::Object(operators) => {
                if operators.is_empty() {
                    self.report(at, Rule::Empty, format!("`{question}` needs at least one operator"));
                }
                let test = |(name, operand): &(String, Value)| self.test(name, operand, &join(at, name));
                operators.iter().filter_map(test).collect()
            }
            Value::Array(_) => self.one_of(value, at).into_iter().collect(),
            _ => self.value(value, at).map(Test::Eq).into_iter().collect(),
        };
        QuestionClause { question: question.to_owned(), at: at.to_owned(), is_bare, tests }
    }

    fn test(&mut self, name: &str, operand: &Value, at: &str) -> Option<Test> {
        Some(match name {
            "eq" => Test::Eq(self.value(operand, at)?),
            "ne" => Test::Ne(self.value(operand, at)?),
            "lt" => Test::Lt(self.ordered(operand, at)?),
            "lte" => Test::Lte(self.ordered(operand, at)?),
            "gt" => Test::Gt(self.ordered(operand, at)?),
            "gte" => Test::Gte(self.ordered(operand, at)?),
            "in" => self.one_of(operand, at)?,
            "includes" => {
                let granted = self.budget.count(Counted::Includes);
                self.within_budget(at, granted)?;
                Test::Includes(self.value(operand, at)?)
            }
            "matches" => Test::Matches(self.pattern(operand, at)?),
            "answered" => Test::Answered(self.flag(operand, at)?),
            _ => {
                self.unknown(name, at);
                return None;
            }
        })
    }

    fn unknown(&mut self, name: &str, at: &str) {
        let message = format!("unknown operator `{}`", shortened(name));
        let violation = Violation::new(format!("{}{at}", self.root), Rule::UnknownField, message);
        self.violations.push(violation.allowed(name, OPERATORS));
    }

    fn value(&mut self, operand: &Value, at: &str) -> Option<Value> {
        if is_empty(operand) {
            let pointer = format!("{}{at}", self.root);
            let violation = Violation::new(pointer, Rule::ImpossibleCondition, "no answer is ever empty");
            self.violations.push(violation.help("write `{\"answered\": false}` to ask for no answer"));
            return None;
        }
        let granted = self.budget.count(Counted::Values);
        self.within_budget(at, granted)?;
        Some(operand.clone())
    }

    fn ordered(&mut self, operand: &Value, at: &str) -> Option<Value> {
        if !matches!(operand, Value::Number(_) | Value::String(_)) {
            let message = format!("only a number or text can be compared, not {}", operand.kind());
            self.report(at, Rule::TypeMismatch, message);
            return None;
        }
        self.value(operand, at)
    }

    fn one_of(&mut self, operand: &Value, at: &str) -> Option<Test> {
        let Value::Array(items) = operand else {
            self.report(at, Rule::TypeMismatch, format!("`in` is a list of values, not {}", operand.kind()));
            return None;
        };
        if items.is_empty() {
            self.report(at, Rule::ImpossibleCondition, "`in` needs at least one value");
        }
        let places = items.iter().enumerate();
        let values: Vec<_> =
            places.map(|(place, item)| self.value(item, &join(at, &place.to_string()))).collect();
        values.into_iter().collect::<Option<_>>().map(Test::In)
    }

    fn flag(&mut self, operand: &Value, at: &str) -> Option<bool> {
        match operand {
            Value::Bool(flag) => Some(*flag),
            other => {
                let message = format!("`answered` is true or false, not {}", other.kind());
                self.report(at, Rule::TypeMismatch, message);
                None
            }
        }
    }

    fn pattern(&mut self, operand: &Value, at: &str) -> Option<Pattern> {
        let Value::String(text) = operand else {
            self.report(at, Rule::TypeMismatch, format!("`matches` is text, not {}", operand.kind()));
            return None;
        };
        let granted = self.budget.count(Counted::Matches);
        self.within_budget(at, granted)?;
        let compiled = self.budget.compile("matches", text, Anchor::None);
        self.within_budget(at, compiled)
    }
}
