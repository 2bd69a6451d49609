//! A server on a TCP port, with or without TLS, for tests that send raw bytes.

use std::future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use bytes::Bytes;
use forms::config::HttpSettings;
use forms::http::server::accept_loop::{RequestService, serve};
use forms::http::server::tls::Tls;
use h2::{SendStream, client};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::TestResponse;
use super::authority::Authority;

/// A server on a TCP port.
pub(crate) struct ListeningServer {
    pub(crate) address: SocketAddr,
    /// Settings of its clients, if it serves HTTPS.
    tls: Option<Arc<ClientConfig>>,
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// What a server and its clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl ListeningServer {
    pub(crate) async fn listen(scheme: Scheme, service: impl RequestService, settings: HttpSettings) -> Self {
        let authority = (scheme == Scheme::Https).then(Authority::new);
        let tls = match &authority {
            Some(authority) => Some(Tls::load(authority.issue("localhost")).await.unwrap()),
            None => None,
        };
        let client = authority.map(|authority| authority.client(&[]));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            serve(listener, service, &settings, tls.as_ref(), async {
                stopped.await.ok();
            })
            .await;
        });
        Self { address, tls: client, serving: Some((stop, serving)) }
    }

    /// Refers to a server that is already running.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { address, tls: None, serving: None }
    }

    pub(crate) async fn connect(&self) -> ClientStream {
        self.connect_from([127, 0, 0, 1]).await
    }

    /// Connects from a local address such as `127.0.0.2`.
    pub(crate) async fn connect_from(&self, ip: [u8; 4]) -> ClientStream {
        let stream = self.connect_tcp(ip).await;
        match &self.tls {
            None => Either::Left(stream),
            Some(client) => Either::Right(handshake(stream, client).await.unwrap()),
        }
    }

    /// Connects without a TLS handshake.
    pub(crate) async fn connect_tcp(&self, ip: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((ip, 0).into()).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// Connects over TLS, offering only HTTP/2.
    pub(crate) async fn connect_h2_tls(&self) -> TlsStream<TcpStream> {
        let mut tls = ClientConfig::clone(self.tls.as_ref().unwrap());
        tls.alpn_protocols = vec![b"h2".to_vec()];
        handshake(self.connect_tcp([127, 0, 0, 1]).await, &Arc::new(tls)).await.unwrap()
    }

    /// Connects over HTTP/2, with the client's settings.
    pub(crate) async fn connect_http2(&self, settings: &client::Builder) -> Http2Client {
        let stream = self.connect_h2_tls().await;
        let (sender, mut connection) = settings.handshake(stream).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        Http2Client { sender, pings, ended: tokio::spawn(connection) }
    }

    /// Sends `bytes` on a new connection and returns everything received until the server closes it.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        stream.flush().await.unwrap();
        read_to_end(&mut stream).await
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

/// The client's end of a connection over HTTP/2.
pub(crate) struct Http2Client {
    pub(crate) sender: client::SendRequest<Bytes>,
    pub(crate) pings: h2::PingPong,
    /// Ends with the connection.
    pub(crate) ended: JoinHandle<Result<(), h2::Error>>,
}

impl Http2Client {
    /// Sends the head of a request; the stream is for its body.
    pub(crate) async fn begin(
        &mut self,
        request: Request<()>,
        has_body: bool,
    ) -> Result<(client::ResponseFuture, SendStream<Bytes>), h2::Error> {
        future::poll_fn(|cx| self.sender.poll_ready(cx)).await?;
        self.sender.send_request(request, !has_body)
    }

    /// Sends a request without a body, and reads its response.
    pub(crate) async fn get(&mut self, path: &str) -> TestResponse {
        let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
        self.send(request, Bytes::new()).await
    }

    pub(crate) async fn send(&mut self, request: Request<()>, body: Bytes) -> TestResponse {
        let (response, mut stream) = self.begin(request, true).await.unwrap();
        // A refused request is not sent completely.
        stream.send_data(body, true).ok();
        receive(response).await.unwrap()
    }
}

/// Reads a response over HTTP/2.
pub(crate) async fn receive(response: client::ResponseFuture) -> Result<TestResponse, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok(TestResponse { status: head.status, headers: head.headers, body })
}

/// Performs the TLS handshake of a client.
pub(crate) async fn handshake(
    stream: TcpStream,
    client: &Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::clone(client)).connect(name, stream).await
}

/// The client's end of a connection.
pub(crate) type ClientStream = Either<TcpStream, TlsStream<TcpStream>>;

/// Waits until a large response begins to arrive, without reading it.
pub(crate) async fn wait_for_response(stream: &ClientStream) {
    let tcp = match stream {
        Either::Left(stream) => stream,
        Either::Right(stream) => stream.get_ref().0,
    };
    // More than the session tickets of TLS.
    let mut arrived = [0; 8 << 10];
    while tcp.peek(&mut arrived).await.unwrap() < arrived.len() {
        yield_now().await;
    }
}

/// Reached only if the server hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// A timeout that a test waits for.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

/// Reads until the server closes the connection.
pub(crate) async fn read_until_closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    timeout(TIMEOUT, read_to_end(stream)).await.expect("the server did not close the connection")
}

/// Reads a response that ends in `hello`; the connection stays open.
pub(crate) async fn read_hello(stream: &mut ClientStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"hello") {
        let count = timeout(TIMEOUT, stream.read_buf(&mut seen)).await.expect("a response").unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&seen));
    }
}

pub(crate) async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> String {
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
