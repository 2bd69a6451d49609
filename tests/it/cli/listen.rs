//! `forms listen`: verifies, reports and forwards webhooks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forms::clock::{Clock, SystemClock, Timestamp};
use forms::receiver::{self, Settings, SigningSecret};
use ring::hmac;
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;

use super::Home;
use super::fake_server::FakeServer;
use super::terminal::Session;
use crate::harness::ManualClock;

pub(crate) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A running `forms listen`, killed when it is dropped.
pub(crate) struct Listener {
    child: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Listener {
    /// Starts it at a free port, with `arguments`.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_at(home, "127.0.0.1:0", arguments)
    }

    pub(crate) fn start_at(home: &Home, address: &str, arguments: &[&str]) -> Self {
        let arguments = [&["listen", "--listen", address], arguments].concat();
        let mut command = home.command(&arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut listener = Self { child, lines, url: String::new() };
        let first = listener.line();
        let url =
            serde_json::from_str::<Value>(&first).map(|first| first["url"].as_str().unwrap().to_owned());
        listener.url = url.unwrap_or(first);
        listener
    }

    /// Waits for the next line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut stderr = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("forms listen ended: {stderr}");
        }
        line.trim_end_matches('\n').to_owned()
    }

    /// Waits for the next line and returns it without its time.
    fn event(&mut self) -> String {
        self.line().split_once('\t').unwrap().1.to_owned()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a request and returns the response.
fn send(url: &str, method: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    let head = format!(
        "{method} /hook HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The receiver may answer before it has read everything.
    drop(stream.write_all(body.as_bytes()));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8(answer).unwrap()
}

/// The headers of a webhook with `body`, signed with [`SECRET`].
fn signed(body: &str) -> String {
    let timestamp = SystemClock.now().millis() / 1_000;
    let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signature = STANDARD.encode(hmac::sign(&key, format!("evt_1.{timestamp}.{body}").as_bytes()));
    format!(
        "webhook-id: evt_1\r\nwebhook-timestamp: {timestamp}\r\nwebhook-signature: v1,{signature}\r\n\
         content-type: application/json\r\nx-team: blue\r\nforms-attempt: 2\r\n"
    )
}

const BODY: &str = r#"{"type":"submission.completed","n":1.10}"#;

#[test]
fn signatures_are_verified() {
    let home = Home::new();
    home.write("secret", &format!("{SECRET}\n"));
    let mut listener = Listener::start(&home, &["--secret-file", "secret"]);
    assert!(send(&listener.url, "POST", &signed(BODY), BODY).starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(listener.event(), "submission.completed\tevt_1\tverified\t200\t");
    let refused = send(&listener.url, "POST", &signed("{}"), BODY);
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let why = "no webhook-signature was made with this secret";
    assert_eq!(listener.event(), format!("submission.completed\tevt_1\tinvalid\t401\t{why}"));
    send(&listener.url, "POST", "webhook-id: evt_1\r\n", "\u{1b}[2J");
    let why = "there is no webhook-id or no webhook-timestamp";
    assert_eq!(listener.event(), format!("\tevt_1\tinvalid\t401\t{why}"));
}

/// The example of Standard Webhooks, and others that differ in one thing.
#[tokio::test]
async fn only_the_example_of_standard_webhooks_is_verified() {
    const SIGNATURE: &str = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
    const BODY: &str = r#"{"email":"test@example.com","username":"test_user"}"#;
    const SENT: i64 = 1_649_367_553;
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let both = format!("v1,AAAA {SIGNATURE}");
    let other_algorithm = SIGNATURE.replace("v1,", "v1a,");
    for (secrets, signature, body, now, is_valid) in [
        (&[SECRET][..], SIGNATURE, BODY, SENT, true),
        (&[other, SECRET], SIGNATURE, BODY, SENT + 300, true),
        (&[SECRET], &both, BODY, SENT - 300, true),
        (&[other], SIGNATURE, BODY, SENT, false),
        (&[SECRET], SIGNATURE, "{}", SENT, false),
        (&[SECRET], SIGNATURE, BODY, SENT + 301, false),
        (&[SECRET], SIGNATURE, BODY, SENT - 301, false),
        (&[SECRET], &other_algorithm, BODY, SENT, false),
        (&[SECRET], "v1,", BODY, SENT, false),
    ] {
        let secrets = secrets.iter().map(|secret| SigningSecret::parse(secret).unwrap()).collect();
        let now = Timestamp::from_millis(now * 1_000).to_string();
        let clock = Arc::new(ManualClock::at(&now));
        let settings = Settings { secrets, forward: None, status: StatusCode::OK, clock };
        let (sender, _events) = mpsc::channel(1);
        let bound = receiver::bind(([127, 0, 0, 1], 0).into(), settings, sender).await.unwrap();
        let receiving = tokio::spawn(bound.1);
        let headers = format!(
            "webhook-id: msg_27UH4WbU6Z5A5EzD8u03UvzRbpk\r\nwebhook-timestamp: {SENT}\r\n\
             webhook-signature: {signature}\r\n"
        );
        let url = format!("http://{}", bound.0);
        let answer = tokio::task::spawn_blocking(move || send(&url, "POST", &headers, body)).await.unwrap();
        let expected = if is_valid { "HTTP/1.1 200 " } else { "HTTP/1.1 401 " };
        assert!(answer.starts_with(expected), "{answer}");
        receiving.abort();
    }
    for text in ["", "whsec_", "whsec_!", "C2FVsBQIhrscChlQIMV+b5sSYspob7oD"] {
        assert!(SigningSecret::parse(text).is_err(), "{text}");
    }
}

#[test]
fn json_lines_have_the_body_as_it_came() {
    let home = Home::new();
    let mut listener = Listener::start(&home, &["-o", "json", "--status", "503"]);
    assert!(send(&listener.url, "POST", &signed(BODY), BODY).starts_with("HTTP/1.1 503 "));
    let line = listener.line();
    assert!(line.ends_with(&format!("\"body\":{BODY}}}")), "{line}");
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["signature"], "unverified");
    assert_eq!([&event["answered"], &event["attempt"]], [&Value::from(503), &Value::from(2)]);
    send(&listener.url, "POST", "", "not JSON");
    let event: Value = serde_json::from_str(&listener.line()).unwrap();
    assert_eq!([&event["body"], &event["type"]], [&Value::from("not JSON"), &Value::Null]);
}

#[test]
fn events_are_forwarded_as_they_came_and_answered_by_the_program() {
    let home = Home::new();
    home.write("secret", SECRET);
    let headers = "content-type: text/plain\r\nretry-after: 7\r\nset-cookie: a=b\r\n";
    let program =
        FakeServer::with_replies(vec![FakeServer::status("429 Too Many Requests", headers, "later")]);
    let url = format!("{}/webhook", program.url);
    let mut listener = Listener::start(&home, &["--secret-file", "secret", "--forward-to", &url]);
    let forged = send(&listener.url, "POST", &signed("{}"), BODY);
    assert!(forged.starts_with("HTTP/1.1 401 "), "{forged}");
    listener.line();
    let answer = send(&listener.url, "POST", &signed(BODY), BODY);
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.ends_with("\r\n\r\nlater"), "{answer}");
    assert!(answer.contains("\r\nretry-after: 7\r\n") && !answer.contains("set-cookie"), "{answer}");
    assert_eq!(listener.event(), "submission.completed\tevt_1\tverified\t429\t");
    let [request] = &program.into_requests()[..] else { panic!("one request is forwarded") };
    assert!(request.starts_with("POST /webhook HTTP/1.1\r\n") && request.ends_with(BODY), "{request}");
    for header in ["webhook-id: evt_1", "webhook-signature: v1,", "forms-attempt: 2", "x-team: blue"] {
        assert!(request.contains(&format!("\r\n{header}")), "{request}");
    }
    assert!(!request.contains("\r\nhost: x\r\n"), "{request}");
}

#[test]
fn an_event_for_a_program_that_does_not_run_is_answered_with_502() {
    let home = Home::new();
    home.write("secret", SECRET);
    // The port is taken, so that no other program answers there.
    let port = TcpSocket::new_v4().unwrap();
    port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/webhook", port.local_addr().unwrap());
    let mut listener = Listener::start(&home, &["--secret-file", "secret", "--forward-to", &url]);
    let answer = send(&listener.url, "POST", &signed(BODY), BODY);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let event = listener.event();
    assert!(event.ends_with(&format!("\tverified\t502\t{url}: connection refused")), "{event}");
}

#[test]
fn what_a_web_page_sends_is_not_forwarded() {
    let home = Home::new();
    let program = FakeServer::with_replies(vec![FakeServer::status("200 OK", "", "")]);
    let mut listener = Listener::start(&home, &["--forward-to", &program.url]);
    for origin in ["https://evil.example", "null"] {
        let headers = format!("origin: {origin}\r\n{}", signed(BODY));
        let answer = send(&listener.url, "POST", &headers, BODY);
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("web page"), "{answer}");
    }
    assert!(send(&listener.url, "POST", &signed(BODY), BODY).starts_with("HTTP/1.1 200 "));
    assert_eq!(listener.event(), "submission.completed\tevt_1\tunverified\t200\t");
    let [request] = &program.into_requests()[..] else { panic!("one request is forwarded") };
    assert!(!request.contains("\r\norigin: "), "{request}");
}

