//! The client's address, which trusted proxies report in `X-Forwarded-For`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};

use crate::config::HttpSettings;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the address of the client of a request from `peer`: if that is a trusted proxy, the rightmost address in
/// `X-Forwarded-For` that is not one. The search ends at a malformed entry, before which only proxies were found.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, settings: &HttpSettings) -> IpAddr {
    let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
    // Several lines are one list (RFC 9110 §5.3).
    let mut entries = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
    let mut client = peer;
    while settings.is_trusted_proxy(client) {
        let Some(next) = entries.next().and_then(parse_entry) else { break };
        client = next;
    }
    client
}

/// Parses an address as proxies write it: with or without a port, an IPv6 address with or without brackets.
fn parse_entry(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bracketed = || entry.strip_prefix('[')?.strip_suffix(']')?.parse().map(IpAddr::V6).ok();
    let with_port = || entry.parse().map(|address: SocketAddr| address.ip()).ok();
    entry.parse().ok().or_else(with_port).or_else(bracketed)
}

/// The prefix of `address` that identifies one client: all of an IPv4 address, the first 64 bits of an IPv6 one.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}
