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
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::Mailer;
use super::message::{self, BuiltMail};
use super::replies::{Concern, Dialogue, connection_error, handshake_error, invalid_reply};
use super::stream::SmtpStream;
use crate::delivery::report::{self, retry};
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::outbound::MailMessage;
use crate::domain::integration::smtp::{MailFrom, SmtpSecurity, SmtpUrl};
use crate::secret::Secret;

/// Time from the connection to the beginning of the message.
const DIALOGUE_LIMIT: Duration = Duration::from_secs(30);

/// Time for the message and the answer to it (RFC 5321 §4.5.3.2.6): who gives up earlier sends it twice.
const MESSAGE_LIMIT: Duration = Duration::from_secs(600);

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
        Self { settings, secrets, authorities: None, limit: DIALOGUE_LIMIT, connector }
    }

    /// Creates a mailer that trusts these authorities instead of the system's, with its own limit on the dialogue before the message.
    pub fn with_authorities(settings: SmtpSettings, authorities: RootCertStore, limit: Duration) -> Self {
        Self { authorities: Some(authorities), limit, ..Self::new(settings) }
    }

    async fn exchange(&self, message: &MailMessage, dialogue: &mut Dialogue<'_>) -> Result<(), Outcome> {
        let mail = message::build(message, &self.settings.from)?;
        let deadline = Instant::now() + self.limit;
        let late = |_elapsed| report::timed_out();
        let mut connection =
            timeout_at(deadline, self.log_in(mail.sender.domain(), dialogue)).await.map_err(late)??;
        let begun = timeout_at(deadline, begin(&mut connection, &mail, dialogue)).await.map_err(late);
        let result = match begun.flatten() {
            Ok(()) => {
                let sending = send_message(&mut connection, &mail, dialogue);
                timeout(MESSAGE_LIMIT, sending).await.map_err(late).flatten()
            }
            failed => failed,
        };
        let _unanswered = timeout(QUIT_LIMIT, connection.quit()).await;
        result
    }

    /// Connects, encrypts, authenticates and quits, without a message.
    ///
    /// # Errors
    /// If mail could not be sent: the outcome that an attempt would have.
    pub async fn check(&self) -> Result<(), Outcome> {
        let domain = self.settings.from.address.rsplit('@').next().unwrap_or_default();
        let mut dialogue = Dialogue::new(&self.secrets);
        let logged_in = timeout(self.limit, self.log_in(domain, &mut dialogue)).await;
        let mut connection = logged_in.map_err(|_elapsed| report::timed_out())??;
        let _unanswered = timeout(QUIT_LIMIT, connection.quit()).await;
        Ok(())
    }

    /// Connects, encrypts and authenticates, as a client of this domain.
    async fn log_in(
        &self,
        domain: &str,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<AsyncSmtpConnection, Outcome> {
        let name = ClientId::Domain(domain.to_owned());
        let (mut connection, server) = self.connect(&name, dialogue).await?;
        if let Some((user, password)) = &self.settings.credentials {
            let credentials = Credentials::new(user.clone(), password.reveal().clone());
            authenticate(&mut connection, &server, credentials, dialogue).await?;
        }
        Ok(connection)
    }

    /// Connects and encrypts. Returns the connection and what the server offers.
    async fn connect(
        &self,
        name: &ClientId,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<(AsyncSmtpConnection, ServerInfo), Outcome> {
        let stream = self.dial(dialogue).await?;
        let security = self.settings.url.security;
        if security == SmtpSecurity::Tls {
            self.encrypt(&stream).await?;
        }
        let connecting = AsyncSmtpConnection::connect_with_transport(Box::new(stream.clone()), name);
        let mut connection = match connecting.await {
            Ok(connection) => connection,
            // The greeting or EHLO: the operator's matter, not the message's.
            Err(error) => {
                let refused = dialogue.expect(Err(error), Concern::Connection(ErrorCode::SmtpRejected));
                return Err(refused.err().unwrap_or_else(invalid_reply));
            }
        };
        let server = connection.server_info().clone();
        if security != SmtpSecurity::StartTls {
            return Ok((connection, server));
        }
        if !server.supports_feature(Extension::StartTls) {
            return Err(retry(ErrorCode::TlsRequired, "the server does not offer STARTTLS"));
        }
        dialogue.expect(connection.command(Starttls).await, Concern::Connection(ErrorCode::TlsRequired))?;
        self.encrypt(&stream).await?;
        // What was offered before is not to be trusted (RFC 3207 §4.2).
        let greeted = connection.command(Ehlo::new(name.clone())).await;
        let response = dialogue.expect(greeted, Concern::Connection(ErrorCode::SmtpRejected))?;
        let server = ServerInfo::from_response(&response).map_err(|_error| invalid_reply())?;
        Ok((connection, server))
    }

    /// Opens a connection to the first of the server's addresses that accepts one.
    async fn dial(&self, dialogue: &mut Dialogue<'_>) -> Result<SmtpStream, Outcome> {
        let url = &self.settings.url;
        let mut failure = retry(ErrorCode::DnsError, "the host name is not known");
        let Ok(addresses) = lookup_host((url.host.as_str(), url.port)).await else { return Err(failure) };
        for address in addresses.filter(|address| is_allowed(url.security, address)) {
            match timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    dialogue.remote_address = Some(address);
                    // Without it small commands could wait for acknowledgements.
                    let _unsupported = stream.set_nodelay(true);
                    return Ok(SmtpStream::new(stream, address));
                }
                Ok(Err(error)) => failure = connection_error(&error),
                Err(_elapsed) => failure = report::timed_out(),
            }
        }
        Err(failure)
    }

    async fn encrypt(&self, stream: &SmtpStream) -> Result<(), Outcome> {
        let invalid = |_error| retry(ErrorCode::TlsError, "the host is not a valid name of a server");
        let name = ServerName::try_from(self.settings.url.host.clone()).map_err(invalid)?;
        let connector = self.connector().map_err(|error| {
            retry(ErrorCode::TlsError, format!("the server has no certificates of authorities: {error}"))
        })?;
        stream.encrypt(&connector, name).await.map_err(|error| handshake_error(&error))
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
    async fn send(&self, message: &MailMessage) -> SendReport {
        let started = Instant::now();
        let mut dialogue = Dialogue::new(&self.secrets);
        let result = self.exchange(message, &mut dialogue).await;
        dialogue.into_report(result, started)
    }
}

