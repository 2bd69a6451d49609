//! A receiver of webhooks in this process: answers at once, or never.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::load::DIGITS;

/// What stands before the sequence number in a delivered submission.
const BEFORE_NUMBER: &[u8] = b"person";

/// The sequence number of each received submission, with the time.
type Received = Arc<Mutex<Vec<(u64, Instant)>>>;

/// A running receiver; stopped when dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    received: Received,
    task: JoinHandle<()>,
}

impl Receiver {
    /// Starts a receiver that answers 200 at once.
    pub(crate) async fn healthy() -> io::Result<Self> {
        Self::start(true).await
    }

    /// Starts a receiver that accepts connections and never answers.
    pub(crate) async fn black_hole() -> io::Result<Self> {
        Self::start(false).await
    }

    async fn start(answers: bool) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, received) = (listener.local_addr()?, Received::default());
        let log = Arc::clone(&received);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let log = Arc::clone(&log);
                // A connection that fails ends; the server opens another.
                tokio::spawn(async move { drop(serve(stream, answers, &log).await) });
            }
        });
        Ok(Self { address, received, task })
    }

    /// The number of requests received so far.
    pub(crate) fn count(&self) -> usize {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The sequence numbers received so far, with their times.
    pub(crate) fn received(&self) -> Vec<(u64, Instant)> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, answers: bool, log: &Received) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(4096);
    loop {
        let Some(body) = read_body(&mut stream, &mut buffer).await? else { return Ok(()) };
        if answers {
            let number = number_in(&body).ok_or_else(|| io::Error::other("no number in the delivery"))?;
            log.lock().unwrap_or_else(PoisonError::into_inner).push((number, Instant::now()));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
        }
    }
}

/// Reads one request and returns its body; `None` at the end of the connection.
async fn read_body(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(head) = find(buffer, b"\r\n\r\n").map(|end| end + 4) {
            let length = content_length(&buffer[..head]);
            if buffer.len() >= head + length {
                let body = buffer[head..head + length].to_vec();
                buffer.drain(..head + length);
                return Ok(Some(body));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    value.unwrap_or(0)
}

fn number_in(body: &[u8]) -> Option<u64> {
    let start = find(body, BEFORE_NUMBER)? + BEFORE_NUMBER.len();
    std::str::from_utf8(body.get(start..start + DIGITS)?).ok()?.parse().ok()
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
