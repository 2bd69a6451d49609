//! The settings of a server with their defaults, as plain values.
//!
//! The command line makes the flags of `serve` from this; nothing here reads a flag, a file or the environment.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;

use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::google_sheets::GoogleEndpoints;
use crate::domain::integration::smtp::{MailFrom, SmtpUrl};
use crate::domain::validation::limits::Limits;
use crate::domain::web_origin::parse_web_url;
use crate::secret::Secret;

pub use crate::domain::rate::{Period, Rate};
pub use crate::domain::web_origin::WebOrigin;

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub store: StoreLocation,
    /// Where to listen. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where metrics are served without a key, besides the API.
    pub metrics_listen: Option<SocketAddr>,
    /// Whether plain HTTP may be served on an address that other machines can reach.
    pub insecure_http: bool,
    /// The certificate with which HTTPS is served. `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Minimum free bytes on the disk; with less, writes are refused.
    pub min_free: u64,
    /// Memory for the store's cache in bytes.
    pub cache_size: u64,
    /// Days that deleted forms and submissions can be restored.
    pub trash_days: u32,
    pub content: Limits,
    /// Limits on requests and connections, proxies, and web origins.
    pub http: HttpSettings,
    pub delivery: DeliveryConfig,
}

impl Config {
    /// Returns the default settings for the data directory `data`.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            store: StoreLocation::Folder(data.into()),
            listen: (Ipv4Addr::LOCALHOST, 8787).into(),
            metrics_listen: None,
            insecure_http: false,
            tls: None,
            min_free: 128 << 20,
            cache_size: 48 << 20,
            trash_days: 30,
            content: Limits::default(),
            http: HttpSettings::default(),
            delivery: DeliveryConfig::default(),
        }
    }

    /// Fails if the server would send keys and answers unencrypted to other machines, or could not send mail as the settings
    /// say. A trusted proxy receives keys and answers encrypted and passes them on.
    pub fn check(&self) -> Result<(), String> {
        let safe = self.listen.ip().to_canonical().is_loopback()
            || self.insecure_http
            || self.tls.is_some()
            || !self.http.trusted_proxies.is_empty();
        if !safe {
            return Err(format!(
                "{} can be reached from other machines, and keys and answers would travel unencrypted; serve HTTPS with \
                 --tls-cert and --tls-key, name a proxy that speaks HTTPS with --trusted-proxy, or allow it with \
                 --insecure-http",
                self.listen
            ));
        }
        self.delivery.check_keys(&self.store)?;
        Ok(self.delivery.mail.check()?)
    }
}

/// Where the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// The embedded store, in this data directory; created if it does not exist.
    Folder(PathBuf),
    /// A database, by its URL, which may have a password.
    Database(Secret<String>),
}

impl StoreLocation {
    pub fn is_database(&self) -> bool {
        matches!(self, Self::Database(_))
    }

    /// Returns the data directory, if it is the embedded store.
    pub fn folder(&self) -> Option<&Path> {
        if let Self::Folder(folder) = self { Some(folder) } else { None }
    }
}

impl FromStr for StoreLocation {
    type Err = &'static str;

    /// Reads the URL of a database, or a path.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Database(Secret::new(text.to_owned()))),
            // It may have a password, so it must not become a folder's name.
            Some(_) => Err("expected a folder, or postgres://USER@HOST/NAME"),
            None => Ok(Self::Folder(text.into())),
        }
    }
}

/// The path, or the URL without user, password and parameters.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = match self {
            Self::Folder(folder) => return folder.display().fmt(f),
            Self::Database(url) => url.reveal(),
        };
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may have any character. With an `@` after the `?`, either may be a part of one.
        let place =
            if parameters.contains('@') { "" } else { address.rsplit('@').next().unwrap_or_default() };
        write!(f, "{scheme}://{place}")
    }
}

