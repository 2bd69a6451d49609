//! Regular expressions that authors write, in the syntax of the crate `regex`; matching takes linear time.
//!
//! Linear is not fast: it may take a step for each state of the pattern at each character. What the patterns of a form
//! come to is in `cost`.

use regex_automata::Input;
use regex_automata::meta::{BuildError, Regex};

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles `text` to `limit` bytes at most, or says what is wrong with it.
    pub fn compile(text: &str, limit: usize) -> Result<Self, String> {
        // A lazy DFA is faster on long texts, but takes four times the room, and a megabyte more once it is used.
        let config =
            Regex::config().nfa_size_limit(Some(limit)).onepass_size_limit(Some(1 << 16)).hybrid(false);
        Regex::builder().configure(config).build(text).map(Self).map_err(|error| why(&error))
    }

    /// Whether it is found in `text`.
    pub fn finds(&self, text: &str) -> bool {
        // With a cache of its own: one that is kept would stay as large as the longest text has made it.
        self.0.search_half_with(&mut self.0.create_cache(), &Input::new(text).earliest(true)).is_some()
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        self.0.memory_usage()
    }
}

fn why(error: &BuildError) -> String {
    if error.size_limit().is_some() {
        return "it is too large; say lengths by `max_length`".to_owned();
    }
    let error = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
