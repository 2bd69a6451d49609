//! Rate limiting of failed authentications by client network, in bounded memory.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::config::Rate;

/// Recent authentication failures by network: an IPv4 address, or the /64 of an IPv6 one, which belongs to one customer.
pub(crate) struct AuthFailures {
    rate: Rate,
    generations: Mutex<Generations>,
}

/// Two generations: when the young one is full it replaces the old one, which is dropped. That bounds memory without
/// searching for expired entries.
#[derive(Default)]
struct Generations {
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

    /// Allows failures up to `rate`.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, generations: Mutex::default() }
    }

    /// Counts a failure from `address`; beyond the rate, returns the seconds until the window ends.
    pub(crate) fn count(&self, address: IpAddr, now: Timestamp) -> Option<u64> {
        let network = client_network(address);
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let known = generations.young.get(&network).or_else(|| generations.old.get(&network)).copied();
        let length = self.rate.per.millis();
        let age = |window: &Window| now.millis() - window.began.millis();
        let window = known.filter(|window| (0..length).contains(&age(window)));
        let mut window = window.unwrap_or(Window { began: now, failures: 0 });
        window.failures = window.failures.saturating_add(1);
        if generations.young.len() >= Self::CAPACITY && !generations.young.contains_key(&network) {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(network, window);
        let rest = u64::try_from(length - age(&window)).unwrap_or(0);
        (window.failures > self.rate.count).then(|| rest.div_ceil(1_000))
    }
}

/// The prefix of `address` that identifies one client: all of an IPv4 address, the first 64 bits of an IPv6 one.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
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
    fn with_two_allowed_per_minute_the_third_failure_waits_until_the_minute_ends() {
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
    fn setting_the_clock_back_starts_a_new_window() {
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
    fn memory_is_bounded_and_the_latest_failures_are_kept() {
        let failures = failures();
        for number in 0..3 * AuthFailures::CAPACITY as u32 {
            failures.count(Ipv4Addr::from_bits(number).into(), at(0));
        }
        let generations = failures.generations.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * AuthFailures::CAPACITY);
        let latest: IpAddr = Ipv4Addr::from_bits(3 * AuthFailures::CAPACITY as u32 - 1).into();
        assert_eq!(generations.young[&latest].failures, 1);
    }
}
