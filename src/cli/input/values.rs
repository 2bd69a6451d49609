//! Parsers of numbers, durations and sizes.

use std::time::Duration;

use parse_size::parse_size;

/// Parses a number of items.
pub fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_error| format!("expected a number such as 10, got `{text}`"))
}

/// Parses `30s`, `2m`, `500ms`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let duration = seconds.or_else(|| humantime::parse_duration(text).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("expected a time such as 30s, got `{text}`"))
}

/// Parses `64KiB`, `1MiB`, `2GiB`; a bare number is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|_error| format!("expected a size such as 64KiB, 1MiB or 2GiB, got `{text}`"))
}