/// Deliveries to integrations, and the secrets that they need.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliveryConfig {
    /// Which addresses may be called.
    pub policy: AddressPolicy,
    /// Waits between attempts in milliseconds, instead of each type's own.
    pub retry_schedule: Option<Vec<i64>>,
    /// The key that seals secrets, as text.
    pub master_key: Option<Secret<String>>,
    /// The file with it. With neither, it is `master-key` in the data directory, made if it is missing.
    pub master_key_file: Option<PathBuf>,
    /// Where the first server of a database writes the operator key.
    pub operator_key_file: Option<PathBuf>,
    /// Whether to make a missing `master-key` although integrations have secrets, which are lost.
    pub new_master_key: bool,
    /// Whether deliveries only wait.
    pub is_paused: bool,
    pub mail: MailConfig,
    /// Where Google spreadsheets are.
    pub google: GoogleEndpoints,
}

impl DeliveryConfig {
    /// Fails if the keys cannot be where the settings say. Servers of a database have no data directory for them.
    fn check_keys(&self, store: &StoreLocation) -> Result<(), &'static str> {
        let has_key = self.master_key.is_some() || self.master_key_file.is_some();
        match store {
            _ if self.master_key.is_some() && self.master_key_file.is_some() => {
                Err("FORMS_MASTER_KEY and --master-key-file both give the master key; use one of them")
            }
            StoreLocation::Folder(_) if self.operator_key_file.is_some() => {
                Err("--operator-key-file is for a database; the data directory has the operator key")
            }
            StoreLocation::Database(_) if self.new_master_key => Err(
                "--new-master-key makes a file in a data directory; with a database, give the new key itself",
            ),
            StoreLocation::Database(_) if !has_key => Err(
                "a database needs a master key, which seals the secrets of integrations: set FORMS_MASTER_KEY or \
                     --master-key-file, the same on every server; `openssl rand -base64 32` makes one",
            ),
            StoreLocation::Folder(_) | StoreLocation::Database(_) => Ok(()),
        }
    }
}

/// How mail is sent: by a server, or into a folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MailConfig {
    pub smtp_url: Option<SmtpUrl>,
    pub smtp_username: Option<String>,
    /// The file with the password.
    pub smtp_password_file: Option<PathBuf>,
    /// The sender of all mail.
    pub from: Option<MailFrom>,
    /// Where mail is written instead of being sent.
    pub folder: Option<PathBuf>,
}

impl MailConfig {
    /// Fails if mail could not be sent as the settings say.
    pub fn check(&self) -> Result<(), &'static str> {
        let (has_server, has_sender) = (self.smtp_url.is_some(), self.from.is_some());
        match (&self.smtp_username, &self.smtp_password_file) {
            (Some(_), None) => Err("--smtp-username needs the password: --smtp-password-file FILE"),
            (None, Some(_)) => Err("--smtp-password-file needs the user name: --smtp-username NAME"),
            (Some(_), Some(_)) if !has_server => Err(
                "--smtp-username and --smtp-password-file need the mail server: --smtp-url smtps://HOST:PORT",
            ),
            _ if has_server && self.folder.is_some() => {
                Err("--mail-dir writes mail to files, and --smtp-url sends it; give one of them")
            }
            _ if has_server && !has_sender => {
                Err("--smtp-url needs a sender: --mail-from \"Example Forms <forms@example.com>\"")
            }
            _ => Ok(()),
        }
    }
}

/// The files of a certificate and its key, in PEM format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
}

