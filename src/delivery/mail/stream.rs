//! The connection to a mail server: plain, and encrypted from some point on.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// Maximum bytes received on a connection, without TLS's own: what the library reads of a line has no limit.
const MAX_RECEIVED: usize = 64 << 10;

/// A connection, shared with the library so that STARTTLS can encrypt it.
#[derive(Clone)]
pub(super) struct SmtpStream {
    peer: SocketAddr,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// `None` if it could not be encrypted.
    transport: Option<Transport>,
    received: usize,
}

type Transport = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl SmtpStream {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        let inner = Inner { transport: Some(Either::Left(stream)), received: 0 };
        Self { peer, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Encrypts the connection, and checks the server's certificate and name.
    pub(super) async fn encrypt(
        &self,
        connector: &TlsConnector,
        name: ServerName<'static>,
    ) -> io::Result<()> {
        let plain = self.lock().transport.take();
        let Some(Either::Left(plain)) = plain else { return Err(io::ErrorKind::NotConnected.into()) };
        let encrypted = connector.connect(name, plain).await?;
        self.lock().transport = Some(Either::Right(Box::new(encrypted)));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `poll` with the connection as it is now.
    fn poll_with<T>(
        &self,
        poll: impl FnOnce(Pin<&mut Transport>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.lock().transport {
            Some(stream) => poll(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Counts bytes received. The end of the connection is an error too: it never comes where a reply is awaited.
    fn count(&self, bytes: usize) -> io::Result<()> {
        let mut inner = self.lock();
        inner.received += bytes;
        if bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        if inner.received > MAX_RECEIVED {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the server sent too much"));
        }
        Ok(())
    }

    fn is_plain(&self) -> bool {
        matches!(self.lock().transport, Some(Either::Left(_)))
    }
}

impl AsyncRead for SmtpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        if self.is_plain() {
            // One byte at a time: what somebody on the way adds behind the reply to STARTTLS must not wait in the library's
            // buffer, where it would be read as sent under TLS (CVE-2011-0411). Here the handshake gets it, and fails.
            let mut byte = [0];
            let mut single = ReadBuf::new(&mut byte);
            ready!(self.poll_with(|stream| stream.poll_read(context, &mut single)))?;
            buffer.put_slice(single.filled());
        } else {
            ready!(self.poll_with(|stream| stream.poll_read(context, buffer)))?;
        }
        Poll::Ready(self.count(buffer.filled().len() - before))
    }
}

impl AsyncWrite for SmtpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(|stream| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(|stream| stream.poll_shutdown(context))
    }
}

impl AsyncTokioStream for SmtpStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl fmt::Debug for SmtpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpStream").field("peer", &self.peer).finish_non_exhaustive()
    }
}
