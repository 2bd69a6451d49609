//! Counts of different texts in bounded memory.

use std::collections::HashMap;

use super::report::{ChoiceValue, ValueCount};

/// Characters of the longest text that a summary has: that of an option.
const MAX_TEXT: usize = 300;

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
        } else if let Some(rest) = self.memory.checked_sub(text.len() + ENTRY) {
            self.memory = rest;
            self.counts.insert(text.into(), 1);
        } else {
            self.is_full = true;
        }
    }

    /// The number of different texts, if it is known.
    pub(super) fn distinct(&self) -> Option<u64> {
        (!self.is_full).then_some(self.counts.len() as u64)
    }

    /// Returns the texts that occur at least `least` times, the most frequent first, and the number of occurrences that are not
    /// in this list. It is empty if the most frequent texts are not known.
    pub(super) fn most_frequent(self, least: u64) -> (Vec<ValueCount>, u64) {
        let is_listed = |(_, count): &(Box<str>, u64)| *count >= least && !self.is_full;
        let mut listed: Vec<_> = self.counts.into_iter().filter(is_listed).collect();
        listed.sort_unstable_by(|(text, count), (other, of_other)| of_other.cmp(count).then(text.cmp(other)));
        listed.truncate(LISTED);
        let counted: u64 = listed.iter().map(|(_, count)| count).sum();
        let value =
            |(text, count): (Box<str>, u64)| ValueCount { count, ..ChoiceValue::Text(cut(&text)).into() };
        (listed.into_iter().map(value).collect(), self.total - counted)
    }
}

/// Returns `text`, cut if it is longer than a summary has it.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