/// Limits on requests and connections, and how the server is reached: proxies, its public URL, and web origins. Sizes are
/// in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSettings {
    /// Maximum size of a body.
    pub max_body: usize,
    /// Maximum size of a body that defines a form.
    pub max_definition: usize,
    /// Bytes of a batch of submissions.
    pub max_batch: usize,
    /// Maximum length of the request target.
    pub max_uri: usize,
    /// Maximum total size of the headers.
    pub max_head: usize,
    /// Maximum number of headers.
    pub max_headers: usize,
    /// From the first byte of a request to the end of its headers.
    pub head_timeout: Duration,
    /// From the opening of a connection to its first byte.
    pub first_byte_timeout: Duration,
    /// For the body, plus a second for each `min_body_rate` bytes received.
    pub body_timeout: Duration,
    /// Minimum rate of a body once `body_timeout` has passed, in bytes per second.
    pub min_body_rate: u32,
    /// Maximum time between two requests on a connection.
    pub idle_timeout: Duration,
    /// Maximum number of connections; beyond it, the one idle longest is closed for the next.
    pub max_connections: usize,
    /// Maximum number of connections from one IPv4 address or IPv6 /64. `None` is a quarter of `max_connections`, and
    /// no limit for loopback and trusted proxies.
    pub max_connections_per_address: Option<usize>,
    /// Maximum rate of failed authentications per address; beyond it, invalid keys get 429. `None`: no limit.
    pub auth_failures: Option<Rate>,
    /// Maximum rate of requests with one API key. `None`: no limit.
    pub rate_limit: Option<Rate>,
    /// Maximum rate of answers sent to pages of forms per address. `None`: no limit.
    pub page_rate: Option<Rate>,
    /// Networks of the proxies whose `X-Forwarded-*` headers are used.
    pub trusted_proxies: Vec<IpNet>,
    /// The URL of the server for its clients; takes precedence over what proxies report.
    pub base_url: Option<BaseUrl>,
    /// Web origins whose scripts may read responses (CORS).
    pub cors_origins: Vec<WebOrigin>,
    /// Whether every request is logged, not only those that fail.
    pub access_log: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            max_body: 1 << 20,
            max_definition: 2 << 20,
            max_batch: 8 << 20,
            max_uri: 8 << 10,
            max_head: 32 << 10,
            max_headers: 64,
            head_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(15),
            min_body_rate: 1 << 10,
            idle_timeout: Duration::from_secs(60),
            max_connections: 1_024,
            max_connections_per_address: None,
            auth_failures: Some(Rate { count: 10, per: Period::Minute }),
            rate_limit: None,
            page_rate: Some(Rate { count: 30, per: Period::Minute }),
            trusted_proxies: Vec::new(),
            base_url: None,
            cors_origins: Vec::new(),
            access_log: false,
        }
    }
}

/// Number of connections beyond `max_connections` that serve only `/healthz` and `/readyz`.
pub const KEPT_CONNECTIONS: usize = 8;

/// Open files reserved for the store and the logs.
const STORE_FILES: usize = 128;

impl HttpSettings {
    /// Returns the maximum number of connections from one address, if it is neither loopback nor a trusted proxy.
    pub fn connections_per_address(&self) -> usize {
        self.max_connections_per_address.unwrap_or(self.max_connections / 4).min(self.max_connections).max(1)
    }

    /// Returns the maximum number of connections from `address`. Without a limit of their own, loopback and trusted proxies
    /// may hold all: a proxy connects for all clients.
    pub fn connections_from(&self, address: IpAddr) -> usize {
        let is_proxy = address.to_canonical().is_loopback() || self.is_trusted_proxy(address);
        if is_proxy && self.max_connections_per_address.is_none() {
            self.max_connections
        } else {
            self.connections_per_address()
        }
    }

    /// Whether `address` belongs to a trusted proxy.
    pub fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies.iter().any(|network| network.contains(&address))
    }

    /// Lowers `max_connections` to what a process that may open `files` files can serve: all but 128 files, or half of them
    /// if there are few, minus the connections for health checks and those about to close. Returns whether it was lowered.
    pub fn fit_open_files(&mut self, files: usize) -> bool {
        let connections = files.saturating_sub(STORE_FILES).max(files / 2);
        let most = connections.saturating_sub(2 * KEPT_CONNECTIONS).max(1);
        let is_lowered = most < self.max_connections;
        self.max_connections = self.max_connections.min(most);
        is_lowered
    }
}

/// The URL under which clients reach the server: `http` or `https`, without a slash at the end, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(String);

impl BaseUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BaseUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = parse_web_url(text).ok_or(
            "expected an http or https URL without user, query and fragment, such as https://forms.example.com/forms",
        )?;
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}
