//! Counts of different texts in bounded memory.

use std::collections::HashMap;

use super::report::{ChoiceValue, ValueCount};

/// Characters of the longest text that is counted, and of those that are shown.
const MAX_TEXT: usize = 200;

/// Maximum number of texts in a list.
const LISTED: usize = 100;

/// Bytes that an entry takes beside its text.
const ENTRY: usize = 64;

/// How often each text occurs.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: HashMap<Box<str>, u64>,
    /// Bytes left for more entries.
    memory: usize,
    /// Whether a text did not fit.
    is_full: bool,
    has_long: bool,
    total: u64,
}

impl Tally {
    pub(super) fn new(memory: usize) -> Self {
        Self { memory, ..Self::default() }
    }

    pub(super) fn add(&mut self, text: &str) {
        self.total += 1;
        if let Some(count) = self.counts.get_mut(text) {
            *count += 1;
        } else if cut(text).is_some() {
            self.has_long = true;
        } else if let Some(rest) = self.memory.checked_sub(text.len() + ENTRY) {
            self.memory = rest;
            self.counts.insert(text.into(), 1);
        } else {
            self.is_full = true;
        }
    }

    /// The number of different texts, if it is known.
    pub(super) fn distinct(&self) -> Option<u64> {
        (!self.is_full && !self.has_long).then_some(self.counts.len() as u64)
    }

    /// Returns the texts that occur at least `least` times, the most frequent first, and the number of occurrences that are not
    /// in this list. It is empty if the most frequent texts are not known.
    pub(super) fn most_frequent(self, least: u64) -> (Vec<ValueCount>, u64) {
        let is_listed = |(_, count): &(Box<str>, u64)| *count >= least && !self.is_full;
        let mut listed: Vec<_> = self.counts.into_iter().filter(is_listed).collect();
        listed.sort_unstable_by(|(text, count), (other, of_other)| of_other.cmp(count).then(text.cmp(other)));
        listed.truncate(LISTED);
        let counted: u64 = listed.iter().map(|(_, count)| count).sum();
        let listed = listed.into_iter().map(|(text, count)| {
            let value = ChoiceValue::Text(text.into());
            ValueCount { count, ..ValueCount::new(value, None) }
        });
        (listed.collect(), self.total - counted)
    }
}

/// Returns the beginning of a text that is too long to be counted.
pub(super) fn cut(text: &str) -> Option<&str> {
    let (end, _) = text.char_indices().nth(MAX_TEXT).filter(|_| text.len() > MAX_TEXT)?;
    Some(&text[..end])
}
