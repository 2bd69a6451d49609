//! Whether a submission from a page looks like spam. It is then kept in quarantine, never dropped.

use crate::clock::Timestamp;
use crate::page::fields::Fields;

/// A field that people do not see, and programs fill in.
pub const HONEYPOT: &str = "_hp";

/// Time in which nobody answers a form, unless its address has filled it in.
const MIN_MILLIS: i64 = 1_500;

/// Links in one text from which on it counts.
const MANY_LINKS: usize = 4;

/// Points from which on a submission is suspicious.
const SUSPICIOUS: u32 = 3;

/// Whether `fields`, sent at `now` from a page opened at `opened_at`, look like spam. That time is not known of a form on
/// another site.
pub fn is_suspicious(fields: &Fields, opened_at: Option<Timestamp>, now: Timestamp) -> bool {
    let is_trapped = !fields.first(HONEYPOT).is_empty();
    let is_fast = opened_at.is_some_and(|opened| now.millis() - opened.millis() < MIN_MILLIS);
    let mut texts = fields.iter().flat_map(|(_, values)| values);
    let has_links = texts.any(|text| text.matches("://").count() >= MANY_LINKS);
    let points = [(is_trapped, 3), (is_fast, 2), (has_links, 1)];
    points.into_iter().filter(|(is_so, _)| *is_so).map(|(_, points)| points).sum::<u32>() >= SUSPICIOUS
}
