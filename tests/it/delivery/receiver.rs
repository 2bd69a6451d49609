//! A local server that receives deliveries and answers as the test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// A request as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// The value of the header `name`, written in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::trim_end)
    }
}

/// What a receiver does once it has read a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Answers with this status and an empty body, and keeps the connection.
    Status(u16),
    /// Sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Sends the first bytes, then the second ones again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends a byte every 20 milliseconds.
    Drip(Vec<u8>),
    /// Closes the connection without an answer.
    Cut,
    /// Sends these bytes, and then nothing.
    Stall(Vec<u8>),
}

impl Reply {
    /// Never answers.
    pub(crate) fn silence() -> Self {
        Self::Stall(Vec::new())
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

/// A server on a port of its own.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: watch::Receiver<Vec<Received>>,
}

impl Receiver {
    /// Starts a receiver on 127.0.0.1 that answers every request by `reply`.
    pub(crate) async fn start(reply: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", reply).await
    }

    pub(crate) async fn start_at(
        address: &str,
        reply: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = watch::channel(Vec::new());
        let (reply, sender) = (Arc::new(reply), Arc::new(Mutex::new(sender)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reply, sender) = (Arc::clone(&reply), Arc::clone(&sender));
                let record = move |received: &Received| {
                    sender.lock().unwrap().send_modify(|all| all.push(received.clone()));
                    reply(received)
                };
                tokio::spawn(serve(stream, record));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// All requests so far, in the order of arrival.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.requests.borrow().clone()
    }

    /// Waits until there are `count` requests, and returns them.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Received> {
        let mut requests = self.requests.clone();
        let arrived = requests.wait_for(|all| all.len() >= count).await.unwrap();
        arrived.clone()
    }
}

/// Serves a connection until either side closes it.
async fn serve(stream: TcpStream, reply: impl Fn(&Received) -> Reply) {
    let mut stream = BufReader::new(stream);
    while let Some(received) = read_request(&mut stream).await {
        let sent = match reply(&received) {
            Reply::Status(status) => {
                let answer = format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await
            }
            Reply::Bytes(bytes) => {
                stream.write_all(&bytes).await.ok();
                return;
            }
            Reply::Endless(first, again) => {
                let mut sent = stream.write_all(&first).await;
                while sent.is_ok() {
                    sent = stream.write_all(&again).await;
                }
                sent
            }
            Reply::Drip(bytes) => {
                let mut sent = Ok(());
                for byte in bytes.iter().cycle() {
                    sent = stream.write_all(&[*byte]).await;
                    if sent.is_err() {
                        break;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
                sent
            }
            Reply::Cut => return,
            Reply::Stall(bytes) => {
                stream.write_all(&bytes).await.ok();
                // Until the sender gives up.
                stream.read_u8().await.map(drop)
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Reads a request with a `content-length`; `None` at the end of the connection.
async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let received = Received { head, body: Vec::new() };
    let length = received.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Received { body, ..received })
}
