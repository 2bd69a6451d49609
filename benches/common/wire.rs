//! A minimal HTTP/1.1 client with one keep-alive connection: a client library would use more CPU time than the measured
//! server. It supports only responses with a `Content-Length`, as our servers send.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::endpoint::{ByteStream, Endpoint};

/// A complete response.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    /// The status line and the headers, with the empty line after them.
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
    /// When the first bytes arrived.
    pub(crate) first_byte: Instant,
}

/// A connection without a pending request.
pub(crate) struct Connection {
    stream: Box<dyn ByteStream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Opens a connection to `endpoint`.
    pub(crate) async fn open(endpoint: Endpoint) -> io::Result<Self> {
        Ok(Self { stream: endpoint.connect().await?, buffer: Vec::with_capacity(4096) })
    }

    /// Sends `request` and waits for the response.
    ///
    /// # Errors
    /// If the connection ends before the response is complete, or the response is not supported.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.buffer.clear();
        self.receive().await?;
        let first_byte = Instant::now();
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.receive().await?;
        };
        let (status, length) = read_head(&self.buffer[..head])?;
        while self.buffer.len() < head + length {
            self.receive().await?;
        }
        let (head, rest) = self.buffer.split_at(head);
        Ok(Response { status, head, body: &rest[..length], first_byte })
    }

    async fn receive(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Formats a request with the API key `key`.
pub(crate) fn request(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Returns the status and the length of the body.
fn read_head(head: &[u8]) -> io::Result<(u16, usize)> {
    let unsupported = || io::Error::other(format!("unsupported response: {}", String::from_utf8_lossy(head)));
    let text = std::str::from_utf8(head).map_err(io::Error::other)?;
    let status = text.get(9..12).and_then(|digits| digits.parse().ok()).ok_or_else(unsupported)?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    match (status, length) {
        (204 | 304, _) => Ok((status, 0)),
        (_, Some(length)) => Ok((status, length)),
        (_, None) => Err(unsupported()),
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}
