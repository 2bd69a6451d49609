//! Deliveries in process: requests to local receivers, files, and what is due when on a clock that the test sets.

mod addresses; // which addresses are refused when a request is sent
mod chats; // how often chats are called, repeats, and secrets sent back
mod files; // CSV files
pub(crate) mod google; // a stand-in for Google Sheets
mod mail; // outcomes of SMTP, and messages
pub(crate) mod mail_server;
pub(crate) mod notifications; // what mail says, to whom, and how often
pub(crate) mod receiver;
mod rig;
mod running; // the loop: fairness, changes, and stopping
mod schedule; // attempts, paced receivers, and pauses
mod sending; // outcomes of requests: statuses, failures, hostile receivers
mod sheets; // Google spreadsheets

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use forms::clock::SystemClock;
use forms::delivery::{HttpSender, Lookup, SendLimits};
use forms::domain::delivery::classify::classify_webhook;
use forms::domain::integration::address::AddressPolicy;
use forms::domain::integration::outbound::HttpRequest;
use forms::secret::Secret;

/// Limits of tests that reach them.
pub(crate) const SHORT: SendLimits = SendLimits {
    connect: Duration::from_millis(500),
    exchange: Duration::from_millis(500),
    body: Duration::from_millis(100),
};

/// A policy that allows these networks besides public addresses.
pub(crate) fn allowing(networks: &[&str]) -> AddressPolicy {
    AddressPolicy {
        allowed: networks.iter().map(|network| network.parse().unwrap()).collect(),
        ..AddressPolicy::default()
    }
}

/// A resolver with the same addresses for every name.
struct FixedLookup(Vec<IpAddr>);

#[async_trait]
impl Lookup for FixedLookup {
    async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(self.0.clone())
    }
}

/// A sender that may call loopback addresses, with `lookup` for names.
fn sender(lookup: impl Lookup + 'static, limits: SendLimits) -> HttpSender {
    HttpSender::with_lookup(allowing(&["127.0.0.0/8"]), Arc::new(SystemClock), Arc::new(lookup), limits)
}

fn post(url: &str) -> HttpRequest {
    HttpRequest {
        method: "POST",
        url: url.parse().unwrap(),
        headers: vec![("x-token".to_owned(), Secret::new("t0ken".to_owned()))],
        body: b"{}".to_vec(),
        classify: classify_webhook,
        secrets: vec![Secret::new("t0ken".to_owned())],
    }
}
