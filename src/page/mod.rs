//! The HTML pages where people answer forms: a form, and the messages around it.
//!
//! Pure functions of a form and of what was posted: no HTTP, no store. Every page is complete and can be used without
//! JavaScript; the scripts add conditions while typing, steps, drafts and counts of characters. To draw a new kind of control:
//! a variant of [`Control`](crate::domain::question::control::Control), its part of `question.html`, and its arm in `answers`.

pub mod answers;
mod assets;
pub mod fields;
mod form;
mod markdown;
mod message;
mod question;
pub mod spam;

pub use assets::{EMBED_SCRIPT, FORM_SCRIPT, LOGIC_SCRIPT};
pub use form::{FormPage, Notice};
pub use message::{Confirmation, Message, home};

/// A rendered page.
#[derive(Debug, Clone)]
pub struct Html {
    pub text: String,
    /// Hashes of its styles, for the content security policy: `'sha256-…'`.
    pub style_hashes: Vec<String>,
}
