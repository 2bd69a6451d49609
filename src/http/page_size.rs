//! The parameter `limit` of lists.

use serde::de::{Deserialize, Deserializer, Error};

/// Items a page may have.
const MAX: usize = 1_000;

/// Reads a number from 1 to [`MAX`].
pub(super) fn page_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.parse().ok().filter(|number| (1..=MAX).contains(number));
    number.ok_or_else(|| D::Error::custom(format_args!("expected a number from 1 to {MAX}, got `{text}`")))
}
