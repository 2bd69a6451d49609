//! How large a definition or a set of answers may be. Each of [`Limits`] is a flag of `serve`.

/// Ids of removed questions that a form remembers, so that none is given again: ten times what a form may ask.
pub const MAX_RETIRED_IDS: usize = 5_000;

/// What the patterns of a form may cost: bytes times characters of the longest answers, as `cost` counts them.
///
/// That is 4 MiB of patterns for short answers, and for a submission made to take long about four seconds, or sixteen
/// where each of its characters has four bytes: it is bytes that take time.
pub const MAX_PATTERN_COST: usize = 1_000 * (4 << 20);

/// Bounds on what a client may send, beyond the size of the body itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Questions in a form, pages and statements included.
    pub questions: usize,
    /// Options of a question, and rows and columns of a matrix.
    pub options: usize,
    /// Characters (Unicode scalar values) in the title of a form or a question.
    pub title: usize,
    /// Bytes of one answer's text.
    pub answer: usize,
    /// Members of `answers` in one submission.
    pub answers: usize,
}

impl Limits {
    /// No bounds: for what was accepted before, and where it is for a server to say.
    pub const BOUNDLESS: Self = Self {
        questions: usize::MAX,
        options: usize::MAX,
        title: usize::MAX,
        answer: usize::MAX,
        answers: usize::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self { questions: 500, options: 500, title: 300, answer: 64 * 1024, answers: 1_000 }
    }
}
