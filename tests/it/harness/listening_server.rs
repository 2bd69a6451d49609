//! A server on a TCP port, for tests that send raw bytes.

use std::io;
use std::net::SocketAddr;

use forms::config::HttpLimits;
use forms::http::server::accept_loop::{RequestService, serve};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::TestResponse;

/// A server on a TCP port.
pub(crate) struct ListeningServer {
    pub(crate) address: SocketAddr,
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl ListeningServer {
    pub(crate) async fn listen(service: impl RequestService, limits: HttpLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            serve(listener, service, &limits, async {
                stopped.await.ok();
            })
            .await;
        });
        Self { address, serving: Some((stop, serving)) }
    }

    /// Refers to a server that is already running.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { address, serving: None }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connects from a local address such as `127.0.0.2`.
    pub(crate) async fn connect_from(&self, ip: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((ip, 0).into()).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// Sends `bytes` on a new connection and returns everything received until the server closes it.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        exchange(self.address, bytes).await.unwrap()
    }

    /// Sends one request on a new connection.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        parse_response(&self.exchange(request.as_bytes()).await)
    }

    /// Begins the shutdown; the returned task ends with the server.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        let (stop, serving) = self.serving.unwrap();
        stop.send(()).unwrap();
        serving
    }
}

/// Sends `bytes` to `address` and returns everything received until the server closes the connection.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(bytes).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Parses a response whose body is not chunked.
pub(crate) fn parse_response(text: &str) -> TestResponse {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("not a response: {text:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        (name.parse().unwrap(), value.trim().parse().unwrap())
    });
    TestResponse { status, headers: headers.collect(), body: body.as_bytes().to_vec() }
}
