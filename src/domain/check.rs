//! Holds answers against the questions of a form: which fit, and what is kept besides them.

use std::collections::{HashMap, HashSet};

use super::form::Version;
use super::json::Value;
use super::limits::Limits;
use super::question::Fault;
use super::violation::{Rule, Violation, join};

/// Answers that were not sent and are kept all the same, by their questions' ids.
pub type Defaults<'a> = Vec<(&'a str, &'a Value)>;

impl Version {
    /// Holds `answers`, the members of the object sent, against the questions and reports every problem. Gives the
    /// defaults that are kept with them.
    pub fn check(
        &self,
        answers: &[(String, Value)],
        limits: &Limits,
    ) -> Result<Defaults<'_>, Vec<Violation>> {
        if answers.len() > limits.answers {
            let message = format!("{} answers are too many, {} are allowed", answers.len(), limits.answers);
            return Err(vec![Violation::new("/answers", Rule::TooMany, message)]);
        }
        let sent = Sent::new(answers);
        let (mut violations, mut defaults, mut known) = (Vec::new(), Vec::new(), 0);
        for question in &self.questions {
            let Some(id) = question.id.as_deref() else { continue };
            let answer = sent.find(id);
            known += usize::from(answer.is_some());
            let default = question.kind.rules().default_answer().filter(|_| answer.is_none());
            defaults.extend(default.map(|default| (id, default)));
            let faults = question.check(answer.or(default), limits);
            violations.extend(faults.into_iter().map(|fault| place(id, fault)));
        }
        // No key comes twice.
        if known < answers.len() {
            self.refuse_unknown(answers, &mut violations);
        }
        if violations.is_empty() { Ok(defaults) } else { Err(violations) }
    }

    fn refuse_unknown(&self, answers: &[(String, Value)], violations: &mut Vec<Violation>) {
        let ids: HashSet<&str> = self.ids().collect();
        for (key, _) in answers.iter().filter(|(key, _)| !ids.contains(key.as_str())) {
            let message =
                format!("`{}` is no question of this form", key.chars().take(80).collect::<String>());
            let violation = Violation::new(join("/answers", key), Rule::UnknownQuestion, message);
            violations.push(violation.instead(ids.iter().copied()));
        }
    }
}

fn place(id: &str, fault: Fault) -> Violation {
    Violation::new(join("/answers", id), fault.rule, fault.message).about(id)
}

/// Answers by the ids of their questions: a few are faster looked through, many are not.
enum Sent<'a> {
    Few(&'a [(String, Value)]),
    Many(HashMap<&'a str, &'a Value>),
}

impl<'a> Sent<'a> {
    fn new(answers: &'a [(String, Value)]) -> Self {
        if answers.len() <= 16 {
            return Self::Few(answers);
        }
        Self::Many(answers.iter().map(|(key, value)| (key.as_str(), value)).collect())
    }

    fn find(&self, id: &str) -> Option<&'a Value> {
        match self {
            Self::Few(answers) => answers.iter().find(|(key, _)| key == id).map(|(_, value)| value),
            Self::Many(answers) => answers.get(id).copied(),
        }
    }
}
