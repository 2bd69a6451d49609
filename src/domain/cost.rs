//! What it costs to look through answers for patterns and parts of texts: room and time.
//!
//! At worst a pattern of so many bytes takes so many nanoseconds for each byte of a text: a step of 20 for each of its
//! states, which have 24 bytes at least. Most take a thousandth of that.

use std::collections::HashMap;

use super::condition::{Condition, Search};
use super::form::Version;
use super::json::Value;
use super::limits::MAX_PATTERN_COST;
use super::question::{Kind, Question, size};
use super::violation::{Rule, Violation};

/// Characters that every answer counts as at least: a pattern takes room, however short its answers are.
const SHORTEST_CHARS: usize = 1_000;

/// What a question has patterns in.
pub type Patterned<'a> = (&'a Kind, [&'a Option<Condition>; 2]);

/// Shows `see` every search of a question, and the id of the question whose answers it looks through: `None` is itself.
fn each_of<'a>((kind, conditions): Patterned<'a>, see: &mut dyn FnMut(Option<&'a str>, Search<'a>)) {
    kind.rules().pattern().into_iter().for_each(|pattern| see(None, Search::Pattern(pattern)));
    for condition in conditions.into_iter().flatten() {
        condition.each_search(&mut |question, search| see(Some(question), search));
    }
}

/// The same of all `questions`, with the place of each.
fn each_search<'a>(questions: &'a [Question], mut see: impl FnMut(usize, &'a str, Search<'a>)) {
    for (place, asked) in questions.iter().enumerate() {
        let own = asked.id.as_deref().unwrap_or_default();
        let patterned = (&asked.kind, [&asked.show_if, &asked.required_if]);
        each_of(patterned, &mut |question, search| see(place, question.unwrap_or(own), search));
    }
}

/// Bytes that what runs a pattern takes besides it.
const ENGINE_BYTES: usize = 4_000;

impl Search<'_> {
    /// Bytes that it takes.
    fn bytes(self) -> usize {
        if let Self::Pattern(pattern) = self { pattern.size() } else { 0 }
    }

    /// Nanoseconds that it takes at worst for each byte of a text, or of a list's items.
    fn nanos(self) -> usize {
        if let Self::Pattern(pattern) = self { pattern.size() } else { 3 }
    }
}

impl Version {
    /// Whether answers are looked through at all.
    pub fn searches(&self) -> bool {
        let mut searches = false;
        each_search(&self.questions, |_, _, _| searches = true);
        searches
    }

    /// Bytes that its patterns take.
    pub fn pattern_bytes(&self) -> usize {
        let mut bytes = 0;
        each_search(&self.questions, |_, _, search| {
            bytes += if let Search::Pattern(pattern) = search { pattern.size() + ENGINE_BYTES } else { 0 };
        });
        bytes
    }

    /// Nanoseconds that it takes at worst to look through `answers`. There may be very many of them: it is counted on the
    /// way to whoever refuses that.
    pub fn work(&self, answers: &[(String, Value)]) -> usize {
        let mut nanos = HashMap::<_, usize>::new();
        each_search(&self.questions, |_, question, search| {
            let nanos = nanos.entry(question).or_default();
            *nanos = nanos.saturating_add(search.nanos());
        });
        let searched = answers.iter().filter_map(|(id, answer)| Some((nanos.get(id.as_str())?, answer)));
        searched.map(|(nanos, answer)| nanos.saturating_mul(size(answer))).fold(0, usize::saturating_add)
    }
}

/// What is left of what the patterns of a form may cost, while its questions are read.
pub struct Budget(Option<usize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Some(MAX_PATTERN_COST))
    }
}

impl Budget {
    /// Whether there is room for the patterns of the question at `place`, whose answers may be short; reports the first for
    /// which there is none. It is not to be kept: hundreds of large patterns take hundreds of megabytes.
    pub fn takes(&mut self, place: usize, patterned: Patterned<'_>, violations: &mut Vec<Violation>) -> bool {
        let mut bytes = 0;
        each_of(patterned, &mut |_, search| bytes += search.bytes());
        bytes == 0 || self.spend(place, bytes.saturating_mul(SHORTEST_CHARS), violations)
    }

    fn spend(&mut self, place: usize, cost: usize, violations: &mut Vec<Violation>) -> bool {
        let Some(left) = self.0 else { return false };
        self.0 = left.checked_sub(cost);
        if self.0.is_none() {
            let message = "the patterns of this form, up to this question, are too large for answers as long as theirs; \
                           say lengths by `max_length` and not by `{1,80}`, write `[0-9]` for `\\d`, or ask for shorter \
                           answers";
            let pointer = format!("/questions/{place}");
            violations.push(Violation::new(pointer, Rule::InvalidPattern, message));
        }
        self.0.is_some()
    }
}

/// Reports the question with which the patterns of `questions`, the questions of a form, become too costly.
pub fn refuse_costly(questions: &[Question], violations: &mut Vec<Violation>) {
    let longest = |id: &str| {
        let named = questions.iter().find(|question| question.id.as_deref() == Some(id));
        named.map_or(0, |question| question.kind.rules().longest()).max(SHORTEST_CHARS)
    };
    let mut budget = Budget::default();
    each_search(questions, |place, question, search| {
        budget.spend(place, search.bytes().saturating_mul(longest(question)), violations);
    });
}
