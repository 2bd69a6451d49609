//! Sends mail over SMTP (RFC 5321), one connection for each message.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Auth, Data, Ehlo, Mail, Rcpt, Starttls};
use lettre::transport::smtp::extension::{ClientId, Extension, ServerInfo};
use lettre::transport::smtp::response::Severity;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::Mailer;
use super::message::{self, BuiltMail};
use super::replies::{Failure, Progress, Reply};
use super::stream::SmtpStream;
use crate::delivery::report;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::integration::outbound::MailMessage;
use crate::domain::integration::smtp::{MailFrom, SmtpSecurity, SmtpUrl};
use crate::secret::Secret;

/// Time for a whole exchange.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(30);

/// Time to connect to one of the server's addresses.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Time to wait for the answer to QUIT, on which nothing depends.
const QUIT_LIMIT: Duration = Duration::from_secs(1);

/// Maximum steps of AUTH LOGIN: user name and password.
const MAX_CHALLENGES: u32 = 3;

/// How to reach the operator's mail server.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    pub url: SmtpUrl,
    /// User name and password; `None` to send without.
    pub credentials: Option<(String, Secret<String>)>,
    pub from: MailFrom,
}

/// Sends mail by a server.
pub struct SmtpMailer {
    settings: SmtpSettings,
    /// Texts that the server may send back.
    secrets: Vec<Secret<String>>,
    /// `None`: the system's.
    authorities: Option<RootCertStore>,
    limit: Duration,
    // Made at the first mail: reading the system's authorities takes a while.
    connector: OnceLock<TlsConnector>,
}

impl SmtpMailer {
    pub fn new(settings: SmtpSettings) -> Self {
        let secrets = secrets(&settings);
        let connector = OnceLock::new();
        Self { settings, secrets, authorities: None, limit: EXCHANGE_LIMIT, connector }
    }

    /// Creates a mailer that trusts these authorities instead of the system's, with its own limit on the whole exchange.
    pub fn with_authorities(settings: SmtpSettings, authorities: RootCertStore, limit: Duration) -> Self {
        Self { authorities: Some(authorities), limit, ..Self::new(settings) }
    }

    async fn exchange(&self, mail: &BuiltMail, progress: &mut Progress<'_>) -> Result<(), Failure> {
        if progress.unsettled().is_empty() {
            return Ok(());
        }
        let name = ClientId::Domain(mail.sender.domain().to_owned());
        let (mut connection, server) = self.connect(&name, progress).await?;
        if let Some((user, password)) = &self.settings.credentials {
            let credentials = Credentials::new(user.clone(), password.reveal().clone());
            authenticate(&mut connection, &server, credentials, progress).await?;
        }
        let result = transfer(&mut connection, mail, progress).await;
        let _unanswered = timeout(QUIT_LIMIT, connection.quit()).await;
        result
    }

    /// Connects and encrypts. Returns the connection and what the server offers.
    async fn connect(
        &self,
        name: &ClientId,
        progress: &mut Progress<'_>,
    ) -> Result<(AsyncSmtpConnection, ServerInfo), Failure> {
        let stream = self.dial(progress).await?;
        let security = self.settings.url.security;
        if security == SmtpSecurity::Tls {
            self.encrypt(&stream).await?;
        }
        let connecting = AsyncSmtpConnection::connect_with_transport(Box::new(stream.clone()), name);
        let mut connection = match connecting.await {
            Ok(connection) => connection,
            // The greeting or EHLO: the operator's matter, not the message's.
            Err(error) => {
                return Err(progress
                    .expect(Err(error), "smtp_rejected")
                    .err()
                    .unwrap_or_else(Failure::invalid_reply));
            }
        };
        let server = connection.server_info().clone();
        if security != SmtpSecurity::StartTls {
            return Ok((connection, server));
        }
        if !server.supports_feature(Extension::StartTls) {
            return Err(Failure::new("tls_required", "the server does not offer STARTTLS"));
        }
        progress.expect(connection.command(Starttls).await, "tls_required")?;
        self.encrypt(&stream).await?;
        // What was offered before is not to be trusted (RFC 3207 §4.2).
        let response = progress.expect(connection.command(Ehlo::new(name.clone())).await, "smtp_rejected")?;
        let server = ServerInfo::from_response(&response).map_err(|_error| Failure::invalid_reply())?;
        Ok((connection, server))
    }

