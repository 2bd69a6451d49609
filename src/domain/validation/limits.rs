//! Limits on the size of definitions and answers.

/// Maximum ids of removed questions that a form keeps, so that none is reused: ten times the maximum number of questions.
pub const MAX_RETIRED_IDS: usize = 5_000;

/// Maximum characters of an answer that is matched against a pattern: matching takes time by the product of both sizes.
pub const MAX_MATCHED: usize = 1_000;

/// Maximum characters of a number in an answer: conditions compare it to the last digit, perhaps 10,000 times.
pub const MAX_NUMBER: usize = 400;

/// Maximum tests in one filter of a list.
pub const MAX_FILTER_TESTS: usize = 10;

/// Maximum values in one filter of a list.
pub const MAX_FILTER_VALUES: usize = 100;

/// Bounds on what a client may send, beyond the size of the body itself. The first five are flags of `serve`.
///
/// The others ensure that checking the most expensive body against the most expensive form takes less than 100 ms of one
/// core, as measured by `cargo bench --bench check`.
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
    /// Bytes that all patterns of a form compile to, those of `matches` included.
    pub patterns: usize,
    /// Characters of all patterns of a form: compiling takes time even if the result is small, 0.2 ms for `(?i)\w`.
    pub pattern_text: usize,
    /// Characters of an answer that is matched against a pattern.
    pub matched: usize,
    /// Tests with `matches` in the conditions of a form.
    pub matches: usize,
    /// Tests with `includes` in the conditions of a form.
    pub includes: usize,
    /// Values in the conditions of a form, each item of an `in` counted.
    pub values: usize,
    /// Bytes of all defaults of a form: they are stored with every submission.
    pub defaults: usize,
}

impl Limits {
    /// No limits: for definitions that were accepted before, and where the server checks them.
    pub const UNLIMITED: Self = Self {
        questions: usize::MAX,
        options: usize::MAX,
        title: usize::MAX,
        answer: usize::MAX,
        answers: usize::MAX,
        patterns: usize::MAX,
        pattern_text: usize::MAX,
        matched: usize::MAX,
        matches: usize::MAX,
        includes: usize::MAX,
        values: usize::MAX,
        defaults: usize::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            questions: 500,
            options: 500,
            title: 300,
            answer: 64 * 1024,
            answers: 1_000,
            patterns: 256 * 1024,
            pattern_text: 10_000,
            matched: MAX_MATCHED,
            matches: 50,
            includes: 250,
            values: 10_000,
            defaults: 16 * 1024,
        }
    }
}
