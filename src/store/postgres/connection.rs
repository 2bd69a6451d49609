//! Connections to the database: their URL, their encryption, and the pool of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::OpenError;

/// Connections of one server.
pub const CONNECTIONS: usize = 16;

/// Longest wait for a free connection, and for a new one.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// After this, a connection whose other end does not answer is closed.
const SILENCE: Duration = Duration::from_secs(10);

/// The members of a URL that this program reads itself: those of libpq that the driver does not know.
#[derive(Default)]
struct Encryption<'a> {
    mode: Option<&'a str>,
    root_certificates: Option<&'a str>,
}

/// Makes the pool of connections to the database at `url`. Connects to nothing yet.
pub(super) fn new_pool(url: &str) -> Result<Pool, OpenError> {
    let (url, encryption) = split(url);
    let mut config: Config = url.parse().map_err(|error| invalid(&error))?;
    if config.get_hosts().is_empty() {
        return Err(OpenError::InvalidUrl("it names no host".to_owned()));
    }
    // A host that is silent leaves time for the others.
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
    config
        .connect_timeout(CONNECT_WAIT / hosts.saturating_add(1))
        .keepalives_idle(SILENCE)
        .tcp_user_timeout(SILENCE);
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_application_name().is_none() {
        config.application_name("forms");
    }
    let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = if is_encrypted(&config, encryption.mode)? {
        config.ssl_mode(SslMode::Require);
        let tls = MakeRustlsConnect::new(tls(encryption.root_certificates)?);
        Manager::from_config(config, tls, settings)
    } else {
        config.ssl_mode(SslMode::Disable);
        Manager::from_config(config, NoTls, settings)
    };
    let pool = Pool::builder(manager).max_size(CONNECTIONS).runtime(Runtime::Tokio1);
    let pool = pool.wait_timeout(Some(CONNECT_WAIT)).create_timeout(Some(CONNECT_WAIT)).build();
    pool.map_err(|error| invalid(&error))
}

fn invalid(error: &dyn std::error::Error) -> OpenError {
    OpenError::InvalidUrl(super::transaction::with_causes(error))
}

/// Takes the members of [`Encryption`] out of the query of `url`.
fn split(url: &str) -> (String, Encryption<'_>) {
    let mut encryption = Encryption::default();
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), encryption) };
    let mut kept = Vec::new();
    for member in query.split('&') {
        match member.split_once('=') {
            Some(("sslmode", mode)) => encryption.mode = Some(mode),
            Some(("sslrootcert", path)) => encryption.root_certificates = Some(path),
            _ => kept.push(member),
        }
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    (format!("{base}{mark}{}", kept.join("&")), encryption)
}

/// Whether connections are encrypted and the server's name is verified: by default unless it is on this machine.
fn is_encrypted(config: &Config, mode: Option<&str>) -> Result<bool, OpenError> {
    match mode {
        Some("disable") => Ok(false),
        Some("require" | "verify-ca" | "verify-full") => Ok(true),
        Some(other) => Err(OpenError::InvalidUrl(format!(
            "sslmode is `{other}`; use `verify-full`, or `disable` on a network that nobody else can read"
        ))),
        None => Ok(config.get_hosts().iter().any(|host| match host {
            Host::Tcp(name) => {
                name != "localhost" && !name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
            }
            Host::Unix(_) => false,
        })),
    }
}

/// The authorities in the file `roots`, or those of the system.
fn tls(roots: Option<&str>) -> Result<ClientConfig, OpenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| invalid(&error))?;
    let Some(path) = roots else {
        return Ok(builder.with_platform_verifier().map_err(|error| invalid(&error))?.with_no_client_auth());
    };
    Ok(builder.with_root_certificates(read_roots(Path::new(path))?).with_no_client_auth())
}

fn read_roots(path: &Path) -> Result<RootCertStore, OpenError> {
    let failed = |error: &dyn std::error::Error| {
        OpenError::InvalidUrl(format!(
            "cannot use the certificates in sslrootcert `{}`: {error}",
            path.display()
        ))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))? {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    Ok(roots)
}
