//! HTTPS with another client (curl), and reloading the certificate under load.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forms::config::TlsFiles;
use rustix::process::Signal;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::common::server::{Server, forms_serve, operator_key};
use super::common::settings;
use super::with_data;
use crate::harness::authority::{Authority, write_private};
use crate::harness::handshake;

/// Reached only if the server hangs.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Starts a server on `data` with the certificate in `files`.
fn serve(data: &Path, files: &TlsFiles) -> Server {
    let mut command = forms_serve(data).unwrap();
    Server::start(command.arg("--tls-cert").arg(&files.certificate).arg("--tls-key").arg(&files.key)).unwrap()
}

fn run(command: &mut Command) -> (Output, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = [&*output.stdout, &*output.stderr].concat();
    (output, String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn curl_speaks_both_versions_of_http_and_verifies_the_certificate() {
    let (folder, authority) = (settings::folder().unwrap(), Authority::new());
    let data = folder.path().join("store");
    let server = serve(&data, &authority.issue("localhost"));
    let port = server.endpoint().address.port();
    let trusted = authority.file();
    let curl = |arguments: &[&str]| {
        let mut command = Command::new("curl");
        run(command.args(["-sS", "--noproxy", "*", "-w", "\n%{http_version} %{http_code}"]).args(arguments))
    };
    let trust = ["--cacert", trusted.to_str().unwrap()];
    let health = format!("https://localhost:{port}/healthz");
    for (flag, seen) in [("--http1.1", "1.1 200"), ("--http2", "2 200")] {
        let (_, text) = curl(&[&trust[..], &[flag, &health]].concat());
        assert!(text.ends_with(seen), "{text}");
        // Larger than the windows of HTTP/2, in both directions.
        let title = "x".repeat(300);
        let question = format!(r#"{{"type":"statement","title":"{title}"}}"#);
        let form = format!(r#"{{"title":"Visit","questions":[{}]}}"#, vec![question; 500].join(","));
        let file = folder.path().join("form.json");
        fs::write(&file, &form).unwrap();
        let key = format!("Authorization: Bearer {}", operator_key(&data).unwrap());
        let body = format!("@{}", file.display());
        let url = format!("https://127.0.0.1:{port}/api/v1/forms");
        let create = [flag, "-H", &key, "-H", "Content-Type: application/json", "--data-binary", &body, &url];
        let (_, text) = curl(&[&trust[..], &create].concat());
        assert!(
            text.ends_with(&seen.replace("200", "201")) && text.len() > form.len(),
            "{} bytes",
            text.len()
        );
    }
    // TLS 1.2 and 1.3 only; curl offers the old version only at this level of security.
    for (version, is_spoken) in [("1.1", false), ("1.2", true), ("1.3", true)] {
        let only =
            [&format!("--tlsv{version}"), "--tls-max", version, "--ciphers", "ALL:@SECLEVEL=0", &health];
        let (_, text) = curl(&[&trust[..], &only].concat());
        assert_eq!(text.ends_with("2 200"), is_spoken, "{version}: {text}");
        assert_eq!(text.contains(" alert "), !is_spoken, "{version}: {text}");
    }
    let (output, text) = curl(&[&health]);
    assert_eq!(output.status.code(), Some(60), "{text}");
    let (_, text) = curl(&[&health.replace("https:", "http:")]);
    assert!(text.ends_with("1.1 400") && text.contains("use https://"), "{text}");
}

#[test]
fn without_tls_sighup_stops_the_server_as_sigterm_does_except_under_nohup() {
    let folder = settings::folder().unwrap();
    let command = forms_serve(&folder.path().join("store")).unwrap();
    let mut under_nohup = Command::new("nohup");
    under_nohup.arg(command.get_program()).args(command.get_args()).stderr(Stdio::null());
    for (name, value) in command.get_envs() {
        under_nohup.env(name, value.unwrap());
    }
    let server = Server::start(&mut under_nohup).unwrap();
    server.signal(Signal::HUP).unwrap();
    server.signal(Signal::HUP).unwrap();
    assert!(std::net::TcpStream::connect(server.endpoint().address).is_ok());
    assert_eq!(server.stop().unwrap().code(), Some(0));
    let server = Server::start(&mut forms_serve(&folder.path().join("store")).unwrap()).unwrap();
    server.signal(Signal::HUP).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// Opens a connection.
async fn connect(server: &Server, client: &Arc<ClientConfig>) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(server.endpoint().address).await.unwrap();
    handshake(stream, client).await.unwrap()
}

/// Requests `/healthz` over HTTP/1.1, and keeps the connection open.
async fn get_health(stream: &mut TlsStream<TcpStream>) {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"}") {
        let count = stream.read_buf(&mut seen).await.unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&seen));
    }
    assert!(seen.starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&seen));
}

