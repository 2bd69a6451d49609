//! A certificate authority for tests of TLS.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forms::config::TlsFiles;
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use time::OffsetDateTime;

/// A certificate authority that issues certificates for `localhost` and 127.0.0.1.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let folder = tempfile::tempdir().unwrap();
        // Each authority has another name.
        params.distinguished_name.push(DnType::CommonName, folder.path().to_str().unwrap());
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.path().join("authority.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// The file with the authority's own certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Issues a certificate with the common name `name`.
    pub(crate) fn issue(&self, name: &str) -> TlsFiles {
        let files = self.files(name);
        self.issue_to(name, &files);
        files
    }

    /// Issues a certificate that expires at `end`.
    pub(crate) fn issue_until(&self, end: OffsetDateTime) -> TlsFiles {
        let files = self.files("expiring");
        let mut params = params("expiring");
        params.not_after = end;
        self.write(&params, &files);
        files
    }

    fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            certificate: self.folder.path().join(format!("{name}.pem")),
            key: self.folder.path().join(format!("{name}.key")),
        }
    }

    /// Issues a certificate with the common name `name`, and writes it and its key to `files`.
    pub(crate) fn issue_to(&self, name: &str, files: &TlsFiles) {
        self.write(&params(name), files);
    }

    fn write(&self, params: &CertificateParams, files: &TlsFiles) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(&files.certificate, certificate.pem() + &self.issuer.pem()).unwrap();
        write_private(&files.key, &key.serialize_pem());
    }

    /// The roots of a client that trusts the authority.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    /// The configuration of a server with a certificate for `host`.
    pub(crate) fn server(&self, host: &str) -> Arc<ServerConfig> {
        let params = CertificateParams::new([host.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        server_config(&certificate, &key)
    }

    /// The configuration of a client that trusts the authority and offers `protocols` by ALPN.
    pub(crate) fn client(&self, protocols: &[&str]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// The configuration of a server with a certificate for `host` that no authority signed.
pub(crate) fn self_signed_server(host: &str) -> Arc<ServerConfig> {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([host.to_owned()]).unwrap().self_signed(&key).unwrap();
    server_config(&certificate, &key)
}

fn server_config(certificate: &Certificate, key: &KeyPair) -> Arc<ServerConfig> {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).unwrap())
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
