//! The limits that the questions of a form share, counted down while its definition is parsed.
//!
//! Nothing is compiled beyond the budget: hundreds of large patterns would take seconds and hundreds of megabytes.

use crate::domain::pattern::{Anchor, Pattern, PatternError};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Rule;

/// Maximum bytes of any compiled pattern, even without limits: far more than was ever accepted, but bounded.
const MAX_COMPILED: usize = 16 << 20;

/// The remaining amounts; `None` once one was exceeded.
#[derive(Debug, Clone)]
pub struct Budget {
    pub(in crate::domain) limits: Limits,
    pattern_bytes: Option<usize>,
    pattern_text: Option<usize>,
    matches: Option<usize>,
    includes: Option<usize>,
    values: Option<usize>,
    defaults: Option<usize>,
}

/// An element of conditions that is counted across a form.
#[derive(Debug, Clone, Copy)]
pub(in crate::domain) enum Counted {
    Matches,
    Includes,
    Values,
}

/// The budget is exceeded: the broken rule and its message; `None` if an earlier question exceeded the same limit, which is
/// reported only once.
pub type BudgetError = Option<(Rule, String)>;

/// Takes `amount` from what is `left`.
fn take(
    left: &mut Option<usize>,
    amount: usize,
    report: impl FnOnce() -> (Rule, String),
) -> Result<(), BudgetError> {
    let before = left.ok_or(None)?;
    *left = before.checked_sub(amount);
    left.map(|_| ()).ok_or_else(|| Some(report()))
}

impl Budget {
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            pattern_bytes: Some(limits.patterns),
            pattern_text: Some(limits.pattern_text),
            matches: Some(limits.matches),
            includes: Some(limits.includes),
            values: Some(limits.values),
            defaults: Some(limits.defaults),
        }
    }

    pub(in crate::domain) fn count(&mut self, what: Counted) -> Result<(), BudgetError> {
        let Limits { matches, includes, values, .. } = self.limits;
        let (left, most, name, advice) = match what {
            Counted::Matches => (&mut self.matches, matches, "`matches`", "use `in` or `includes` for some"),
            Counted::Includes => (&mut self.includes, includes, "`includes`", "use `eq` or `in` for some"),
            Counted::Values => (&mut self.values, values, "values", "compare with fewer"),
        };
        take(left, 1, || {
            let found = format!("the conditions of this form have more than {most} {name}");
            (Rule::TooMany, format!("{found}: {advice}, or split the form"))
        })
    }

    /// Counts a default of `bytes` bytes.
    pub(in crate::domain) fn count_default(&mut self, bytes: usize) -> Result<(), BudgetError> {
        let most = self.limits.defaults / 1024;
        take(&mut self.defaults, bytes, || {
            (Rule::TooLong, format!("all defaults up to this one have more than {most} KiB together"))
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
        take(&mut self.pattern_text, text.chars().count(), || {
            let message = format!("all patterns up to this one have more than {most} characters together");
            (Rule::InvalidPattern, format!("{message}: shorten this one or an earlier one"))
        })?;
        let left = self.pattern_bytes.ok_or(None)?;
        let most = self.limits.patterns.min(MAX_COMPILED) / 1024;
        let message = match Pattern::compile(text, anchor, left.min(MAX_COMPILED)) {
            Ok(pattern) => {
                self.pattern_bytes = Some(left - pattern.cost);
                return Ok(pattern);
            }
            Err(PatternError::Syntax(why)) => format!("invalid `{name}`: {why}"),
            // One that is too large by itself does not use up the rest.
            Err(PatternError::TooLarge) if left == self.limits.patterns => {
                format!("`{name}` compiles to more than {most} KiB: {ADVICE}")
            }
            Err(PatternError::TooLarge) => {
                self.pattern_bytes = None;
                format!("all patterns up to this one compile to more than {most} KiB together: {ADVICE}")
            }
        };
        Err(Some((Rule::InvalidPattern, message)))
    }
}

const ADVICE: &str = r"write `[A-Za-z0-9_]` for `\w` and `[0-9]` for `\d`, repeat less, since `{2,30}` takes 30 times the space, and limit lengths by `max_length`";
