//! Regular expressions written by form authors, in the syntax of the crate `regex`; matching takes linear time.
//!
//! Linear is not fast: matching may take a step for each state of the pattern at each character. So patterns are
//! compiled within a [`Budget`](crate::domain::validation::budget::Budget), and matched only against texts of bounded
//! length.

pub mod ecma262;

use regex_automata::meta::{Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Dot, Hir, Look, Repetition};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it is too large")]
    TooLarge,
    #[error("{0}")]
    Syntax(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    None,
    Both,
}

#[derive(Debug, Clone)]
pub struct Pattern {
    pub(in crate::domain) text: String,
    anchor: Anchor,
    compiled: Regex,
    /// Cost against the budget: bytes of the compiled pattern, multiplied if it has Unicode word boundaries.
    pub(in crate::domain) cost: usize,
    /// Set for patterns that are matched against very many texts.
    lazy_dfa: Option<Regex>,
}

impl Pattern {
    /// Compiles `text`, if it then costs at most `limit`.
    pub fn compile(text: &str, anchor: Anchor, limit: usize) -> Result<Self, PatternError> {
        let hir = parse(text)?;
        let factor = if hir.properties().look_set().contains_word_unicode() { WORD_BOUNDARY } else { 1 };
        let compiled = nfa(hir, anchor, limit / factor)?;
        let cost = compiled.memory_usage() * factor;
        if cost > limit {
            return Err(PatternError::TooLarge);
        }
        Ok(Self { text: text.to_owned(), anchor, compiled, cost, lazy_dfa: None })
    }

    /// Builds the lazy DFA, which pays off when very many texts are matched.
    pub fn prepare(&mut self) {
        let anchored = |hir| if self.anchor == Anchor::Both { whole(hir) } else { hir };
        self.lazy_dfa = parse(&self.text).and_then(|hir| build(&anchored(hir), config().hybrid(true))).ok();
    }

    /// Whether `text` matches.
    ///
    /// A lazy DFA pays only where many texts share it: it builds a state for each new set of NFA states, and keeps them
    /// in a cache of up to 2 MiB. One text is matched by the NFA, in a cache that is dropped afterwards: a pool of
    /// caches would keep for each pattern and thread what the longest text needed.
    pub fn matches(&self, text: &str) -> bool {
        if let Some(lazy_dfa) = &self.lazy_dfa {
            return lazy_dfa.is_match(text);
        }
        // A clone has its own cache, which is dropped with it.
        self.compiled.clone().is_match(text)
    }

    pub fn size(&self) -> usize {
        self.compiled.memory_usage()
    }
}

/// Cost factor of Unicode word boundaries: the worst-case slowdown, since each inspects the characters beside it.
const WORD_BOUNDARY: usize = 4;

fn parse(text: &str) -> Result<Hir, PatternError> {
    regex_syntax::parse(text).map_err(|error| PatternError::Syntax(reason(&error.to_string())))
}

/// Builds an NFA anchored at the start of the text. An unanchored pattern gets a prefix that skips whole characters,
/// where the engine's own search would restart at each byte.
fn nfa(hir: Hir, anchor: Anchor, limit: usize) -> Result<Regex, PatternError> {
    let skip = Repetition { min: 0, max: None, greedy: false, sub: Box::new(Hir::dot(Dot::AnyChar)) };
    let hir = match anchor {
        Anchor::None => Hir::concat(vec![Hir::look(Look::Start), Hir::repetition(skip), hir]),
        Anchor::Both => whole(hir),
    };
    build(&hir, config().nfa_size_limit(Some(limit)).hybrid(false))
}

fn whole(hir: Hir) -> Hir {
    Hir::concat(vec![Hir::look(Look::Start), hir, Hir::look(Look::End)])
}

fn config() -> Config {
    // Capture slots per state would take a thousand times the memory of the pattern.
    Regex::config().onepass_size_limit(Some(1 << 16)).which_captures(WhichCaptures::None)
}

fn build(hir: &Hir, config: Config) -> Result<Regex, PatternError> {
    Regex::builder().configure(config).build_from_hir(hir).map_err(|error| match error.size_limit() {
        Some(_) => PatternError::TooLarge,
        None => PatternError::Syntax(reason(&error.to_string())),
    })
}

/// The last line of the parser's report, which shows the pattern above it.
fn reason(report: &str) -> String {
    report.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
