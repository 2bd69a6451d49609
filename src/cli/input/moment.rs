//! `--since` and `--until`: moments as people write them.

use crate::clock::{Clock, SystemClock, Timestamp};

/// Converts `text` to RFC 3339: a date is its first moment in UTC, a duration such as `90m`, `1d` or `2w` counts back from
/// now.
pub fn moment(text: &str) -> Result<String, String> {
    if Timestamp::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let start = format!("{text}T00:00:00Z");
    if text.len() == 10 && Timestamp::parse(&start).is_some() {
        return Ok(start);
    }
    let ago = humantime::parse_duration(text).ok().and_then(|ago| i64::try_from(ago.as_millis()).ok());
    let now = SystemClock.now().millis();
    let moment = ago.map(|millis| Timestamp::from_millis(now.saturating_sub(millis).max(0)));
    moment.map(|moment| moment.to_string()).ok_or_else(|| {
        let expected = "a date, a time or a duration: 2026-11-20, 2026-11-20T09:00:00Z or 1d";
        format!("expected {expected}, found `{text}`")
    })
}
