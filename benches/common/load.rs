//! One request repeated over many connections; each sends the next one after the response.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::endpoint::Endpoint;
use super::samples::Samples;
use super::wire::Connection;

/// Digits of the sequence number in a request.
pub(crate) const DIGITS: usize = 12;

/// Placeholder for the sequence number in a request.
pub(crate) const NUMBER: &str = "000000000000";

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    /// `count` requests were sent, spread evenly `over` a time, or without pause if that is zero.
    Sent {
        count: u64,
        over: Duration,
    },
}

/// A request that is sent repeatedly over concurrent `connections`; each response must have `status`. The first
/// [`NUMBER`] in it is replaced by a sequence number, so that all bodies differ.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) endpoint: Endpoint,
    pub(crate) connections: usize,
    pub(crate) request: Vec<u8>,
    pub(crate) status: u16,
}

impl Load {
    /// Sends `until` the end; pending responses are awaited and counted.
    ///
    /// # Errors
    /// If a connection fails or a response has another status.
    pub(crate) async fn run(&self, until: Until) -> io::Result<Samples> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(Connection::open(self.endpoint).await?);
        }
        let sent = Arc::new(AtomicU64::new(0));
        let begin = Instant::now();
        let senders: Vec<_> = connections
            .into_iter()
            .map(|connection| tokio::spawn(self.clone().send(connection, begin, until, Arc::clone(&sent))))
            .collect();
        let mut latencies = Vec::new();
        for sender in senders {
            latencies.append(&mut sender.await??);
        }
        Ok(Samples::new(latencies, begin.elapsed()))
    }

    /// Returns the request with this sequence number.
    pub(crate) fn numbered(&self, number: u64) -> Vec<u8> {
        let mut request = self.request.clone();
        if let Some(place) = request.windows(DIGITS).position(|window| window == NUMBER.as_bytes()) {
            write_number(&mut request[place..place + DIGITS], number);
        }
        request
    }

    async fn send(
        mut self,
        mut connection: Connection,
        begin: Instant,
        until: Until,
        sent: Arc<AtomicU64>,
    ) -> io::Result<Vec<Duration>> {
        let place = self.request.windows(DIGITS).position(|window| window == NUMBER.as_bytes());
        let mut latencies = Vec::new();
        let mut now = begin;
        loop {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            match until {
                Until::Elapsed(duration) if now.duration_since(begin) >= duration => return Ok(latencies),
                Until::Sent { count, .. } if number >= count => return Ok(latencies),
                Until::Sent { count, over } if !over.is_zero() => {
                    let due = begin + over.mul_f64(number as f64 / count as f64);
                    tokio::time::sleep_until(due.into()).await;
                    now = Instant::now();
                }
                Until::Elapsed(_) | Until::Sent { .. } => {}
            }
            if let Some(place) = place {
                write_number(&mut self.request[place..place + DIGITS], number);
            }
            let response = connection.exchange(&self.request).await?;
            if response.status != self.status {
                let body = String::from_utf8_lossy(response.body);
                return Err(io::Error::other(format!("unexpected status {}: {body}", response.status)));
            }
            let done = Instant::now();
            latencies.push(done.duration_since(now));
            now = done;
        }
    }
}

fn write_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}
