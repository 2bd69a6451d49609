//! Counts failed authentications by address, in bounded memory.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::config::Rate;

/// Failures of late by network: an IPv4 address, or the first 64 bits of an IPv6 one, which one customer has whole.
pub(crate) struct AuthFailures {
    rate: Rate,
    seen: Mutex<Seen>,
}

/// Two generations: when the young one is full it becomes the old one, and the old one is forgotten. So memory is
/// bounded, and nothing has to be searched for what has expired.
#[derive(Default)]
struct Seen {
    young: HashMap<IpAddr, Window>,
    old: HashMap<IpAddr, Window>,
}

#[derive(Clone, Copy)]
struct Window {
    began: Timestamp,
    failures: u32,
}

impl AuthFailures {
    /// Networks in one generation.
    const CAPACITY: usize = 4_096;

    /// Lets `rate` pass.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, seen: Mutex::default() }
    }

    /// Counts a failure from `address`; if they are too many, the seconds until they are forgotten.
    pub(crate) fn count(&self, address: IpAddr, now: Timestamp) -> Option<u64> {
        let network = network(address);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.young.get(&network).or_else(|| seen.old.get(&network)).copied();
        let length = self.rate.per.millis();
        let age = |window: &Window| now.millis() - window.began.millis();
        let window = known.filter(|window| (0..length).contains(&age(window)));
        let mut window = window.unwrap_or(Window { began: now, failures: 0 });
        window.failures = window.failures.saturating_add(1);
        if seen.young.len() >= Self::CAPACITY && !seen.young.contains_key(&network) {
            seen.old = std::mem::take(&mut seen.young);
        }
        seen.young.insert(network, window);
        let rest = u64::try_from(length - age(&window)).unwrap_or(0);
        (window.failures > self.rate.count).then(|| rest.div_ceil(1_000))
    }
}

/// The prefix of `address` that identifies one client: all of an IPv4 address, the first 64 bits of an IPv6 one.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::AuthFailures;
    use crate::clock::Timestamp;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn failures() -> AuthFailures {
        AuthFailures::new("2/min".parse().unwrap())
    }

    #[test]
    fn the_third_failure_of_two_a_minute_waits_until_the_minute_is_over() {
        let failures = failures();
        let address = "192.0.2.1".parse().unwrap();
        assert_eq!(failures.count(address, at(0)), None);
        assert_eq!(failures.count(address, at(10)), None);
        assert_eq!(failures.count(address, at(20)), Some(40));
        assert_eq!(failures.count(address, at(59)), Some(1));
        assert_eq!(failures.count(address, at(60)), None);
        assert_eq!(failures.count("192.0.2.2".parse().unwrap(), at(20)), None);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_anew() {
        let failures = failures();
        let address = "192.0.2.1".parse().unwrap();
        for _ in 0..3 {
            failures.count(address, at(1_000));
        }
        assert_eq!(failures.count(address, at(0)), None);
    }

    #[test]
    fn an_ipv6_network_counts_as_one_and_a_mapped_address_as_its_ipv4() {
        let failures = failures();
        let count = |text: &str| failures.count(text.parse::<IpAddr>().unwrap(), at(0));
        assert_eq!([count("2001:db8::1"), count("2001:db8::2:0:0:2")], [None, None]);
        assert_eq!([count("2001:db8:0:1::1"), count("2001:db8:0:0:9::")], [None, Some(60)]);
        assert_eq!(
            [count("192.0.2.1"), count("::ffff:192.0.2.1"), count("192.0.2.1")],
            [None, None, Some(60)]
        );
    }

    #[test]
    fn memory_is_bounded_and_the_latest_are_remembered() {
        let failures = failures();
        for number in 0..3 * AuthFailures::CAPACITY as u32 {
            failures.count(Ipv4Addr::from_bits(number).into(), at(0));
        }
        let seen = failures.seen.lock().unwrap();
        assert!(seen.young.len() + seen.old.len() <= 2 * AuthFailures::CAPACITY);
        let latest: IpAddr = Ipv4Addr::from_bits(3 * AuthFailures::CAPACITY as u32 - 1).into();
        assert_eq!(seen.young[&latest].failures, 1);
    }
}
