//! Where a server listens, over plain HTTP or TLS.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

/// Address of a server and its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) is_tls: bool,
}

/// A connection over plain HTTP or TLS.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

impl Endpoint {
    /// Opens a connection.
    pub(crate) async fn connect(self) -> io::Result<Box<dyn ByteStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        self.secure(stream, b"http/1.1").await
    }

    /// Opens a TCP connection from the address `source` of this machine.
    pub(crate) async fn connect_from(self, source: Ipv4Addr) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        socket.connect(self.address).await
    }

    /// Returns `stream` after the TLS handshake for `protocol`, if this is TLS.
    pub(crate) async fn secure(self, stream: TcpStream, protocol: &[u8]) -> io::Result<Box<dyn ByteStream>> {
        if !self.is_tls {
            return Ok(Box::new(stream));
        }
        let mut config = ClientConfig::clone(&CERTIFICATE.client);
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_tls { "https" } else { "http" }, self.address)
    }
}

/// The certificate of this process's servers, which its clients trust.
struct Certificate {
    certificate: String,
    key: String,
    client: ClientConfig,
}

static CERTIFICATE: LazyLock<Certificate> = LazyLock::new(|| {
    // A second installation fails, and would install the same provider.
    drop(rustls::crypto::ring::default_provider().install_default());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("the name is valid");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("the certificate is valid");
    Certificate {
        certificate: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
        client: ClientConfig::builder().with_root_certificates(roots).with_no_client_auth(),
    }
});

/// Writes the certificate and its key into `folder`; returns their paths.
pub(crate) fn write_certificate(folder: &Path) -> io::Result<[PathBuf; 2]> {
    let paths = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&paths[0], &CERTIFICATE.certificate)?;
    std::fs::write(&paths[1], &CERTIFICATE.key)?;
    std::fs::set_permissions(&paths[1], std::fs::Permissions::from_mode(0o600))?;
    Ok(paths)
}
