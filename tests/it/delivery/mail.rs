//! Outcomes of SMTP, and what arrives.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forms::clock::Timestamp;
use forms::delivery::mail::{MailFolder, Mailer, SmtpMailer, SmtpSettings};
use forms::domain::delivery::attempt::{Outcome, SendReport};
use forms::domain::integration::outbound::MailMessage;
use forms::domain::integration::smtp::{MailFrom, SmtpSecurity, SmtpUrl};
use forms::secret::Secret;
use rustls::RootCertStore;
use tokio::sync::Notify;

use super::mail_server::{Action, Encryption, MailServer};
use crate::harness::authority::{Authority, self_signed_server};

const PASSWORD: &str = "correct horse";

fn message(to: &str) -> MailMessage {
    MailMessage {
        id: "dlv_0001".to_owned(),
        to: to.to_owned(),
        reply_to: Some("bo@example.org".to_owned()),
        subject: "New response: Café".to_owned(),
        text: "Name: Bo\n.\nA line\rand another".to_owned(),
        html: "<p>Name: Bo</p>\n".to_owned(),
        date: Timestamp::from_millis(1_700_000_000_000),
        list: Some("frm_1".to_owned()),
        is_confirmation: false,
    }
}

fn url(server: &MailServer, security: SmtpSecurity) -> SmtpUrl {
    SmtpUrl { security, host: "127.0.0.1".to_owned(), port: server.address.port() }
}

/// Settings with a user and a password.
fn settings(url: SmtpUrl) -> SmtpSettings {
    let credentials = Some(("me".to_owned(), Secret::new(PASSWORD.to_owned())));
    SmtpSettings { url, credentials, from: "Example Forms <forms@example.com>".parse().unwrap() }
}

/// A mailer for an unencrypted server, without a password.
fn plain(server: &MailServer) -> SmtpMailer {
    let settings = SmtpSettings { credentials: None, ..settings(url(server, SmtpSecurity::Plain)) };
    SmtpMailer::with_authorities(settings, RootCertStore::empty(), Duration::from_secs(5))
}

/// A mailer with a password that trusts the authority.
fn encrypted(server: &MailServer, security: SmtpSecurity, authority: &Authority) -> SmtpMailer {
    let settings = settings(url(server, security));
    SmtpMailer::with_authorities(settings, authority.roots(), Duration::from_secs(5))
}

/// Sends to an unencrypted server that acts by `rule`, and returns the report and the server.
async fn send_plain(
    to: &str,
    rule: impl Fn(&str) -> Action + Send + Sync + 'static,
) -> (SendReport, MailServer) {
    let server = MailServer::start(Encryption::None, rule).await;
    (plain(&server).send(&message(to)).await, server)
}

/// The class, code and message of a failure.
fn failure(report: &SendReport) -> (&'static str, &'static str, &str) {
    let (class, error) = match &report.outcome {
        Outcome::Retryable { error, .. } => ("retryable", error),
        Outcome::Permanent { error } => ("permanent", error),
        other => panic!("{other:?}"),
    };
    (class, error.code.known().unwrap().name(), &error.message)
}

#[tokio::test]
async fn a_message_arrives_encrypted_and_authenticated() {
    let authority = Authority::new();
    for security in [SmtpSecurity::StartTls, SmtpSecurity::Tls] {
        let config = authority.server("127.0.0.1");
        let encryption = match security {
            SmtpSecurity::Tls => Encryption::Implicit(config),
            _ => Encryption::StartTls(config),
        };
        let server = MailServer::start(encryption, |_| Action::Usual).await;
        let mailer = encrypted(&server, security, &authority);
        let report = mailer.send(&message("a@example.com")).await;
        assert_eq!(report.outcome, Outcome::Delivered);
        assert_eq!(report.response.as_deref(), Some("250 queued"));
        assert_eq!(report.remote_address, Some(server.address.to_string()));
        let log = server.log.lock().unwrap();
        let commands: Vec<_> = log.commands.iter().skip_while(|line| !line.starts_with("tls EHLO")).collect();
        let verbs = commands.iter().map(|line| line.split([' ', ':']).nth(1).unwrap());
        assert!(verbs.eq(["EHLO", "AUTH", "MAIL", "RCPT", "DATA", ".", "QUIT"]), "{commands:?}");
        assert_eq!(commands[1], "tls AUTH PLAIN AG1lAGNvcnJlY3QgaG9yc2U=");
    }
}

