//! The limits for a definition, and how much of what its questions share is left while they are read.
//!
//! Nothing is compiled beyond a budget: hundreds of large patterns would take seconds, and hundreds of megabytes.

use super::limits::Limits;
use super::pattern::{Anchor, Pattern, PatternError};
use super::violation::Rule;

/// Bytes that any pattern may compile to: far beyond what was ever accepted, so that no text takes all memory.
const MAX_COMPILED: usize = 16 << 20;

/// What is left for the questions of a form that are still to be read.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Limits,
    pattern_bytes: Remaining,
    pattern_text: Remaining,
    matches: Remaining,
    includes: Remaining,
    values: Remaining,
}

/// A broken rule and its message; `None` where an earlier question was reported for the same.
pub type Refused = Option<(Rule, String)>;

/// An amount that is left; `None` once more was asked for, which is reported once.
#[derive(Debug, Clone, Copy)]
struct Remaining(Option<usize>);

impl Remaining {
    fn take(&mut self, amount: usize, report: impl FnOnce() -> (Rule, String)) -> Result<(), Refused> {
        let Some(left) = self.0 else { return Err(None) };
        self.0 = left.checked_sub(amount);
        if self.0.is_some() { Ok(()) } else { Err(Some(report())) }
    }
}

impl Budget {
    /// The whole budget of a form.
    pub fn new(limits: &Limits) -> Self {
        let all = |amount| Remaining(Some(amount));
        Self {
            limits: *limits,
            pattern_bytes: all(limits.patterns),
            pattern_text: all(limits.pattern_text),
            matches: all(limits.matches),
            includes: all(limits.includes),
            values: all(limits.values),
        }
    }

    /// The limits, where questions do not share them.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts a `matches` test.
    pub(super) fn count_matches(&mut self) -> Result<(), Refused> {
        let most = self.limits.matches;
        self.matches.take(1, || {
            (Rule::TooMany, format!("too many `matches` in the conditions of this form: {most} are allowed"))
        })
    }

    /// Counts an `includes` test.
    pub(super) fn count_includes(&mut self) -> Result<(), Refused> {
        let most = self.limits.includes;
        self.includes.take(1, || {
            (Rule::TooMany, format!("too many `includes` in the conditions of this form: {most} are allowed"))
        })
    }

    /// Counts a value that answers are compared with.
    pub(super) fn count_value(&mut self) -> Result<(), Refused> {
        let most = self.limits.values;
        self.values.take(1, || {
            (Rule::TooMany, format!("too many values in the conditions of this form: {most} are allowed"))
        })
    }

    /// Compiles `text`, the value of the member `name`.
    pub(super) fn compile(&mut self, name: &str, text: &str, anchor: Anchor) -> Result<Pattern, Refused> {
        let most = self.limits.pattern_text;
        self.pattern_text.take(text.chars().count(), || {
            let message =
                format!("the patterns of this form have more than {most} characters, up to this one");
            (Rule::InvalidPattern, message)
        })?;
        let left = self.pattern_bytes.0.ok_or(None)?;
        match Pattern::compile(text, anchor, left.min(MAX_COMPILED)) {
            Ok(pattern) => {
                self.pattern_bytes.0 = Some(left - pattern.cost());
                Ok(pattern)
            }
            Err(PatternError::Syntax(why)) => {
                Err(Some((Rule::InvalidPattern, format!("invalid `{name}`: {why}"))))
            }
            Err(PatternError::TooLarge) => Err(Some((Rule::InvalidPattern, self.too_large(name, left)))),
        }
    }

    /// What is wrong with a pattern that does not compile to the bytes `left`. One that is too large by itself leaves them to
    /// others.
    fn too_large(&mut self, name: &str, left: usize) -> String {
        let most = self.limits.patterns.min(MAX_COMPILED);
        let subject = if left < self.limits.patterns {
            self.pattern_bytes.0 = None;
            "the patterns of this form, up to this one, compile".to_owned()
        } else {
            format!("`{name}` compiles")
        };
        format!(
            "{subject} to more than {} KiB; set `max_length` instead of `{{1,80}}`, write `[0-9]` for `\\d`",
            most / 1024
        )
    }
}
