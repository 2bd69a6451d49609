//! Values that the operator sets for integrations: the mail server, the sender, and the address of Google.

use forms::domain::integration::google_sheets::GoogleEndpoints;
use forms::domain::integration::smtp::{InvalidSmtpUrl, MailFrom, SmtpSecurity, SmtpUrl};

#[test]
fn the_url_of_a_mail_server_names_security_host_and_port() {
    let parse = |text: &str| text.parse::<SmtpUrl>().map(|url| (url.security, url.host, url.port));
    let host = || "mail.example.com".to_owned();
    assert_eq!(parse("smtps://mail.example.com"), Ok((SmtpSecurity::Tls, host(), 465)));
    assert_eq!(parse("smtp://Mail.Example.com:2525/"), Ok((SmtpSecurity::StartTls, host(), 2525)));
    assert_eq!(parse("smtps://[2001:db8::1]"), Ok((SmtpSecurity::Tls, "2001:db8::1".to_owned(), 465)));
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        assert!(parse(&format!("smtp+plain://{host}:25")).is_ok(), "{host}");
    }
    for host in ["mail.example.com", "10.0.0.1", "localhost.example.com", "127.0.0.1.example.com", "0.0.0.0"]
    {
        assert_eq!(parse(&format!("smtp+plain://{host}")), Err(InvalidSmtpUrl::NotLoopback), "{host}");
    }
    assert_eq!(parse("smtps://me:secret@example.com"), Err(InvalidSmtpUrl::HasCredentials));
    let malformed = "|example.com|example.com:25|http://a.b|smtp://|smtp://a/b|smtp://a?b|smtp://a:0";
    for text in malformed.split('|') {
        assert_eq!(parse(text), Err(InvalidSmtpUrl::Malformed), "{text}");
    }
}

#[test]
fn a_sender_is_an_address_with_or_without_a_name() {
    let parse = |text: &str| text.parse::<MailFrom>().ok().map(|from| (from.name, from.address));
    for (text, name) in [
        ("a@example.com", None),
        ("<a@example.com>", None),
        ("Jané Forms <a@example.com>", Some("Jané Forms")),
        ("\"Forms, Inc.\" <a@example.com>", Some("Forms, Inc.")),
    ] {
        assert_eq!(parse(text), Some((name.map(str::to_owned), "a@example.com".to_owned())));
    }
    let evil = "Evil\r\nBcc: x@example.com <a@example.com>";
    for text in ["", "a", "Forms", "a@example.com, b@example.com", evil] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn one_url_replaces_both_hosts_of_google() {
    for base in ["http://127.0.0.1:9/google", "http://127.0.0.1:9/google/"] {
        let endpoints: GoogleEndpoints = base.parse().unwrap();
        assert_eq!(endpoints.token.as_str(), "http://127.0.0.1:9/google/token");
        assert_eq!(endpoints.spreadsheets.as_str(), "http://127.0.0.1:9/google/v4/spreadsheets");
    }
    let invalid = "|google|ftp://a.example|https://me@a.example|https://a.example?x|https://a.example#x";
    for text in invalid.split('|') {
        assert!(text.parse::<GoogleEndpoints>().is_err(), "{text}");
    }
}
