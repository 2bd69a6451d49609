//! The same request from many connections at once, each sending the next one when its answer is there.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::samples::Samples;
use super::wire::Connection;

/// Digits of the running number in a request.
pub(crate) const DIGITS: usize = 12;

/// What a request carries where its running number belongs.
pub(crate) const NUMBER: &str = "000000000000";

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    /// So many were sent, evenly over a time; without pause if that is zero.
    Sent {
        count: u64,
        over: Duration,
    },
}

/// A request to be sent over and over, from `connections` at once; each must be answered with `status`. The first
/// [`NUMBER`] in it is replaced by a running number, so that no two bodies are alike.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) request: Vec<u8>,
    pub(crate) status: u16,
}

impl Load {
    /// Sends until told to stop; what is under way then is waited for and counts.
    ///
    /// # Errors
    /// If a connection fails or an answer has another status.
    pub(crate) async fn run(&self, until: Until) -> io::Result<Samples> {
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(Connection::open(self.address).await?);
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
            let answer = connection.exchange(&self.request).await?;
            if answer.status != self.status {
                let body = String::from_utf8_lossy(answer.body);
                return Err(io::Error::other(format!("answered with {}: {body}", answer.status)));
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