/// Whether a connection to `address` may be made: an unencrypted one must not leave this machine.
fn is_allowed(security: SmtpSecurity, address: &SocketAddr) -> bool {
    security != SmtpSecurity::Plain || address.ip().to_canonical().is_loopback()
}

/// The password, and how AUTH PLAIN sends it.
fn secrets(settings: &SmtpSettings) -> Vec<Secret<String>> {
    let Some((user, password)) = &settings.credentials else { return Vec::new() };
    let plain = STANDARD.encode(format!("\0{user}\0{}", password.reveal()));
    vec![Secret::new(plain), password.clone()]
}

async fn authenticate(
    connection: &mut AsyncSmtpConnection,
    server: &ServerInfo,
    credentials: Credentials,
    dialogue: &mut Dialogue<'_>,
) -> Result<(), Outcome> {
    const CODE: ErrorCode = ErrorCode::SmtpAuthFailed;
    let invalid = |_error| retry(CODE, "the server asks for something else than user name and password");
    let Some(mechanism) = server.get_auth_mechanism(&[Mechanism::Plain, Mechanism::Login]) else {
        return Err(retry(CODE, "the server offers neither AUTH PLAIN nor AUTH LOGIN"));
    };
    let mut command = Auth::new(mechanism, credentials.clone(), None).map_err(invalid)?;
    for _ in 0..MAX_CHALLENGES {
        let response = dialogue.expect(connection.command(command).await, Concern::Connection(CODE))?;
        if response.code().severity == Severity::PositiveCompletion {
            return Ok(());
        }
        command = Auth::new_from_response(mechanism, credentials.clone(), &response).map_err(invalid)?;
    }
    Err(invalid_reply())
}

/// Names the sender and the recipient, and begins the message.
async fn begin(
    connection: &mut AsyncSmtpConnection,
    mail: &BuiltMail,
    dialogue: &mut Dialogue<'_>,
) -> Result<(), Outcome> {
    let sender = connection.command(Mail::new(Some(mail.sender.clone()), Vec::new())).await;
    dialogue.expect(sender, Concern::Mail("the sender"))?;
    let recipient = connection.command(Rcpt::new(mail.recipient.clone(), Vec::new())).await;
    dialogue.expect(recipient, Concern::Mail(mail.recipient.as_ref()))?;
    let begun = dialogue.expect(connection.command(Data).await, Concern::Mail("the message"))?;
    if begun.has_code(354) { Ok(()) } else { Err(invalid_reply()) }
}

async fn send_message(
    connection: &mut AsyncSmtpConnection,
    mail: &BuiltMail,
    dialogue: &mut Dialogue<'_>,
) -> Result<(), Outcome> {
    let sent = dialogue.expect(connection.message(&mail.bytes).await, Concern::Mail("the message"))?;
    let is_accepted = sent.code().severity == Severity::PositiveCompletion;
    if is_accepted { Ok(()) } else { Err(invalid_reply()) }
}
