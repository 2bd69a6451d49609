//! User input: form files, answers as arguments, edited text, prompts.

pub mod aliases;
pub mod answer_args;
pub mod answer_hints;
pub mod answers;
pub mod ask_question;
pub mod assignment;
pub mod dialogue;
pub mod document;
pub mod draft;
pub mod editor;
pub mod prompt;
pub mod rows;
pub mod secret_file;
pub mod values;
