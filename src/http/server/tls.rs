//! TLS: the certificate and its key, read from files and reloaded while the server runs.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustix::fs::OFlags;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::TlsFiles;

/// Protocols offered by ALPN (RFC 7301), preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Maximum size of a certificate or key file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Maximum time for reading both files.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a connection's data that is encrypted but not yet taken by its socket, in bytes.
const MAX_UNSENT: usize = 16 << 10;

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// A file is a folder, a device, or a pipe.
    #[error("{} is not a regular file", path.display())]
    NotRegular { path: PathBuf },
    /// A file is too large for a certificate or a key.
    #[error("{} has more than 1 MiB", path.display())]
    TooLarge { path: PathBuf },
    /// A file is on a mount that does not respond.
    #[error("reading {} and {} took longer than {} s", certificate.display(), key.display(), READ_TIMEOUT.as_secs())]
    TimedOut { certificate: PathBuf, key: PathBuf },
    /// A file is not in PEM format.
    #[error("{} is not valid PEM: {source}", path.display())]
    Malformed { path: PathBuf, source: pem::Error },
    /// The file of the certificate has none.
    #[error("{} has no certificate in PEM format", path.display())]
    NoCertificate { path: PathBuf },
    /// The file of the key has none.
    #[error("{} has no private key in PEM format without a passphrase", path.display())]
    NoKey { path: PathBuf },
    /// The first certificate is not valid.
    #[error("the certificate in {} is not valid: {source}", path.display())]
    InvalidCertificate { path: PathBuf, source: rustls::Error },
    /// The key is not valid, or of an unsupported kind.
    #[error("the key in {} is not valid: {source}", path.display())]
    InvalidKey { path: PathBuf, source: rustls::Error },
    /// The key belongs to another certificate.
    #[error("the key in {} does not match the first certificate in {}", key.display(), certificate.display())]
    KeyMismatch { certificate: PathBuf, key: PathBuf },
}

/// The certificate that new connections get.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the certificate and its key.
    pub async fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let current = RwLock::new(read_in_time(&files).await?);
        Ok(Self { files, current })
    }

    /// Reads both files again. New connections get the new certificate, and do not resume sessions of the previous one.
    /// After an error they get the previous certificate.
    pub async fn reload(&self) -> Result<(), TlsError> {
        let next = read_in_time(&self.files).await?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Returns the configuration for a new connection.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The outcome of a TLS handshake.
pub(crate) enum Handshake {
    Tls(Box<TlsStream<TcpStream>>),
    /// The client sends HTTP without TLS.
    PlainHttp(TcpStream),
}

/// Performs the TLS handshake.
pub(crate) async fn accept(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<Handshake> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    // HTTP begins with a method, TLS with 0x16 (RFC 8446 §5.1).
    if first[0].is_ascii_uppercase() {
        return Ok(Handshake::PlainHttp(stream));
    }
    let mut stream = Box::new(TlsAcceptor::from(config).accept(stream).await?);
    stream.get_mut().1.set_buffer_limit(Some(MAX_UNSENT));
    Ok(Handshake::Tls(stream))
}

/// Whether client and server agreed on HTTP/2.
pub(crate) fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(PROTOCOLS[0])
}

/// Reads both files on a blocking thread.
async fn read_in_time(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsFiles { certificate, key } = files.clone();
    let reading = spawn_blocking({
        let files = files.clone();
        move || read(&files)
    });
    match timeout(READ_TIMEOUT, reading).await {
        Ok(Ok(read)) => read.map(Arc::new),
        Ok(Err(panicked)) => resume_unwind(panicked.into_panic()),
        Err(_elapsed) => Err(TlsError::TimedOut { certificate, key }),
    }
}

/// Reads both files. Supports TLS 1.2 and 1.3, and keys in PKCS#8, SEC1 and PKCS#1.
fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(default_provider());
    let certified = certified_key(files, &provider)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

fn certified_key(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let (path, key_path) = (files.certificate.clone(), files.key.clone());
    let chain = read_certificates(&path)?;
    let key = provider.key_provider.load_private_key(read_key(&key_path)?);
    let key = key.map_err(|source| TlsError::InvalidKey { path: key_path.clone(), source })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsError::KeyMismatch { certificate: path, key: key_path })
        }
        Err(source) => Err(TlsError::InvalidCertificate { path, source }),
    }
}

/// Reads a certificate chain, the server's own certificate first.
fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read_file(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|source| TlsError::Malformed { path: path.to_owned(), source })?;
    if chain.is_empty() { Err(TlsError::NoCertificate { path: path.to_owned() }) } else { Ok(chain) }
}

/// Reads a private key. Warns if other users can read it, too.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read_file(path)?;
    if fs::metadata(path).is_ok_and(|metadata| is_public(&metadata)) {
        tracing::warn!(file = %path.display(), "other users can read the TLS key; remove their permission");
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey { path: path.to_owned() },
        source => TlsError::Malformed { path: path.to_owned(), source },
    })
}

fn is_public(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o004 != 0
}

/// Reads a regular file of at most [`MAX_FILE`] bytes.
fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    // Otherwise, opening a pipe waits for its writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(TlsError::NotRegular { path: path.to_owned() });
    }
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE { Err(TlsError::TooLarge { path: path.to_owned() }) } else { Ok(text) }
}
