//! TLS: the handshake's deadline, plain HTTP on the port for HTTPS, faults in the files, and reloading them.

use std::path::PathBuf;
use std::process::Command;

use axum::Router;
use axum::routing::get;
use forms::config::TlsFiles;
use forms::http::server::tls::Tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::harness::authority::{Authority, write_private};
use crate::harness::prelude::*;

const CLIENT: [u8; 4] = [127, 0, 0, 1];

const HSTS: &str = "strict-transport-security";

async fn hello(settings: HttpSettings) -> ListeningServer {
    let router = Router::new().route("/", get(async || "hello"));
    ListeningServer::listen(Scheme::Https, router, settings).await
}

#[tokio::test]
async fn a_handshake_that_stalls_is_closed() {
    let wire = hello(HttpSettings { first_byte_timeout: SHORT, ..Default::default() }).await;
    // Nothing, the header of a record, and a record whose rest is missing.
    for begun in [&b""[..], &[0x16, 3, 1], &[0x16, 3, 1, 2, 0, 1]] {
        let mut stream = wire.connect_tcp(CLIENT).await;
        stream.write_all(begun).await.unwrap();
        let mut seen = Vec::new();
        timeout(TIMEOUT, stream.read_to_end(&mut seen)).await.expect("the connection is still open").ok();
    }
    let mut silent = wire.connect().await;
    assert_eq!(read_until_closed(&mut silent).await, "");
}

#[tokio::test]
async fn a_connection_in_its_handshake_is_closed_for_the_next() {
    let wire = hello(HttpSettings { max_connections: 1, ..Default::default() }).await;
    let mut stalled = wire.connect_tcp(CLIENT).await;
    stalled.write_all(&[0x16, 3, 1]).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(parse_response(&wire.exchange(request).await).text(), "hello");
    let mut seen = Vec::new();
    timeout(TIMEOUT, stalled.read_to_end(&mut seen)).await.expect("the connection is still open").ok();
}

#[tokio::test]
async fn plain_http_on_the_port_for_https_gets_a_problem_document() {
    let wire = hello(HttpSettings::default()).await;
    let mut stream = wire.connect_tcp(CLIENT).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let refused = parse_response(&read_until_closed(&mut stream).await);
    refused.expect_problem(400, "invalid_header");
    assert!(refused.json()["detail"].as_str().unwrap().contains("https://"), "{refused:?}");
    // Over plain HTTP, the header would have no effect (RFC 6797 §7.2).
    assert_eq!((refused.header("connection"), refused.header(HSTS)), (Some("close"), None));
}

#[tokio::test]
async fn every_response_over_tls_tells_browsers_to_use_https() {
    let server = Server::with_settings(HttpSettings { head_timeout: SHORT, ..Default::default() }).await;
    let (secure, plain) = (server.listen_over(Scheme::Https).await, server.listen().await);
    let closing = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let long = closing(&format!("/{}", "x".repeat(9_000)));
    for (request, status) in
        [(&*closing("/healthz"), 200), (&closing("/nothing"), 404), (&long, 414), ("GET / HTTP/1.1\r\n", 408)]
    {
        let responses =
            [&secure, &plain].map(async |wire| parse_response(&wire.exchange(request.as_bytes()).await));
        let [secure, plain] = responses;
        let (secure, plain) = (secure.await, plain.await);
        assert_eq!((secure.status.as_u16(), plain.status.as_u16()), (status, status));
        assert_eq!((secure.header(HSTS), plain.header(HSTS)), (Some("max-age=31536000"), None));
    }
}

#[tokio::test]
async fn faults_in_the_files_are_reported_with_their_names() {
    let authority = Authority::new();
    let (good, other) = (authority.issue("good"), authority.issue("other"));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        write_private(&path, text);
        path
    };
    let (missing, empty) = (folder.path().join("missing.pem"), file("empty.pem", ""));
    let cut = file("cut.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    let garbage = file("garbage.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let no_key = file("no.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let large = file("large.pem", &"x".repeat((1 << 20) + 1));
    let device = PathBuf::from("/dev/zero");
    let with = |certificate: &_, key: &_| TlsFiles {
        certificate: Clone::clone(certificate),
        key: Clone::clone(key),
    };
    for (files, path, fault) in [
        (with(&missing, &good.key), &missing, "cannot read"),
        (with(&good.certificate, &missing), &missing, "cannot read"),
        (with(&fifo, &good.key), &fifo, "not a regular file"),
        (with(&good.certificate, &device), &device, "not a regular file"),
        (with(&large, &good.key), &large, "larger than 1 MiB"),
        (with(&empty, &good.key), &empty, "has no certificate"),
        (with(&good.key, &good.key), &good.key, "has no certificate"),
        (with(&cut, &good.key), &cut, "is not valid PEM"),
        (with(&garbage, &good.key), &garbage, "the certificate in"),
        (with(&good.certificate, &good.certificate), &good.certificate, "has no private key"),
        (with(&good.certificate, &no_key), &no_key, "the key in"),
        (with(&good.certificate, &other.key), &other.key, "does not match"),
    ] {
        let error = Tls::load(files).await.unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains(fault), "{error}");
    }
}