    /// Opens a connection to the first of the server's addresses that accepts one.
    async fn dial(&self, progress: &mut Progress<'_>) -> Result<SmtpStream, Failure> {
        let url = &self.settings.url;
        let mut failure = Failure::new("dns_error", "the host name is not known");
        let Ok(addresses) = lookup_host((url.host.as_str(), url.port)).await else { return Err(failure) };
        for address in addresses.filter(|address| is_allowed(url.security, address)) {
            match timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    progress.remote_address = Some(address);
                    // Without it small commands could wait for acknowledgements.
                    let _unsupported = stream.set_nodelay(true);
                    return Ok(SmtpStream::new(stream, address));
                }
                Ok(Err(error)) => failure = Failure::of_io(&error),
                Err(_elapsed) => failure = Failure::timeout(),
            }
        }
        Err(failure)
    }

    async fn encrypt(&self, stream: &SmtpStream) -> Result<(), Failure> {
        let invalid = |_error| Failure::new("tls_error", "the host is not a valid name of a server");
        let name = ServerName::try_from(self.settings.url.host.clone()).map_err(invalid)?;
        let connector = self.connector().map_err(|error| {
            Failure::new("tls_error", format!("the server has no certificates of authorities: {error}"))
        })?;
        stream.encrypt(&connector, name).await.map_err(|error| Failure::of_handshake(&error))
    }

    fn connector(&self) -> Result<TlsConnector, rustls::Error> {
        if let Some(connector) = self.connector.get() {
            return Ok(connector.clone());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let config = match &self.authorities {
            Some(authorities) => config.with_root_certificates(authorities.clone()),
            // As reqwest does: the system's authorities, or those of SSL_CERT_FILE.
            None => config.dangerous().with_custom_certificate_verifier(Arc::new(Verifier::new(provider)?)),
        };
        let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
        Ok(self.connector.get_or_init(|| connector).clone())
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, message: &MailMessage, settled: u16) -> SendReport {
        let started = Instant::now();
        let Ok(mail) = message::build(message, &self.settings.from) else {
            return report::panicked();
        };
        let mut progress = Progress::new(&mail, &message.to, settled, &self.secrets);
        let exchange = self.exchange(&mail, &mut progress);
        let result = timeout(self.limit, exchange).await.unwrap_or_else(|_elapsed| Err(Failure::timeout()));
        progress.into_report(result, started.elapsed())
    }
}

/// Whether a connection to `address` may be made: an unencrypted one must not leave this machine.
fn is_allowed(security: SmtpSecurity, address: &SocketAddr) -> bool {
    security != SmtpSecurity::Plain || address.ip().to_canonical().is_loopback()
}

/// The password, and how it is sent.
fn secrets(settings: &SmtpSettings) -> Vec<Secret<String>> {
    let Some((user, password)) = &settings.credentials else { return Vec::new() };
    let password = password.reveal();
    let plain = STANDARD.encode(format!("\0{user}\0{password}"));
    [plain, STANDARD.encode(password), password.clone()].map(Secret::new).into()
}

async fn authenticate(
    connection: &mut AsyncSmtpConnection,
    server: &ServerInfo,
    credentials: Credentials,
    progress: &mut Progress<'_>,
) -> Result<(), Failure> {
    const CODE: &str = "smtp_auth_failed";
    let invalid =
        |_error| Failure::new(CODE, "the server asks for something else than user name and password");
    let Some(mechanism) = server.get_auth_mechanism(&[Mechanism::Plain, Mechanism::Login]) else {
        return Err(Failure::new(CODE, "the server offers neither AUTH PLAIN nor AUTH LOGIN"));
    };
    let mut command = Auth::new(mechanism, credentials.clone(), None).map_err(invalid)?;
    for _ in 0..MAX_CHALLENGES {
        let response = progress.expect(connection.command(command).await, CODE)?;
        if response.code().severity == Severity::PositiveCompletion {
            return Ok(());
        }
        command = Auth::new_from_response(mechanism, credentials.clone(), &response).map_err(invalid)?;
    }
    Err(Failure::invalid_reply())
}

/// Gives the message to the server, for all recipients that it accepts.
async fn transfer(
    connection: &mut AsyncSmtpConnection,
    mail: &BuiltMail,
    progress: &mut Progress<'_>,
) -> Result<(), Failure> {
    let unsettled = progress.unsettled();
    let all = unsettled.iter().fold(0, |bits, (bit, _)| bits | bit);
    let sender = connection.command(Mail::new(Some(mail.sender.clone()), Vec::new())).await;
    if !settle(progress.read(sender)?, all, "the sender", progress) {
        return Ok(());
    }
    let mut accepted = 0;
    for (bit, address) in unsettled {
        let reply = progress.read(connection.command(Rcpt::new(address.clone(), Vec::new())).await)?;
        if settle(reply, bit, address.as_ref(), progress) {
            accepted |= bit;
        }
    }
    if accepted == 0 {
        return Ok(());
    }
    let reply = progress.read(connection.command(Data).await)?;
    match &reply {
        Reply::Accepted(response) if !response.has_code(354) => return Err(Failure::invalid_reply()),
        _ => {}
    }
    if !settle(reply, accepted, "the message", progress) {
        return Ok(());
    }
    let reply = progress.read(connection.message(&mail.bytes).await)?;
    match &reply {
        Reply::Accepted(response) if response.code().severity != Severity::PositiveCompletion => {
            return Err(Failure::invalid_reply());
        }
        _ => {}
    }
    if settle(reply, accepted, "the message", progress) {
        progress.accept(accepted);
    }
    Ok(())
}

/// Records a reply that is not positive for the recipients `bits`; returns whether it is.
fn settle(reply: Reply, bits: u16, what: &str, progress: &mut Progress<'_>) -> bool {
    match reply {
        Reply::Accepted(_) => return true,
        Reply::Deferred(line) => progress.defer(what, &line),
        Reply::Refused(line) => progress.refuse(bits, what, &line),
    }
    false
}
