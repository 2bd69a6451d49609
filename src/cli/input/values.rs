//! Parsers of numbers, durations, moments, sizes, addresses and networks.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use parse_size::parse_size;

use crate::clock::{Clock, SystemClock, Timestamp};

/// Parses a number of items.
pub fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_error| format!("expected a number such as 10, found `{text}`"))
}

/// Parses `30s`, `2m`, `500ms`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let duration = seconds.or_else(|| humantime::parse_duration(text).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("expected a time such as 30s, found `{text}`"))
}

/// Parses a duration, or 0, that is sent as text.
pub fn grace(text: &str) -> Result<String, String> {
    let duration = if matches!(text, "0" | "0s") { Duration::ZERO } else { duration(text)? };
    Ok(format!("{}ms", duration.as_millis()))
}

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

/// Parses `64KiB`, `1MiB`, `2GiB`; a bare number is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|_error| format!("expected a size such as 64KiB, 1MiB or 2GiB, found `{text}`"))
}

/// Parses an IP address with a port.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().ok().ok_or_else(|| "expected an IP address and a port, such as 127.0.0.1:8787".to_owned())
}

/// Parses a network, or an address as the network of only itself.
pub fn network(text: &str) -> Result<IpNet, String> {
    let network =
        text.parse().or_else(|_| text.parse::<IpAddr>().map(|address| address.to_canonical().into()));
    network.ok().ok_or_else(|| "expected an IP address or a network, such as 10.0.0.0/8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn an_address_is_a_network_of_itself() {
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.1", "10.0.0.1/32"),
            ("::ffff:10.0.0.1", "10.0.0.1/32"),
            ("2001:db8::1", "2001:db8::1/128"),
        ] {
            assert_eq!(network(text).map(|network| network.to_string()).as_deref(), Ok(expected));
        }
    }
}
