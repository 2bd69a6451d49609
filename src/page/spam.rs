//! Whether a submission from a page looks like spam. It is then kept in quarantine, never dropped.

use crate::clock::Timestamp;
use crate::page::fields::Fields;

/// Time in which nobody answers a form.
const MIN_MILLIS: i64 = 1_500;

/// Links in one text from which on a hasty submission is suspicious.
const MANY_LINKS: usize = 4;

/// Whether `fields`, sent at `now` from a page opened at `opened_at`, look like spam.
///
/// They do if the field `_hp`, which people do not see, is filled in, or if there are many links and nobody took the time to
/// write them. When a form on another site was opened is not known.
pub fn is_suspicious(fields: &Fields, opened_at: Option<Timestamp>, now: Timestamp) -> bool {
    let is_trapped = !fields.value("_hp").is_empty();
    let is_fast = opened_at.is_some_and(|opened| now.millis() - opened.millis() < MIN_MILLIS);
    let has_links = |text: &String| text.matches("://").count() >= MANY_LINKS;
    is_trapped || is_fast && fields.iter().flat_map(|(_, values)| values).any(has_links)
}