#[test]
fn only_posts_of_at_most_one_mebibyte_are_received() {
    let home = Home::new();
    let mut listener = Listener::start(&home, &[]);
    let get = send(&listener.url, "GET", "", "");
    assert!(get.starts_with("HTTP/1.1 405 ") && get.contains("\r\nallow: POST\r\n"), "{get}");
    let large = send(&listener.url, "POST", "", &" ".repeat((1 << 20) + 1));
    assert!(large.starts_with("HTTP/1.1 413 "), "{large}");
    let body = format!("\"{}\"", " ".repeat((1 << 20) - 2));
    assert!(send(&listener.url, "POST", "webhook-id: evt_2\r\n", &body).starts_with("HTTP/1.1 200 "));
    assert_eq!(listener.event(), "\tevt_2\tunverified\t200\t");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let home = Home::new();
    home.write("secret", "C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
    home.write("empty", "\n");
    for (arguments, message) in [
        (&["--secret-file", "nope"][..], "cannot read nope: there is no such file"),
        (&["--secret-file", "secret"], "secret has no valid secret: a secret is `whsec_` followed by base64"),
        (&["--secret-file", "empty"], "empty has no secret"),
        (&["--forward-to", "localhost:3000"], "expected a URL such as http://localhost:3000/webhook"),
        (&["--status", "99"], "99 is not in 200..=599"),
        (&["--listen", "localhost:9000"], "expected an IP address and a port"),
        (&["-o", "csv"], "events are lines: use -o table, -o json or -o jsonl"),
    ] {
        let run = home.run(&[&["listen"], arguments].concat()).expect(2);
        assert!(run.stderr.contains(message), "{run:?}");
    }
    let listener = Listener::start(&home, &[]);
    let address = listener.url.strip_prefix("http://").unwrap();
    let run = home.run(&["listen", "--listen", address]).expect(5);
    assert!(run.stderr.contains(&format!("{address} is in use")), "{run:?}");
}

#[test]
fn it_ends_without_an_error_on_ctrl_c_and_its_lines_fit_a_terminal() {
    let home = Home::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut session = Session::start(&home, &[], &["listen", "--listen", &free]);
    session.wait_for(&format!("\r\nhttp://{free}\r\n"));
    send(&format!("http://{free}"), "POST", "webhook-id: evt_01m81yy3a44cvktw1ah7ycr7zq\r\n", BODY);
    session.wait_for("  unverified  200\r\n");
    session.type_keys("\u{3}");
    let (code, screen) = session.finish();
    assert!(code == Some(0) && !screen.contains("interrupted"), "{code:?} {screen}");
    assert!(screen.lines().all(|line| line.len() <= 80), "{screen}");
}
