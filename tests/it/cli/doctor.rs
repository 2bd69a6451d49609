//! `forms doctor`, and how `forms serve` is watched.

use std::fs;
use std::net::TcpListener;

use forms::clock::{Clock, SystemClock};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::Home;
use super::fake_server::send;
use super::serve::https_args;
use crate::delivery::mail_server::{Action, Encryption, MailServer};
use crate::harness::authority::Authority;

/// The result of the check `name`.
fn check<'a>(checks: &'a Value, name: &str) -> &'a Value {
    let mut all = checks["checks"].as_array().unwrap().iter();
    all.find(|check| check["name"] == name).unwrap_or_else(|| panic!("{checks}"))
}

#[test]
fn a_healthy_server_has_no_findings() {
    let home = Home::new();
    let _server = home.serve();
    let run = home.run(&["doctor"]).expect(0);
    let lines: Vec<_> = run.stdout.lines().map(|line| line.split('\t').take(2).collect::<Vec<_>>()).collect();
    for name in ["address", "clock", "ready", "key", "version", "disk"] {
        assert!(lines.contains(&vec![name, "ok"]), "{run:?}");
    }
    for name in ["certificate", "mail", "webhooks"] {
        assert!(lines.contains(&vec![name, "skipped"]), "{run:?}");
    }
    let key = home.ok(&["keys", "create", "--name", "reader", "--scope", "read"]);
    let run = home.run_with(&[("FORMS_API_KEY", key.trim())], &["doctor", "-o", "json"]).expect(0);
    assert_eq!(check(&run.json(), "store")["result"], "skipped");
}

#[test]
fn each_finding_says_what_to_do() {
    let home = Home::new();
    let server =
        home.serve_with(&["serve", "--data=store", "--listen=127.0.0.1:0", "--allow-net=127.0.0.0/8"]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let form = home.published_form(&[]);
    home.ok(&["integrations", "create", &form, "--webhook", &format!("http://{closed}/hook")]);
    let smtp = format!("--smtp-url=smtp+plain://{closed}");
    let run = home.run(&["doctor", "-o", "json", &smtp, "--mail-from=forms@example.com"]).expect(1);
    let checks = serde_json::from_str(&run.stdout).unwrap();
    for name in ["mail", "webhooks"] {
        let check = check(&checks, name);
        assert_eq!(check["result"], "problem");
        let (detail, help) = (check["detail"].as_str().unwrap(), check["help"].as_str().unwrap());
        assert!(detail.contains("connection refused") && help.starts_with("correct "), "{check}");
    }
    let wrong = [("FORMS_URL", &*server.url), ("FORMS_API_KEY", "fk_wrong")];
    let run = home.run_with(&wrong, &["doctor", "-o", "json"]).expect(1);
    assert_eq!(check(&serde_json::from_str(&run.stdout).unwrap(), "key")["result"], "problem");
    let run = home.run(&["doctor", "--url", "http://127.0.0.1:1", "-o", "json"]).expect(1);
    let checks = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(check(&checks, "address")["result"], "problem");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mail_server_is_asked_without_a_message() {
    let (home, authority) = (Home::new(), Authority::new());
    let mail =
        MailServer::start(Encryption::StartTls(authority.server("localhost")), |_| Action::Usual).await;
    let _server = home.serve();
    home.write("password", "secret\n");
    let (port, trusted) = (mail.address.port(), authority.file());
    let url = format!("smtp://localhost:{port}");
    let variables = [
        ("FORMS_SMTP_URL", &*url),
        ("FORMS_SMTP_USERNAME", "me"),
        ("FORMS_SMTP_PASSWORD_FILE", "password"),
        ("FORMS_MAIL_FROM", "forms@example.com"),
        ("SSL_CERT_FILE", trusted.to_str().unwrap()),
    ];
    let run = home.run_with(&variables, &["doctor", "-o", "json"]).expect(0);
    assert_eq!(check(&run.json(), "mail")["result"], "ok", "{run:?}");
    let log = mail.log.lock().unwrap();
    assert!(log.messages.is_empty() && log.count("MAIL") == 0, "{:?}", log.commands);
    assert_eq!(
        (log.count("STARTTLS"), log.count("AUTH"), log.count("QUIT")),
        (1, 1, 1),
        "{:?}",
        log.commands
    );
}

#[test]
fn a_certificate_that_expires_soon_is_a_warning() {
    let (home, authority) = (Home::new(), Authority::new());
    let now = OffsetDateTime::from_unix_timestamp(SystemClock.now().millis() / 1_000).unwrap();
    // After 2049 a certificate has its years with four digits.
    for (days, result, exit) in [(13, "warning", 1), (16, "ok", 0), (20_000, "ok", 0)] {
        let files = authority.issue_until(now + time::Duration::days(days));
        let server = home.serve_with(&https_args(&files));
        let trusted = authority.file();
        let run = home.run_with(&[("SSL_CERT_FILE", trusted.to_str().unwrap())], &["doctor", "-o", "json"]);
        let checks = serde_json::from_str(&run.expect(exit).stdout).unwrap();
        assert_eq!(check(&checks, "certificate")["result"], result, "{checks}");
        drop(server);
    }
}

#[test]
fn wait_ends_when_the_server_is_ready_or_with_7() {
    let home = Home::new();
    let run = home.run(&["doctor", "--wait", "200ms"]).expect(7);
    assert!(run.stdout.is_empty() && run.stderr.contains("no server responds at"), "{run:?}");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| home.run(&["doctor", "--wait", "60s"]));
        let server = home.serve();
        waiting.join().unwrap().expect(0);
        drop(server);
    });
}

#[test]
fn metrics_have_an_address_of_their_own_and_every_request_is_logged() {
    let home = Home::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let args =
        ["serve", "--data=store", "--listen=127.0.0.1:0", "--access-log", "--metrics-listen", &address];
    let server = home.serve_with(&args);
    let metrics = send(&format!("http://{address}"), "GET", "/metrics", "none", "");
    assert!(metrics.contains("forms_build_info{version="), "{metrics}");
    assert!(!metrics.contains("\nforms_store_sync_duration_seconds_count 0\n"), "{metrics}");
    home.ok(&["list"]);
    let log = fs::read_to_string(home.path().join("serve.log")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let line =
        lines.into_iter().find(|line| line["path"] == "/api/v1/forms" && line["status"] == 200).unwrap();
    assert_eq!(
        (&line["method"], &line["bytes"], &line["client"]),
        (&json!("GET"), &json!(12), &json!("127.0.0.1"))
    );
    assert!(line["micros"].is_u64() && line["request_id"].is_string(), "{line}");
    let taken = [
        "serve",
        "--data=other",
        "--listen=127.0.0.1:0",
        "--metrics-listen",
        server.url.trim_start_matches("http://"),
    ];
    let run = home.run(&taken).expect(5);
    assert!(run.stderr.contains("is in use by"), "{run:?}");
}
