//! Sends mail over SMTP (RFC 5321), one connection for each message.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use tokio::io::BufReader;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::Mailer;
use super::dialogue::{
    self, About, Dialogue, Reply, Stream, connection_error, handshake_error, invalid_reply,
};
use super::message::{self, BuiltMail};
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
        Self { settings, secrets, authorities: None, limit: DIALOGUE_LIMIT, connector }
    }

    /// Creates a mailer that trusts these authorities instead of the system's, with its own limit on the dialogue before the message.
    pub fn with_authorities(settings: SmtpSettings, authorities: RootCertStore, limit: Duration) -> Self {
        Self { authorities: Some(authorities), limit, ..Self::new(settings) }
    }

    async fn exchange(&self, mail: &BuiltMail, dialogue: &mut Dialogue<'_>) -> Result<(), Outcome> {
        let deadline = Instant::now() + self.limit;
        let late = |_elapsed| report::timed_out();
        let mut stream = timeout_at(deadline, self.log_in(mail, dialogue)).await.map_err(late)??;
        let begun = timeout_at(deadline, begin(&mut stream, mail, dialogue)).await.map_err(late).flatten();
        let result = match begun {
            Ok(()) => {
                let sending = dialogue.send_message(&mut stream, &mail.bytes);
                timeout(MESSAGE_LIMIT, sending).await.map_err(late).flatten()
            }
            failed => failed,
        };
        let quit = async {
            dialogue::send(&mut stream, b"QUIT\r\n").await?;
            dialogue::read_reply(&mut stream).await
        };
        let _unanswered = timeout(QUIT_LIMIT, quit).await;
        result
    }

    /// Connects, encrypts and authenticates.
    async fn log_in(&self, mail: &BuiltMail, dialogue: &mut Dialogue<'_>) -> Result<Stream, Outcome> {
        const REFUSED: About<'_> = About::Connection(ErrorCode::SmtpRejected);
        let security = self.settings.url.security;
        let mut stream: Stream = BufReader::new(Box::new(self.dial(dialogue).await?));
        if security == SmtpSecurity::Tls {
            stream = self.encrypt(stream).await?;
        }
        dialogue.reply(&mut stream, REFUSED).await?;
        let hello = format!("EHLO {}", mail.sender.domain());
        let mut offered = dialogue.command(&mut stream, &hello, REFUSED).await?;
        if security == SmtpSecurity::StartTls {
            if !offered.has_extension("STARTTLS") {
                return Err(retry(ErrorCode::TlsRequired, "the server does not offer STARTTLS"));
            }
            dialogue.command(&mut stream, "STARTTLS", About::Connection(ErrorCode::TlsRequired)).await?;
            stream = self.encrypt(stream).await?;
            // What was offered before is not to be trusted (RFC 3207 §4.2).
            offered = dialogue.command(&mut stream, &hello, REFUSED).await?;
        }
        if let Some((user, password)) = &self.settings.credentials {
            authenticate(&mut stream, &offered, user, password, dialogue).await?;
        }
        Ok(stream)
    }

    /// Opens a connection to the first of the server's addresses that accepts one.
    async fn dial(&self, dialogue: &mut Dialogue<'_>) -> Result<TcpStream, Outcome> {
        let url = &self.settings.url;
        let mut failure = retry(ErrorCode::DnsError, "the host name is not known");
        let Ok(addresses) = lookup_host((url.host.as_str(), url.port)).await else { return Err(failure) };
        for address in addresses.filter(|address| is_allowed(url.security, address)) {
            match timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    dialogue.remote_address = Some(address);
                    // Without it small commands could wait for acknowledgements.
                    let _unsupported = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = connection_error(&error),
                Err(_elapsed) => failure = report::timed_out(),
            }
        }
        Err(failure)
    }

    /// Encrypts a connection, and checks the server's certificate and name.
    async fn encrypt(&self, stream: Stream) -> Result<Stream, Outcome> {
        let invalid = |_error| retry(ErrorCode::TlsError, "the host is not a valid name of a server");
        let name = ServerName::try_from(self.settings.url.host.clone()).map_err(invalid)?;
        let connector = self.connector().map_err(|error| {
            retry(ErrorCode::TlsError, format!("the server has no certificates of authorities: {error}"))
        })?;
        // What somebody on the way adds behind the reply to STARTTLS would be read as sent under TLS (CVE-2011-0411).
        if !stream.buffer().is_empty() {
            return Err(retry(ErrorCode::TlsError, "it does not answer in TLS"));
        }
        let encrypted = connector.connect(name, stream.into_inner()).await;
        Ok(BufReader::new(Box::new(encrypted.map_err(|error| handshake_error(&error))?)))
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
        let mail = match message::build(message, &self.settings.from) {
            Ok(mail) => mail,
            Err(report) => return *report,
        };
        let mut dialogue = Dialogue::new(&self.secrets);
        let result = self.exchange(&mail, &mut dialogue).await;
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
    stream: &mut Stream,
    offered: &Reply,
    user: &str,
    password: &Secret<String>,
    dialogue: &mut Dialogue<'_>,
) -> Result<(), Outcome> {
    const CODE: ErrorCode = ErrorCode::SmtpAuthFailed;
    let password = password.reveal();
    let (command, challenges) = if offered.has_mechanism("PLAIN") {
        (format!("AUTH PLAIN {}", STANDARD.encode(format!("\0{user}\0{password}"))), Vec::new())
    } else if offered.has_mechanism("LOGIN") {
        ("AUTH LOGIN".to_owned(), vec![STANDARD.encode(user), STANDARD.encode(password)])
    } else {
        return Err(retry(CODE, "the server offers neither AUTH PLAIN nor AUTH LOGIN"));
    };
    let mut reply = dialogue.command(stream, &command, About::Connection(CODE)).await?;
    for response in challenges {
        if reply.code == 334 {
            reply = dialogue.command(stream, &response, About::Connection(CODE)).await?;
        }
    }
    match reply.code {
        200..=299 => Ok(()),
        _ => Err(retry(CODE, "the server asks for something else than user name and password")),
    }
}

/// Names the sender and the recipient, and begins the message.
async fn begin(stream: &mut Stream, mail: &BuiltMail, dialogue: &mut Dialogue<'_>) -> Result<(), Outcome> {
    let sender = format!("MAIL FROM:<{}>", mail.sender);
    dialogue.command(stream, &sender, About::Mail("the sender")).await?;
    let recipient = format!("RCPT TO:<{}>", mail.recipient);
    dialogue.command(stream, &recipient, About::Mail(mail.recipient.as_ref())).await?;
    let begun = dialogue.command(stream, "DATA", About::Mail("the message")).await?;
    if begun.code == 354 { Ok(()) } else { Err(invalid_reply()) }
}