/// Requests `/healthz` on new connections until one is served with the certificate in `files`.
async fn until_served(server: &Server, client: &Arc<ClientConfig>, files: &TlsFiles) {
    let expected = CertificateDer::from_pem_file(&files.certificate).unwrap();
    loop {
        let mut stream = connect(server, client).await;
        get_health(&mut stream).await;
        if stream.get_ref().1.peer_certificates().unwrap()[0] == expected {
            break;
        }
    }
}

#[test]
fn reloading_the_certificate_under_load_drops_no_request() {
    let authority = Authority::new();
    let files = authority.issue("localhost");
    let client = authority.client(&["http/1.1"]);
    with_data(async |data| {
        let server = serve(data, &files);
        let is_over = AtomicBool::new(false);
        let running = || !is_over.load(Ordering::Relaxed);
        let kept = async {
            let mut stream = connect(&server, &client).await;
            while running() {
                get_health(&mut stream).await;
            }
        };
        let opened = async {
            while running() {
                get_health(&mut connect(&server, &client).await).await;
            }
        };
        let http2 = async {
            let stream = connect(&server, &authority.client(&["h2"])).await;
            let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
            let connection = tokio::spawn(connection);
            while running() {
                std::future::poll_fn(|context| sender.poll_ready(context)).await.unwrap();
                let request = axum::http::Request::get("https://localhost/healthz").body(()).unwrap();
                let response = sender.send_request(request, true).unwrap().0.await.unwrap();
                assert_eq!(response.status(), 200);
            }
            connection.abort();
        };
        let reload = async {
            for number in 0..10 {
                authority.issue_to(&format!("certificate-{number}"), &files);
                server.signal(Signal::HUP).unwrap();
                until_served(&server, &client, &files).await;
            }
            is_over.store(true, Ordering::Relaxed);
        };
        tokio::join!(kept, opened, http2, reload);
        assert_eq!(server.stop().unwrap().code(), Some(0));
    });
}

#[test]
fn a_failed_reload_is_logged_and_keeps_the_certificate_until_the_next() {
    let authority = Authority::new();
    let files = authority.issue("localhost");
    let client = authority.client(&[]);
    with_data(async |data| {
        let server = serve(data, &files);
        let log = data.with_extension("log");
        let fail = async |count| {
            server.signal(Signal::HUP).unwrap();
            let failures = || fs::read_to_string(&log).unwrap().matches("cannot reload the TLS").count();
            let logged = async {
                while failures() < count {
                    until_served(&server, &client, &files).await;
                }
            };
            timeout(TIMEOUT, logged).await.expect("the failure is not logged");
        };
        write_private(&files.key, "not a key");
        fail(1).await;
        replace_by_fifo(&files.key);
        fail(2).await;
        assert!(fs::read_to_string(&log).unwrap().contains(files.key.to_str().unwrap()));
        fs::remove_file(&files.key).unwrap();
        authority.issue_to("renewed", &files);
        server.signal(Signal::HUP).unwrap();
        timeout(TIMEOUT, until_served(&server, &client, &files))
            .await
            .expect("the certificate is not renewed");
    });
}

/// Replaces `path` by a FIFO.
fn replace_by_fifo(path: &Path) {
    fs::remove_file(path).unwrap();
    let (output, text) = run(Command::new("mkfifo").arg(path));
    assert!(output.status.success(), "{text}");
}
