//! The settings of a server with their defaults, as plain values.
//!
//! The command line makes the flags of `serve` from this; nothing here reads a flag, a file or the environment.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::domain::validation::limits::Limits;

/// All settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The data directory; made if it does not exist.
    pub data: PathBuf,
    /// Where to listen. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Whether plain HTTP may be served on an address other machines reach.
    pub insecure_http: bool,
    /// Bytes that must stay free on the disk; below, writes are refused.
    pub min_free: u64,
    /// Bytes of memory for the store's cache.
    pub cache_size: u64,
    /// Days that deleted forms and submissions can be restored.
    pub trash_days: u32,
    /// Bounds on what a definition or a set of answers may hold.
    pub content: Limits,
    /// Bounds on requests and connections.
    pub http: HttpLimits,
}

impl Config {
    /// The defaults, for the data directory `data`.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            listen: (Ipv4Addr::LOCALHOST, 8787).into(),
            insecure_http: false,
            min_free: 128 << 20,
            cache_size: 64 << 20,
            trash_days: 30,
            content: Limits::default(),
            http: HttpLimits::default(),
        }
    }

    /// Fails if the settings do not go together.
    pub fn check(&self) -> Result<(), Exposed> {
        let safe = self.listen.ip().to_canonical().is_loopback() || self.insecure_http;
        if safe { Ok(()) } else { Err(Exposed { listen: self.listen }) }
    }
}

/// Keys and answers would cross the network in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{listen} can be reached from other machines, and keys and answers would travel unencrypted; listen on \
     127.0.0.1 behind a proxy that speaks HTTPS, or allow it with --insecure-http"
)]
pub struct Exposed {
    listen: SocketAddr,
}

/// Bounds on requests and connections: sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpLimits {
    /// Size of a body.
    pub max_body: usize,
    /// Size of a body that defines a form.
    pub max_definition: usize,
    /// Length of the request target.
    pub max_uri: usize,
    /// Size of all header lines together.
    pub max_head: usize,
    /// Number of header lines.
    pub max_headers: usize,
    /// From the first byte of a request to the end of its headers.
    pub head_timeout: Duration,
    /// From the opening of a connection to its first byte.
    pub first_byte_timeout: Duration,
    /// For the body, prolonged by a second for each `min_body_rate` bytes that came.
    pub body_timeout: Duration,
    /// Bytes a second that a body must come with once `body_timeout` is used up.
    pub min_body_rate: u32,
    /// How long a connection may rest between requests.
    pub idle_timeout: Duration,
    /// Connections served at once. Where all are taken, the one idle longest is closed for the next.
    pub max_connections: usize,
    /// Connections of one address at once, for IPv6 of one /64. `None` is a quarter of `max_connections`, but all of
    /// them from this machine.
    pub max_connections_per_address: Option<usize>,
    /// Failed authentications from one address before its bad keys are answered 429; `None` is without bound.
    pub auth_failures: Option<Rate>,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            max_body: 1 << 20,
            max_definition: 2 << 20,
            max_uri: 8 << 10,
            max_head: 32 << 10,
            max_headers: 64,
            head_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(15),
            min_body_rate: 1 << 10,
            idle_timeout: Duration::from_secs(60),
            max_connections: 1_024,
            max_connections_per_address: None,
            auth_failures: Some(Rate { count: 10, per: Period::Minute }),
        }
    }
}

/// Connections beyond `max_connections` that serve only `/healthz` and `/readyz`.
pub const KEPT_CONNECTIONS: usize = 8;

/// Files that the store and the logs may need open at once.
const STORE_FILES: usize = 128;

impl HttpLimits {
    /// Connections that one address may hold, if it is not this machine.
    pub fn connections_per_address(&self) -> usize {
        self.max_connections_per_address.unwrap_or(self.max_connections / 4).min(self.max_connections).max(1)
    }

    /// Lowers `max_connections` to what a process that may open `files` files can serve: all but 128, or half of them
    /// where there are few, less the connections that are kept or about to close. Returns whether it was lowered.
    pub fn fit_open_files(&mut self, files: usize) -> bool {
        let connections = files.saturating_sub(STORE_FILES).max(files / 2);
        let most = connections.saturating_sub(2 * KEPT_CONNECTIONS).max(1);
        let is_lowered = most < self.max_connections;
        self.max_connections = self.max_connections.min(most);
        is_lowered
    }
}

/// So many in a period: `10/min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub count: u32,
    pub per: Period,
}

/// The period of a [`Rate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Second,
    Minute,
    Hour,
}

impl Period {
    /// Its length in milliseconds.
    pub fn millis(self) -> i64 {
        match self {
            Self::Second => 1_000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.name())
    }
}

/// A text that is not a valid rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a rate such as 10/min, 5/s or 100/h, got `{0}`")]
pub struct NoRate(String);

impl FromStr for Rate {
    type Err = NoRate;

    fn from_str(text: &str) -> Result<Self, NoRate> {
        let rate = text.split_once('/').and_then(|(count, period)| {
            let count = count.parse().ok().filter(|count| *count > 0)?;
            let periods = [Period::Second, Period::Minute, Period::Hour];
            let per = periods.into_iter().find(|known| known.name() == period)?;
            Some(Self { count, per })
        });
        rate.ok_or_else(|| NoRate(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, HttpLimits, Rate};

    #[test]
    fn connections_leave_the_store_its_files() {
        let fitted = |files, max_connections| {
            let mut limits = HttpLimits { max_connections, ..HttpLimits::default() };
            let is_lowered = limits.fit_open_files(files);
            (limits.max_connections, is_lowered)
        };
        for (files, connections) in [(0, 1), (20, 1), (64, 16), (256, 112), (1_024, 880), (4_096, 3_952)] {
            assert_eq!(fitted(files, 100_000), (connections, true), "{files}");
            assert_eq!(fitted(files, connections), (connections, false), "{files}");
        }
    }

    #[test]
    fn an_address_holds_a_quarter_of_the_connections_unless_told() {
        let share = |max_connections, max_connections_per_address| {
            HttpLimits { max_connections, max_connections_per_address, ..HttpLimits::default() }
                .connections_per_address()
        };
        assert_eq!(
            [share(1_024, None), share(3, None), share(8, Some(5)), share(8, Some(50))],
            [256, 1, 5, 8]
        );
    }

    #[test]
    fn a_rate_reads_back_what_it_writes() {
        for text in ["10/min", "1/s", "4000000000/h"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["", "10", "0/min", "-1/min", "10/day", "min/10", "10/min "] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_others_reach_needs_insecure_http() {
        let cases = [
            ("127.0.0.1:80", true),
            ("127.9.9.9:80", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("10.0.0.1:80", false),
        ];
        for (listen, safe) in cases {
            let config = Config { listen: listen.parse().unwrap(), ..Config::new("data") };
            assert_eq!(config.check().is_ok(), safe, "{listen}");
            assert_eq!(Config { insecure_http: true, ..config }.check(), Ok(()), "{listen}");
        }
    }
}
