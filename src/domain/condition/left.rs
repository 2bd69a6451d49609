//! Whether any answer to a question is left by all that a condition asks of it, or its tests contradict each other.

use std::collections::HashMap;

use super::{Answer, Sense, Test};
use crate::domain::json::Value;
use crate::domain::question::{Rules, size};

/// Tests of one question that are looked at: the first ones.
const TESTS: usize = 20;

/// Values of one test that are looked at, if they are no more.
const VALUES: usize = 100;

/// What must hold where a part of a condition is decided, by the ids of questions.
#[derive(Default)]
pub(super) struct Scope<'s, 'c> {
    outer: Option<&'s Scope<'s, 'c>>,
    tests: HashMap<&'c str, Vec<&'c Test>>,
}

impl<'c> Scope<'_, 'c> {
    /// The same, for one alternative of several.
    pub(super) fn alternative(&self) -> Scope<'_, 'c> {
        Scope { outer: Some(self), tests: HashMap::new() }
    }

    /// Takes in that `test` must hold of the question `id`; false, and nothing done, if then no answer were left. That is
    /// not looked at where it takes more than what is left of `patience`.
    pub(super) fn takes(
        &mut self,
        id: &'c str,
        test: &'c Test,
        rules: &dyn Rules,
        patience: &mut Patience,
    ) -> bool {
        let mut tests = self.tests(id).to_vec();
        tests.push(test);
        if tests.len() > TESTS || !patience.bears(&tests, rules.sense()) {
            return true;
        }
        let leaves = leaves_any(&tests, rules);
        if leaves {
            self.tests.insert(id, tests);
        }
        leaves
    }

    fn tests(&self, id: &str) -> &[&'c Test] {
        match (self.tests.get(id), self.outer) {
            (Some(tests), _) => tests,
            (None, Some(outer)) => outer.tests(id),
            (None, None) => &[],
        }
    }
}

/// Nanoseconds for which the conditions of a form are still looked at, at worst: hundreds of alternatives with long lists of
/// long values would take minutes, in which nothing is written.
pub(super) struct Patience(usize);

impl Default for Patience {
    fn default() -> Self {
        Self(50_000_000)
    }
}

impl Patience {
    /// Whether there is enough of it for `tests` of one question, whose answers have this sense; then it is spent. Once
    /// there was not, nothing is counted any more: that takes its time, too.
    fn bears(&mut self, tests: &[&Test], sense: Sense) -> bool {
        if self.0 == 0 {
            return false;
        }
        let values = tests.iter().find_map(|test| test.values()).filter(|values| values.len() <= VALUES);
        let nanos: usize = tests.iter().map(|test| test.nanos(sense)).sum();
        let left = self.0.checked_sub(nanos.saturating_mul(1 + values.map_or(0, bytes)));
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

/// Bytes of values, each with some more for what it takes to look at it at all.
fn bytes(values: &[Value]) -> usize {
    values.iter().map(|value| 16 + size(value)).sum()
}

/// Whether `tests` can all hold, of an answer or of none.
fn leaves_any(tests: &[&Test], rules: &dyn Rules) -> bool {
    let sense = rules.sense();
    // The same time is written in several ways, and what one does not match another may.
    let is_written_freely = matches!(sense, Sense::Time | Sense::Moment);
    let is_open = |test: &Test| is_written_freely && matches!(test, Test::Matches(_) | Test::Includes(_));
    let fits = |value| tests.iter().all(|test| is_open(test) || test.holds(Some(Answer { value, sense })));
    if tests.iter().all(|test| test.holds(None)) {
        return true;
    }
    match tests.iter().find_map(|test| test.values()) {
        _ if tests.iter().any(|test| matches!(test, Test::Answered(false))) => false,
        // That there is none of none is told where it is read.
        Some(values) => values.is_empty() || values.len() > VALUES || values.iter().any(fits),
        None => leaves_room(tests, rules),
    }
}

/// The least or the greatest that is left, and whether it is itself left out.
type Bound<'v> = (&'v Value, bool);

/// Whether there is room between all lower and upper bounds.
fn leaves_room(tests: &[&Test], rules: &dyn Rules) -> bool {
    let [least, greatest] = rules.range();
    let lows =
        || tests.iter().filter_map(|test| test.low()).chain(least.as_ref().map(|least| (least, false)));
    let highs =
        || tests.iter().filter_map(|test| test.high()).chain(greatest.as_ref().map(|great| (great, false)));
    lows().all(|low| highs().all(|high| has_room(low, high, rules)))
}

fn has_room((low, without_low): Bound<'_>, (high, without_high): Bound<'_>, rules: &dyn Rules) -> bool {
    let first = rules.first(low, without_low);
    let (value, without) = first.as_ref().map_or((low, without_low), |first| (first, false));
    let order = Answer { value, sense: rules.sense() }.order(high);
    order.is_none_or(|order| order.is_lt() || order.is_eq() && !without && !without_high)
}

impl Test {
    /// The values of which the answer must be one.
    pub(super) fn values(&self) -> Option<&[Value]> {
        match self {
            Self::Eq(value) => Some(std::slice::from_ref(value)),
            Self::In(values) => Some(values.values()),
            _ => None,
        }
    }

    /// Nanoseconds that it takes at worst for each byte of an answer, of this sense.
    fn nanos(&self, sense: Sense) -> usize {
        // Moments are read out of their texts each time.
        let each = if sense == Sense::Moment { 32 } else { 1 };
        match self {
            Self::Matches(pattern) => pattern.size(),
            // Texts are compared several bytes at a time.
            Self::In(values) => each * (1 + values.values().len() / 4),
            _ => each,
        }
    }

    fn low(&self) -> Option<Bound<'_>> {
        match self {
            Self::Gt(value) => Some((value, true)),
            Self::Gte(value) => Some((value, false)),
            _ => None,
        }
    }

    fn high(&self) -> Option<Bound<'_>> {
        match self {
            Self::Lt(value) => Some((value, true)),
            Self::Lte(value) => Some((value, false)),
            _ => None,
        }
    }
}
