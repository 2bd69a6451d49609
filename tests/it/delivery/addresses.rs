//! Addresses that are refused when a request is sent, whatever was allowed when its URL was saved.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use forms::clock::SystemClock;
use forms::delivery::{HttpSender, Lookup, Sender};
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::delivery::error_code::ErrorCode;
use tokio::net::TcpListener;

use super::receiver::{Receiver, Reply};
use super::{FixedLookup, SHORT, allowing, post, sender};

/// A resolver that answers differently each time.
struct ChangingLookup(Mutex<VecDeque<Vec<IpAddr>>>);

impl ChangingLookup {
    fn new(answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Self(Mutex::new(answers.iter().map(parse).collect()))
    }
}

#[async_trait]
impl Lookup for ChangingLookup {
    async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(self.0.lock().unwrap().pop_front().unwrap())
    }
}

fn guarded(networks: &[&str], lookup: impl Lookup + 'static) -> HttpSender {
    HttpSender::with_lookup(allowing(networks), Arc::new(SystemClock), Arc::new(lookup), SHORT)
}

fn is_blocked(report: &SendReport) -> bool {
    matches!(&report.outcome, Outcome::Permanent { error } if error.code == ErrorCode::BlockedAddress)
}

#[tokio::test]
async fn a_name_is_refused_if_any_of_its_addresses_is() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for addresses in [&["127.0.0.1"][..], &["127.0.0.1", "10.0.0.1"], &["127.0.0.1", "::1"]] {
        let sender = guarded(&["127.0.0.1/32"], ChangingLookup::new(&[addresses]));
        let report = sender.send(&post(&format!("http://hook.test:{port}/"))).await;
        assert_eq!(is_blocked(&report), addresses.len() > 1, "{addresses:?}: {report:?}");
        if addresses.len() == 1 {
            let _connection = listener.accept().await.unwrap();
        }
    }
    let connection = tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await;
    assert!(connection.is_err(), "a refused name was dialled");
}

#[tokio::test]
async fn a_name_that_changes_to_a_refused_address_is_refused() {
    let receiver = Receiver::start_at("127.0.0.2:0", |_| {
        Reply::text("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    })
    .await;
    let port = receiver.address.port();
    let loopback = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let sender = guarded(&["127.0.0.2/32"], ChangingLookup::new(&[&["127.0.0.2"], &["127.0.0.1"]]));
    let request = post(&format!("http://rebinding.test:{port}/"));
    assert_eq!(sender.send(&request).await.outcome, Outcome::Delivered);
    assert!(is_blocked(&sender.send(&request).await));
    let connection = tokio::time::timeout(std::time::Duration::ZERO, loopback.accept()).await;
    assert!(connection.is_err(), "loopback was dialled");
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn names_of_private_networks_are_refused_unless_one_is_allowed() {
    let public = || FixedLookup(vec!["1.1.1.1".parse().unwrap()]);
    let report = guarded(&[], public()).send(&post("https://printer.local/")).await;
    assert!(is_blocked(&report), "{report:?}");
    // With an allowed network, the address decides: also about the port, and about plain HTTP.
    for url in ["http://hook.test/", "https://hook.test:22/", "http://hook.test:22/"] {
        let report = guarded(&["10.0.0.0/8"], public()).send(&post(url)).await;
        assert!(is_blocked(&report), "{url}: {report:?}");
    }
}

#[tokio::test]
async fn names_without_an_address_are_tried_again() {
    struct Failing;
    #[async_trait]
    impl Lookup for Failing {
        async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            Err(io::Error::other("no such host"))
        }
    }
    for report in [
        sender(Failing, SHORT).send(&post("https://hook.test/")).await,
        sender(FixedLookup(Vec::new()), SHORT).send(&post("https://hook.test/")).await,
    ] {
        let Outcome::Retryable { error, .. } = &report.outcome else { panic!("{report:?}") };
        assert_eq!(error.code, ErrorCode::DnsError);
    }
}
