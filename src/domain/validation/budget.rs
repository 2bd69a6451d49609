//! The limits that the questions of a form share, counted down while its definition is parsed.
//!
//! Nothing is compiled beyond the budget: hundreds of large patterns would take seconds and hundreds of megabytes.

use crate::domain::pattern::{Anchor, Pattern, PatternError};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Rule;

/// Maximum bytes of any compiled pattern, even without limits: far more than was ever accepted, but bounded.
const MAX_COMPILED: usize = 16 << 20;

#[derive(Debug, Clone)]
pub struct Budget {
    pub(in crate::domain) limits: Limits,
    pattern_bytes: Remaining,
    pattern_text: Remaining,
    matches: Remaining,
    includes: Remaining,
    values: Remaining,
    defaults: Remaining,
}

/// An element of conditions that is counted across a form.
#[derive(Debug, Clone, Copy)]
pub(in crate::domain) enum Counted {
    Matches,
    Includes,
    Values,
}

/// The budget is exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetError {
    /// An earlier question exceeded the limit, and was reported.
    AlreadyReported,
    /// The broken rule and its message.
    Exceeded(Rule, String),
}

/// A remaining amount; `None` once it was exceeded, which is reported only once.
#[derive(Debug, Clone, Copy)]
struct Remaining(Option<usize>);

impl Remaining {
    fn take(&mut self, amount: usize, report: impl FnOnce() -> BudgetError) -> Result<(), BudgetError> {
        let Some(left) = self.0 else { return Err(BudgetError::AlreadyReported) };
        self.0 = left.checked_sub(amount);
        if self.0.is_some() { Ok(()) } else { Err(report()) }
    }
}

impl Budget {
    pub fn new(limits: &Limits) -> Self {
        let all = |amount| Remaining(Some(amount));
        Self {
            limits: *limits,
            pattern_bytes: all(limits.patterns),
            pattern_text: all(limits.pattern_text),
            matches: all(limits.matches),
            includes: all(limits.includes),
            values: all(limits.values),
            defaults: all(limits.defaults),
        }
    }

    /// Counts one more of `what`.
    pub(in crate::domain) fn count(&mut self, what: Counted) -> Result<(), BudgetError> {
        let Limits { matches, includes, values, .. } = self.limits;
        let (left, most, name, advice) = match what {
            Counted::Matches => (&mut self.matches, matches, "`matches`", "use `in` or `includes` for some"),
            Counted::Includes => (&mut self.includes, includes, "`includes`", "use `eq` or `in` for some"),
            Counted::Values => (&mut self.values, values, "values", "compare with fewer"),
        };
        left.take(1, || {
            let found = format!("the conditions of this form have more than {most} {name}");
            BudgetError::Exceeded(Rule::TooMany, format!("{found}: {advice}, or split the form"))
        })
    }

    /// Counts a default of `bytes` bytes.
    pub(in crate::domain) fn count_default(&mut self, bytes: usize) -> Result<(), BudgetError> {
        let most = self.limits.defaults / 1024;
        self.defaults.take(bytes, || {
            let message = format!("all defaults up to this one have more than {most} KiB together");
            BudgetError::Exceeded(Rule::TooLong, message)
        })
    }

    /// Compiles `text`, the value of the member `name`.
    pub(in crate::domain) fn compile(
        &mut self,
        name: &str,
        text: &str,
        anchor: Anchor,
    ) -> Result<Pattern, BudgetError> {
        let most = self.limits.pattern_text;
        self.pattern_text.take(text.chars().count(), || {
            let message = format!("all patterns up to this one have more than {most} characters together");
            BudgetError::Exceeded(
                Rule::InvalidPattern,
                format!("{message}: shorten this one or an earlier one"),
            )
        })?;
        let left = self.pattern_bytes.0.ok_or(BudgetError::AlreadyReported)?;
        match Pattern::compile(text, anchor, left.min(MAX_COMPILED)) {
            Ok(pattern) => {
                self.pattern_bytes.0 = Some(left - pattern.cost);
                Ok(pattern)
            }
            Err(PatternError::Syntax(why)) => {
                Err(BudgetError::Exceeded(Rule::InvalidPattern, format!("invalid `{name}`: {why}")))
            }
            Err(PatternError::TooLarge) => {
                Err(BudgetError::Exceeded(Rule::InvalidPattern, self.too_large(name, left)))
            }
        }
    }

    /// Describes a pattern that exceeds the remaining bytes `left`. One that is too large by itself does not use them up.
    fn too_large(&mut self, name: &str, left: usize) -> String {
        let most = self.limits.patterns.min(MAX_COMPILED) / 1024;
        if left == self.limits.patterns {
            return format!("`{name}` compiles to more than {most} KiB: {ADVICE}");
        }
        self.pattern_bytes.0 = None;
        format!("all patterns up to this one compile to more than {most} KiB together: {ADVICE}")
    }
}

const ADVICE: &str = r"write `[A-Za-z0-9_]` for `\w` and `[0-9]` for `\d`, repeat less, since `{2,30}` takes 30 times the space, and limit lengths by `max_length`";
