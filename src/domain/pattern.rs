//! Regular expressions that authors write, in the syntax of the crate `regex`; matching takes linear time.
//!
//! Linear is not fast: it may take a step for each state of the pattern at each character. What the patterns of a form
//! come to is in `cost`.

use std::ops::Range;

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
    /// What was compiled.
    source: String,
    /// Where in it is what was written.
    text: Range<usize>,
    compiled: Regex,
    /// The same, once it is known that very many texts are looked through.
    fast: Option<Regex>,
}

impl Pattern {
    /// Compiles `text`, which is to be found somewhere in a text, to `limit` bytes at most; or says what is wrong with it.
    pub fn anywhere(text: &str, limit: usize) -> Result<Self, Unfit> {
        Self::between("", text, "", limit)
    }

    /// The same of what a text is to match as a whole.
    pub fn whole(text: &str, limit: usize) -> Result<Self, Unfit> {
        // Alone first: `a)|(b` would make sense only inside our own parentheses.
        compile(text, limit, false)?;
        // A comment, which there is with the flag `x`, ends only with its line.
        Self::between("^(?:", text, ")$", limit)
            .or_else(|why| Self::between("^(?:", text, "\n)$", limit).map_err(|_commented| why))
    }

    fn between(before: &str, text: &str, after: &str, limit: usize) -> Result<Self, Unfit> {
        let source = format!("{before}{text}{after}");
        let compiled = compile(&source, limit, false)?;
        Ok(Self { source, text: before.len()..before.len() + text.len(), compiled, fast: None })
    }

    /// Makes it ready for very many texts: faster in long ones, for several times the room and a megabyte while it is used.
    pub fn learn(&mut self) {
        self.fast = compile(&self.source, usize::MAX, true).ok();
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.source[self.text.clone()]
    }

    /// Whether `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        if let Some(fast) = &self.fast {
            return fast.is_match(text);
        }
        // With a cache of its own: one that is kept would stay as large as the longest text has made it.
        let mut cache = self.compiled.create_cache();
        self.compiled.search_half_with(&mut cache, &Input::new(text).earliest(true)).is_some()
    }

    /// Bytes that it takes, before it is ready for very many texts.
    pub fn size(&self) -> usize {
        self.compiled.memory_usage()
    }
}

/// A lazy DFA is faster on long texts, but takes four times the room, and a megabyte more once it is used.
fn compile(text: &str, limit: usize, with_lazy_dfa: bool) -> Result<Regex, Unfit> {
    let config = Regex::config();
    let config = config.nfa_size_limit(Some(limit)).onepass_size_limit(Some(1 << 16)).hybrid(with_lazy_dfa);
    Regex::builder().configure(config).build(text).map_err(|error| why(&error))
}

fn why(error: &BuildError) -> Unfit {
    if error.size_limit().is_some() {
        return Unfit::TooLarge;
    }
    let error = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    Unfit::Miswritten(error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn one_that_is_ready_for_many_texts_matches_the_same() {
        for (text, is_whole) in [
            ("a|b", false),
            ("a|b", true),
            ("^.{2}$", false),
            (r"(?x)a #b", true),
            (r"\bß\b", false),
            ("(?i)K{3}", true),
        ] {
            let pattern = if is_whole { Pattern::whole } else { Pattern::anywhere };
            let slow = pattern(text, 1 << 20).unwrap();
            let mut fast = slow.clone();
            fast.learn();
            assert!(fast.fast.is_some() && fast.text() == text && fast.size() == slow.size(), "{text}");
            for answer in ["", "a", "ab", "\na", "a\n", "aß", "a ß", "kkK", "kkkk", "K\u{212a}k", "日本"]
            {
                assert_eq!(fast.matches(answer), slow.matches(answer), "{text} {answer:?}");
            }
        }
    }
}
