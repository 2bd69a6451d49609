//! What a person hands over: form files, answers as arguments, an edited text, what is typed at a prompt.

pub mod aliases;
pub mod answer_args;
pub mod answer_hints;
pub mod answers;
pub mod assignment;
pub mod document;
pub mod draft;
pub mod editor;
pub mod prompt;
pub mod values;
