//! TLS: the certificate and its key, read from files and reloaded while the server runs.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustix::fs::OFlags;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::config::TlsFiles;

/// Protocols offered by ALPN (RFC 7301), preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Maximum size of a certificate or key file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Maximum time for reading one of them.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a connection's data that is encrypted but not yet taken by its socket, in bytes.
const MAX_UNSENT: usize = 16 << 10;

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// The certificate that new connections get.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    pub async fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let current = RwLock::new(read(&files).await?);
        Ok(Self { files, current })
    }

    /// Reads both files again. New connections get the new certificate, and do not resume sessions of the previous one.
    /// After an error they get the previous certificate.
    pub async fn reload(&self) -> Result<(), TlsError> {
        let next = read(&self.files).await?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Returns the configuration for a new connection.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A stream over TCP, without or with TLS.
pub(crate) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Performs the TLS handshake, unless the client sends HTTP without TLS.
pub(crate) async fn accept(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<Stream> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    // HTTP begins with a method, TLS with 0x16 (RFC 8446 §5.1).
    if first[0].is_ascii_uppercase() {
        return Ok(Either::Left(stream));
    }
    let mut stream = Box::new(TlsAcceptor::from(config).accept(stream).await?);
    stream.get_mut().1.set_buffer_limit(Some(MAX_UNSENT));
    Ok(Either::Right(stream))
}

/// Whether client and server agreed on HTTP/2.
pub(crate) fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(PROTOCOLS[0])
}

/// Reads both files. Supports TLS 1.2 and 1.3, and keys in PKCS#8, SEC1 and PKCS#1.
async fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsFiles { certificate, key } = files;
    let (chain, private_key) = (read_certificates(certificate).await?, read_key(key).await?);
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, private_key)
        .map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            TlsError(match error {
                rustls::Error::InconsistentKeys(_) => {
                    format!("the key in {key} does not match the first certificate in {certificate}")
                }
                rustls::Error::InvalidCertificate(_) => {
                    format!("the certificate in {certificate} is not valid: {error}")
                }
                error => format!("the key in {key} is not valid: {error}"),
            })
        })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}

/// Reads a certificate chain, the server's own certificate first.
async fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (text, _mode) = read_file(path).await?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| malformed(path, &error))?;
    if chain.is_empty() {
        return Err(TlsError(format!("{} has no certificate in PEM format", path.display())));
    }
    Ok(chain)
}

/// Reads a private key. Warns if other users can read it, too.
async fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let (text, mode) = read_file(path).await?;
    if mode & 0o004 != 0 {
        tracing::warn!(file = %path.display(), "other users can read the TLS key; remove their permission");
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            TlsError(format!("{} has no private key in PEM format without a passphrase", path.display()))
        }
        error => malformed(path, &error),
    })
}

fn malformed(path: &Path, error: &pem::Error) -> TlsError {
    TlsError(format!("{} is not valid PEM: {error}", path.display()))
}

/// Reads a file on a blocking thread, within [`READ_TIMEOUT`]: it may be on a mount that does not respond. Returns its mode
/// too.
async fn read_file(path: &Path) -> Result<(Vec<u8>, u32), TlsError> {
    let file = path.to_owned();
    let reading = timeout(READ_TIMEOUT, spawn_blocking(move || read_regular_file(&file)));
    let read = async { reading.await?? }.await;
    read.map_err(|error: io::Error| TlsError(format!("cannot read {}: {error}", path.display())))
}

/// Reads a regular file of at most [`MAX_FILE`] bytes.
fn read_regular_file(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    // Otherwise, opening a pipe waits for its writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = Vec::new();
    if file.take(MAX_FILE + 1).read_to_end(&mut text)? as u64 > MAX_FILE {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "larger than 1 MiB"));
    }
    Ok((text, metadata.permissions().mode()))
}
