//! Parsers of numbers, durations and sizes.

use std::time::Duration;

use parse_size::parse_size;

/// Parses a number of items.
pub fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_unfit| format!("expected a number such as 10, got `{text}`"))
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
    parse_size(text).map_err(|_unfit| format!("expected a size such as 64KiB, 1MiB or 2GiB, got `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::{duration, size};

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("512B", 512),
            ("64KiB", 65_536),
            ("1.5MiB", 3 << 19),
            ("2GiB", 2 << 30),
            ("1kB", 1_000),
        ] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "KiB", "1x", "-1", "18446744073709551615GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("7", 7_000),
            ("2m", 120_000),
            ("1h 1m", 3_660_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(duration(text).unwrap().as_millis(), millis);
        }
        for text in ["", "s", "0", "0s", "-1s", "1x", "99999999999999999999s", "18446744073709551615h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
