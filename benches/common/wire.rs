//! One keep-alive HTTP/1.1 connection, spoken by hand: a client library would take more of the two cores than the
//! server that is measured. It understands what our servers send, bodies with a `Content-Length`, and nothing else.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

/// A connection with nothing under way.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4096) })
    }

    /// Sends `request` and waits for its answer.
    ///
    /// # Errors
    /// If the connection ends before the answer is whole, or the answer is of a kind not understood here.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            self.receive().await?;
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let (status, length) = read_head(&self.buffer[..head])?;
        while self.buffer.len() < head + length {
            self.receive().await?;
        }
        Ok(Answer { status, body: &self.buffer[head..head + length] })
    }

    async fn receive(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// A request, ready to be sent as often as one likes. `key` is the API key.
pub(crate) fn request(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Status and length of the body.
fn read_head(head: &[u8]) -> io::Result<(u16, usize)> {
    let strange = || io::Error::other(format!("not understood: {}", String::from_utf8_lossy(head)));
    let text = std::str::from_utf8(head).map_err(io::Error::other)?;
    let status = text.get(9..12).and_then(|digits| digits.parse().ok()).ok_or_else(strange)?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    match (status, length) {
        (204 | 304, _) => Ok((status, 0)),
        (_, Some(length)) => Ok((status, length)),
        (_, None) => Err(strange()),
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
