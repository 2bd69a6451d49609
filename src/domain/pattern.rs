//! Regular expressions that authors write, in the syntax of the crate `regex`; matching takes linear time.
//!
//! Linear is not fast: it may take a step for each state of the pattern at each character. What the patterns of a form
//! come to is in `cost`.

use regex_automata::Input;
use regex_automata::meta::{BuildError, Regex};

/// Why a text makes no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("it is too large")]
    TooLarge,
    /// What is wrong with how it is written.
    #[error("{0}")]
    Miswritten(String),
}

/// A regular expression.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    compiled: Regex,
}

impl Pattern {
    /// Compiles `text`, which is to be found somewhere in a text, to `limit` bytes at most; or says what is wrong with it.
    pub fn anywhere(text: &str, limit: usize) -> Result<Self, Unfit> {
        Ok(Self { text: text.to_owned(), compiled: compile(text, limit)? })
    }

    /// The same of what a text is to match as a whole.
    pub fn whole(text: &str, limit: usize) -> Result<Self, Unfit> {
        // Alone first: `a)|(b` would make sense only inside our own parentheses.
        compile(text, limit)?;
        // A comment, which there is with the flag `x`, ends only with its line.
        let compiled = compile(&format!("^(?:{text})$"), limit)
            .or_else(|why| compile(&format!("^(?:{text}\n)$"), limit).map_err(|_same| why))?;
        Ok(Self { text: text.to_owned(), compiled })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        // With a cache of its own: one that is kept would stay as large as the longest text has made it.
        let mut cache = self.compiled.create_cache();
        self.compiled.search_half_with(&mut cache, &Input::new(text).earliest(true)).is_some()
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        self.compiled.memory_usage()
    }
}

fn compile(text: &str, limit: usize) -> Result<Regex, Unfit> {
    // A lazy DFA is faster on long texts, but takes four times the room, and a megabyte more once it is used.
    let config = Regex::config().nfa_size_limit(Some(limit)).onepass_size_limit(Some(1 << 16)).hybrid(false);
    Regex::builder().configure(config).build(text).map_err(|error| why(&error))
}

fn why(error: &BuildError) -> Unfit {
    if error.size_limit().is_some() {
        return Unfit::TooLarge;
    }
    let error = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    Unfit::Miswritten(error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
}
