//! `--since` and `--until`: moments as people write them.

use crate::cli::output::exit::CliError;
use crate::clock::Timestamp;

/// Converts `text` to RFC 3339: a date is its first moment in UTC, a duration such as `90m`, `1d` or `2w` counts back from
/// `now`.
///
/// # Errors
/// If it is neither, and not a date and time.
pub fn moment(text: &str, now: Timestamp) -> Result<String, CliError> {
    if Timestamp::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let start = format!("{text}T00:00:00Z");
    if text.len() == 10 && Timestamp::parse(&start).is_some() {
        return Ok(start);
    }
    let ago = humantime::parse_duration(text).ok().and_then(|ago| i64::try_from(ago.as_millis()).ok());
    let moment = ago.map(|millis| Timestamp::from_millis(now.millis().saturating_sub(millis).max(0)));
    moment.map(|moment| moment.to_string()).ok_or_else(|| {
        let expected = "a date, a time or a duration: 2026-11-20, 2026-11-20T09:00:00Z or 1d";
        CliError::usage(format!("expected {expected}, found `{text}`"))
    })
}