#[tokio::test]
async fn a_connection_cut_after_the_message_is_tried_again_as_the_same_message() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let server = MailServer::start(Encryption::None, move |line| {
        if line == "." && attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            Action::Close
        } else {
            Action::Usual
        }
    })
    .await;
    let mailer = plain(&server);
    let first = mailer.send(&message("a@example.com")).await;
    let closed = ("retryable", "connection_failed", "the server closed the connection");
    assert_eq!(failure(&first), closed);
    let second = mailer.send(&message("a@example.com")).await;
    assert_eq!(second.outcome, Outcome::Delivered);
    let log = server.log.lock().unwrap();
    assert_eq!(log.messages.len(), 2);
    for message in &log.messages {
        assert_eq!(message.matches("\r\nMessage-ID: <dlv_0001@example.com>\r\n").count(), 1, "{message}");
    }
}

#[tokio::test]
async fn each_answer_decides_what_follows() {
    for (command, reply, class, code) in [
        ("greeting", "554 no mail here", "retryable", "smtp_rejected"),
        ("greeting", "421 busy", "retryable", "smtp_deferred"),
        ("greeting", "hello", "retryable", "invalid_response"),
        ("greeting", "220 \u{1b}[31m\u{ff}", "retryable", "smtp_rejected"),
        ("EHLO", "502 what?", "retryable", "smtp_rejected"),
        ("MAIL", "450 later", "retryable", "smtp_deferred"),
        ("MAIL", "530 5.7.0 authenticate first", "retryable", "smtp_auth_failed"),
        ("MAIL", "550 not you", "permanent", "smtp_rejected"),
        ("RCPT", "550 nobody", "permanent", "smtp_rejected"),
        ("RCPT", "421 closing", "retryable", "smtp_deferred"),
        ("RCPT", "451 4.7.1 try again later", "retryable", "smtp_deferred"),
        ("DATA", "451 later", "retryable", "smtp_deferred"),
        ("DATA", "554 no valid recipients", "permanent", "smtp_rejected"),
        ("DATA", "250 ok", "retryable", "invalid_response"),
        (".", "452 full", "retryable", "smtp_deferred"),
        (".", "554 spam", "permanent", "smtp_rejected"),
        (".", "250-ok\r\n251 done", "retryable", "invalid_response"),
    ] {
        let is_refused_ehlo = reply.contains('\u{1b}');
        let rule = move |line: &str| match line {
            line if line.starts_with("EHLO") && is_refused_ehlo => Action::Line("550 no"),
            line if line.starts_with(command) => Action::Line(reply),
            _ => Action::Usual,
        };
        let (report, _server) = send_plain("a@example.com", rule).await;
        let (actual_class, actual_code, text) = failure(&report);
        assert_eq!((actual_class, actual_code), (class, code), "{command} {reply}: {text}");
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_without_the_promised_encryption() {
    let authority = Authority::new();
    let server = MailServer::start(Encryption::None, |_| Action::Usual).await;
    let report = encrypted(&server, SmtpSecurity::StartTls, &authority).send(&message("a@example.com")).await;
    let expected = ("retryable", "tls_required", "the server does not offer STARTTLS");
    assert_eq!(failure(&report), expected);
    assert_eq!(server.log.lock().unwrap().commands, ["greeting", "EHLO example.com"]);
    let refusing =
        MailServer::start(Encryption::StartTls(authority.server("127.0.0.1")), |line| match line {
            "STARTTLS" => Action::Line("502 not today"),
            _ => Action::Usual,
        })
        .await;
    let report =
        encrypted(&refusing, SmtpSecurity::StartTls, &authority).send(&message("a@example.com")).await;
    assert_eq!(failure(&report), ("retryable", "tls_required", "502 not today"));
    assert_eq!(refusing.log.lock().unwrap().count("MAIL"), 0);
    let report = encrypted(&server, SmtpSecurity::Tls, &authority).send(&message("a@example.com")).await;
    assert_eq!(failure(&report), ("retryable", "tls_error", "it does not answer in TLS"));
}

#[tokio::test]
async fn answers_smuggled_in_before_encryption_are_not_believed() {
    let authority = Authority::new();
    let server = MailServer::start(Encryption::StartTls(authority.server("127.0.0.1")), |line| match line {
        "STARTTLS" => Action::Line("220 ready\r\n250-evil\r\n250 AUTH PLAIN\r\n235 ok\r\n250 ok\r\n250 ok"),
        _ => Action::Usual,
    })
    .await;
    let report = encrypted(&server, SmtpSecurity::StartTls, &authority).send(&message("a@example.com")).await;
    assert_eq!(failure(&report).1, "tls_error");
    assert_eq!(server.log.lock().unwrap().commands, ["greeting", "EHLO example.com", "STARTTLS"]);
}

#[tokio::test]
async fn certificates_are_checked() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (config, fault) in [
        (authority.server("mail.example.com"), "it is for another host"),
        (other.server("127.0.0.1"), "it is from an unknown authority"),
        (self_signed_server("127.0.0.1"), "it is from an unknown authority"),
    ] {
        for (security, encryption) in [
            (SmtpSecurity::Tls, Encryption::Implicit(Arc::clone(&config))),
            (SmtpSecurity::StartTls, Encryption::StartTls(config)),
        ] {
            let server = MailServer::start(encryption, |_| Action::Usual).await;
            let report = encrypted(&server, security, &authority).send(&message("a@example.com")).await;
            let expected = format!("the certificate is not trusted: {fault}");
            assert_eq!(failure(&report), ("retryable", "tls_error", expected.as_str()));
            let log = server.log.lock().unwrap();
            assert_eq!((log.count("AUTH"), log.count("MAIL")), (0, 0));
        }
    }
}

#[tokio::test]
async fn refused_credentials_are_not_repeated_in_the_report() {
    let authority = Authority::new();
    for (reply, code) in [
        ("535 5.7.8 AUTH PLAIN AG1lAGNvcnJlY3QgaG9yc2U= or correct horse?", "smtp_auth_failed"),
        ("534 weak", "smtp_auth_failed"),
        ("550 no", "smtp_auth_failed"),
        ("334 ", "smtp_auth_failed"),
        ("454 later", "smtp_deferred"),
    ] {
        let server = MailServer::start(Encryption::StartTls(authority.server("127.0.0.1")), move |line| {
            if line.starts_with("AUTH") { Action::Line(reply) } else { Action::Usual }
        })
        .await;
        let report =
            encrypted(&server, SmtpSecurity::StartTls, &authority).send(&message("a@example.com")).await;
        let (class, actual, _) = failure(&report);
        assert_eq!((class, actual), ("retryable", code), "{reply}");
        let shown = format!("{report:?}");
        assert!(!shown.contains(PASSWORD) && !shown.contains("AG1lAG"), "{shown}");
        assert_eq!(server.log.lock().unwrap().count("MAIL"), 0);
    }
    let settings = settings("smtps://mail.example.com".parse().unwrap());
    assert!(!format!("{settings:?}").contains(PASSWORD));
}

#[tokio::test]
async fn login_is_used_where_plain_is_not_offered() {
    let server = MailServer::start(Encryption::None, |line| match line {
        line if line.starts_with("EHLO") => Action::Line("250-stub\r\n250 AUTH LOGIN"),
        "AUTH LOGIN" => Action::Line("334 VXNlcm5hbWU6"),
        "bWU=" => Action::Line("334 UGFzc3dvcmQ6"),
        "Y29ycmVjdCBob3JzZQ==" => Action::Line("235 welcome"),
        _ => Action::Usual,
    })
    .await;
    let settings = settings(url(&server, SmtpSecurity::Plain));
    let mailer = SmtpMailer::with_authorities(settings, RootCertStore::empty(), Duration::from_secs(5));
    assert_eq!(mailer.send(&message("a@example.com")).await.outcome, Outcome::Delivered);
}

#[tokio::test]
async fn a_server_that_never_ends_or_never_answers_costs_little() {
    let (report, _server) = send_plain("a@example.com", |line| match line {
        "greeting" => Action::Endless(b"220-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        _ => Action::Usual,
    })
    .await;
    assert_eq!(failure(&report).1, "invalid_response");
    for silent in ["greeting", "EHLO", "RCPT"] {
        let server = MailServer::start(Encryption::None, move |line| {
            if line.starts_with(silent) { Action::Silence } else { Action::Usual }
        })
        .await;
        let settings = SmtpSettings { credentials: None, ..settings(url(&server, SmtpSecurity::Plain)) };
        let mailer =
            SmtpMailer::with_authorities(settings, RootCertStore::empty(), Duration::from_millis(300));
        let started = Instant::now();
        let report = mailer.send(&message("a@example.com")).await;
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(failure(&report), ("retryable", "timeout", "no answer in time"), "{silent}");
        assert!(matches!(report.outcome, Outcome::Retryable { is_slow: true, .. }));
    }
}

/// Sends to a server that answers to the message after this time, or never.
async fn report_after(seconds: u64, is_answered: bool) -> SendReport {
    let (reached, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (signal, wait) = (Arc::clone(&reached), Arc::clone(&answer));
    let server = MailServer::start(Encryption::None, move |line| {
        if line != "." {
            return Action::Usual;
        }
        signal.notify_one();
        Action::Wait(Arc::clone(&wait))
    })
    .await;
    let mailer = plain(&server);
    let sending = tokio::spawn(async move { mailer.send(&message("a@example.com")).await });
    reached.notified().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
    if is_answered {
        answer.notify_one();
    }
    sending.await.unwrap()
}

#[tokio::test]
async fn the_answer_to_a_message_may_take_ten_minutes() {
    assert_eq!(report_after(590, true).await.outcome, Outcome::Delivered);
    let report = report_after(601, false).await;
    assert_eq!(failure(&report), ("retryable", "timeout", "no answer in time"));
}

#[tokio::test]
async fn a_message_that_was_accepted_stays_so_whatever_follows() {
    for action in [Action::Close, Action::Silence, Action::Line("500 what?")] {
        let rule = move |line: &str| if line == "QUIT" { action.clone() } else { Action::Usual };
        let (report, _server) = send_plain("a@example.com", rule).await;
        assert_eq!(report.outcome, Outcome::Delivered);
    }
}

#[tokio::test]
async fn servers_that_cannot_be_reached_are_tried_again() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (host, code) in [("127.0.0.1", "connection_failed"), ("mail..invalid", "dns_error")] {
        let url = SmtpUrl { security: SmtpSecurity::StartTls, host: host.to_owned(), port: closed.port() };
        let mailer =
            SmtpMailer::with_authorities(settings(url), RootCertStore::empty(), Duration::from_secs(20));
        let report = mailer.send(&message("a@example.com")).await;
        assert_eq!((failure(&report).0, failure(&report).1), ("retryable", code));
    }
}

#[tokio::test]
async fn hostile_texts_add_no_header_and_no_recipient() {
    const EVIL: &str = "Evil\r\nBcc: x@example.com\r\n\r\n.\r\nMAIL FROM:<y@example.com>";
    let server = MailServer::start(Encryption::None, |_| Action::Usual).await;
    let mailer = plain(&server);
    let long = format!("a@{}example.com", "x.".repeat(130));
    let invalid = "|a|a@|@example.com|b@example.com\r\nBcc: x@example.com|c@example.com>\r\nRCPT TO:<x@example.com|\
        a@example.com\0|a@b.c,d@e.f|A <a@b.c>|<a@b.c>|a@b.c>|\"a b\"@b.c|é@b.c|a b@c.d|a@b.c |a@b c";
    for to in invalid.split('|').chain([long.as_str()]) {
        let report = mailer.send(&message(to)).await;
        let (class, code, text) = failure(&report);
        assert_eq!((class, code), ("permanent", "invalid_recipient"), "{to:?}");
        assert!(!text.contains(char::is_control), "{text}");
    }
    let mail = MailMessage {
        id: "dlv_1>\r\nBcc: x@example.com".to_owned(),
        list: Some("frm_1>\r\nBcc: x@example.com".to_owned()),
        reply_to: Some("bo@example.org\r\nBcc: x@example.com".to_owned()),
        subject: EVIL.to_owned(),
        text: format!("{EVIL}\0\u{85}\n{}", "x".repeat(5_000)),
        html: format!("<p>{EVIL}\r{}", "é".repeat(5_000)),
        ..message("a@example.com")
    };
    assert_eq!(mailer.send(&mail).await.outcome, Outcome::Delivered);
    let log = server.log.lock().unwrap();
    let (sender, recipient) = ("MAIL FROM:<forms@example.com>", "RCPT TO:<a@example.com>");
    assert_eq!(log.commands, ["greeting", "EHLO example.com", sender, recipient, "DATA", ".", "QUIT"]);
    let (head, body) = log.messages[0].split_once("\r\n\r\n").unwrap();
    let names: Vec<_> = head
        .split("\r\n")
        .filter(|line| !line.starts_with([' ', '\t']))
        .map(|line| line.split(':').next().unwrap())
        .collect();
    let automatic = ["Auto-Submitted", "X-Auto-Response-Suppress", "List-Id", "MIME-Version", "Content-Type"];
    assert_eq!(names, [&["From", "To", "Subject", "Date", "Message-ID"][..], &automatic].concat());
    assert!(body.contains("Content-Transfer-Encoding: quoted-printable"), "{body}");
    assert!(body.contains("Content-Transfer-Encoding: base64"), "{body}");
}

/// The headers of a message to `to`, as they are written into a folder.
async fn head(to: &str, subject: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let name = Some("Evil\r\nBcc: x@example.com".to_owned());
    let from = MailFrom { name, address: "forms@example.com".to_owned() };
    let mail = MailMessage { subject: subject.to_owned(), ..message(to) };
    assert_eq!(MailFolder::new(folder.path().to_owned(), from).send(&mail).await.outcome, Outcome::Delivered);
    let text = fs::read_to_string(folder.path().join("dlv_0001.eml")).unwrap();
    text.split_once("MIME-Version").unwrap().0.to_owned()
}

#[tokio::test]
async fn a_subject_is_one_line_of_plain_text_with_150_characters_at_most() {
    for (subject, expected) in [
        ("Evil\r\nBcc: x@example.com", "Evil Bcc: x@example.com"),
        ("a\u{202e}b\u{85}c\0d\u{7f}", "ab cd"),
        ("=?utf-8?q?a=0D=0ABcc:_b?=", "= ?utf-8?q?a=0D=0ABcc:_b?="),
        ("=\u{200e}?utf-8?q?a?=", "= ?utf-8?q?a?="),
    ] {
        let head = head("a@bücher.example", subject).await;
        assert!(head.contains("\r\nTo: a@xn--bcher-kva.example\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nSubject: {expected}\r\n")), "{head}");
        assert!(head.contains("\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\n"), "{head}");
        assert!(!head.contains("\nBcc"), "{head}");
    }
    let (full, cut) = ("é".repeat(150), "é".repeat(149) + "…");
    assert_eq!(head("a@b.c", &"é".repeat(151)).await, head("a@b.c", &cut).await);
    assert_ne!(head("a@b.c", &full).await, head("a@b.c", &cut).await);
}

#[tokio::test]
async fn a_folder_gets_a_private_file_for_each_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail");
    let mailer = MailFolder::new(path.clone(), "forms@example.com".parse().unwrap());
    for id in ["dlv_0001", "../../dlv_0002", "dlv_0001"] {
        let mail = MailMessage { id: id.to_owned(), ..message("a@example.com") };
        assert_eq!(mailer.send(&mail).await.outcome, Outcome::Delivered);
    }
    let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["dlv_0001.eml", "dlv_0002.eml"]);
    let file = path.join("dlv_0001.eml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("\r\nTo: a@example.com\r\n"));
    let unusable = MailFolder::new(file, "forms@example.com".parse().unwrap());
    let report = unusable.send(&message("a@example.com")).await;
    assert_eq!((failure(&report).0, failure(&report).1), ("retryable", "file_error"));
}
