//! Rate limiting of failed authentications by client network, in bounded memory.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::config::Rate;

/// Networks whose failures are counted at a time.
const CAPACITY: usize = 8_192;

/// Recent authentication failures by network: an IPv4 address, or the /64 of an IPv6 one, which belongs to one customer.
pub(crate) struct AuthFailures {
    rate: Rate,
    windows: Mutex<HashMap<IpAddr, Window>>,
}

#[derive(Clone, Copy)]
struct Window {
    began: Timestamp,
    failures: u32,
}

impl AuthFailures {
    /// Allows failures up to `rate`.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, windows: Mutex::default() }
    }

    /// Counts a failure from `address`; beyond the rate, returns the seconds until the window ends.
    pub(crate) fn count(&self, address: IpAddr, now: Timestamp) -> Option<u64> {
        let network = client_network(address);
        let length = self.rate.per.millis();
        let age = |window: &Window| now.millis() - window.began.millis();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        // A window that begins in the future has ended too: the clock was set back.
        let current = windows.get(&network).filter(|window| (0..length).contains(&age(window))).copied();
        if windows.len() >= CAPACITY && current.is_none() {
            // Starting again gives little to a client with that many networks: it may fail in each of them anyway.
            windows.clear();
        }
        let mut window = current.unwrap_or(Window { began: now, failures: 0 });
        window.failures = window.failures.saturating_add(1);
        windows.insert(network, window);
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
