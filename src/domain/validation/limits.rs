//! How large a definition or a set of answers may be.

/// Ids of removed questions that a form remembers, so that none is given again: ten times what a form may ask.
pub const MAX_RETIRED_IDS: usize = 5_000;

/// Characters of an answer that a pattern is held against: time is the product of both sizes.
pub const MAX_MATCHED: usize = 1_000;

/// Characters of a number in an answer: conditions compare it to the last digit, perhaps 10,000 times.
pub const MAX_NUMBER: usize = 400;

/// Tests in one filter of a list.
pub const MAX_FILTER_TESTS: usize = 10;

/// Values in one filter of a list.
pub const MAX_FILTER_VALUES: usize = 100;

/// Bounds on what a client may send, beyond the size of the body itself. The first five are flags of `serve`.
///
/// The others see to it that checking the costliest body against the costliest form takes less than 100 ms of one core;
/// `cargo bench --bench check` measures that.
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
    /// Characters of all patterns of a form as they are written: to compile `(?i)\w`, which may come to nothing, takes
    /// 0.2 ms.
    pub pattern_text: usize,
    /// Characters that an answer may have where a pattern is held against it.
    pub matched: usize,
    /// Tests with `matches` in the conditions of a form.
    pub matches: usize,
    /// Tests with `includes` in the conditions of a form.
    pub includes: usize,
    /// Values in the conditions of a form, each item of an `in` counted.
    pub values: usize,
}

impl Limits {
    /// No bounds: for definitions that were accepted before, and where the server decides.
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
        }
    }
}
