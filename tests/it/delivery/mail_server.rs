//! A local mail server that answers as the test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// What the server does once it has read a command.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Answers as servers do.
    Usual,
    /// Answers with this line or lines, without the last line break.
    Line(&'static str),
    /// Closes the connection.
    Close,
    /// Answers as servers do, once it is notified.
    Wait(Arc<Notify>),
    /// Answers nothing.
    Silence,
    /// Sends this again and again.
    Endless(&'static [u8]),
}

/// How connections are encrypted.
#[derive(Clone)]
pub(crate) enum Encryption {
    None,
    StartTls(Arc<ServerConfig>),
    Implicit(Arc<ServerConfig>),
}

/// What happened on the connections.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Commands, with `tls ` in front of those that came encrypted. `greeting` and `.` stand for the greeting and a message.
    pub(crate) commands: Vec<String>,
    /// Messages, as sent, also those that were refused.
    pub(crate) messages: Vec<String>,
}

impl Log {
    pub(crate) fn count(&self, command: &str) -> usize {
        let plain = |line: &&String| line.trim_start_matches("tls ").starts_with(command);
        self.commands.iter().filter(plain).count()
    }
}

type Rule = dyn Fn(&str) -> Action + Send + Sync;

/// A server on a port of its own.
pub(crate) struct MailServer {
    pub(crate) address: SocketAddr,
    pub(crate) log: Arc<Mutex<Log>>,
}

impl MailServer {
    /// Starts a server that acts upon each command by `rule`.
    pub(crate) async fn start(
        encryption: Encryption,
        rule: impl Fn(&str) -> Action + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Log::default()));
        let (shared, rule): (_, Arc<Rule>) = (Arc::clone(&log), Arc::new(rule));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = Connection {
                    encryption: encryption.clone(),
                    rule: Arc::clone(&rule),
                    log: Arc::clone(&shared),
                };
                tokio::spawn(connection.serve(stream));
            }
        });
        Self { address, log }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

type Stream = BufReader<Box<dyn Duplex>>;

struct Connection {
    encryption: Encryption,
    rule: Arc<Rule>,
    log: Arc<Mutex<Log>>,
}

impl Connection {
    /// Serves a connection until either side closes it.
    async fn serve(self, stream: TcpStream) -> Option<()> {
        let mut is_encrypted = false;
        let mut stream: Stream = BufReader::new(Box::new(stream));
        if let Encryption::Implicit(config) = &self.encryption {
            (stream, is_encrypted) = (encrypt(stream, config).await?, true);
        }
        self.act("greeting", "220 stub ESMTP", is_encrypted, &mut stream).await?;
        loop {
            let line = read_line(&mut stream).await?;
            let verb = line.split([' ', ':']).next()?.to_uppercase();
            let usual = match verb.as_str() {
                "EHLO" if matches!(self.encryption, Encryption::StartTls(_)) && !is_encrypted => {
                    "250-stub\r\n250 STARTTLS"
                }
                "EHLO" => "250-stub\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
                "STARTTLS" => "220 ready",
                "AUTH" => "235 welcome",
                "DATA" => "354 go on",
                "QUIT" => "221 bye",
                _ => "250 ok",
            };
            let reply = self.act(&line, usual, is_encrypted, &mut stream).await?;
            match (&self.encryption, verb.as_str()) {
                (Encryption::StartTls(config), "STARTTLS") if reply.starts_with("220") => {
                    (stream, is_encrypted) = (encrypt(stream, config).await?, true);
                }
                (_, "DATA") if reply.starts_with("354") => {
                    let message = read_message(&mut stream).await?;
                    self.log.lock().unwrap().messages.push(message);
                    self.act(".", "250 queued", is_encrypted, &mut stream).await?;
                }
                (_, "QUIT") => return None,
                _ => {}
            }
        }
    }

    /// Logs a command and acts upon it; returns the answer.
    async fn act(
        &self,
        line: &str,
        usual: &'static str,
        is_encrypted: bool,
        stream: &mut Stream,
    ) -> Option<&'static str> {
        let prefix = if is_encrypted { "tls " } else { "" };
        self.log.lock().unwrap().commands.push(format!("{prefix}{line}"));
        let reply = match (self.rule)(line) {
            Action::Usual => usual,
            Action::Wait(notify) => {
                notify.notified().await;
                usual
            }
            Action::Line(reply) => reply,
            Action::Close => return None,
            Action::Silence => {
                // Until the client gives up.
                while stream.read_u8().await.is_ok() {}
                return None;
            }
            Action::Endless(bytes) => {
                while stream.write_all(bytes).await.is_ok() {}
                return None;
            }
        };
        stream.write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
        stream.flush().await.ok()?;
        Some(reply)
    }
}

async fn encrypt(stream: Stream, config: &Arc<ServerConfig>) -> Option<Stream> {
    let encrypted = TlsAcceptor::from(Arc::clone(config)).accept(stream.into_inner()).await.ok()?;
    Some(BufReader::new(Box::new(encrypted)))
}

/// Reads a line without its end; `None` at the end of the connection.
async fn read_line(stream: &mut Stream) -> Option<String> {
    let mut line = String::new();
    let length = stream.read_line(&mut line).await.ok()?;
    (length > 0).then(|| line.trim_end_matches("\r\n").to_owned())
}

/// Reads a message up to the line with a dot.
async fn read_message(stream: &mut Stream) -> Option<String> {
    let mut message = String::new();
    loop {
        let line = read_line(stream).await?;
        assert!(line.len() <= 998 && !line.contains(['\r', '\n', '\0']), "{line:?}");
        match line.strip_prefix('.') {
            Some("") => return Some(message),
            Some(rest) => message.push_str(rest),
            None => message.push_str(&line),
        }
        message.push_str("\r\n");
    }
}
