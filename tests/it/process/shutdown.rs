//! Graceful shutdown, and the error of a second process on the same data.

use std::io::BufRead;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::block_on;
use super::common::server::{Server, forms_serve};
use super::common::settings;
use super::recorder::Recorder;

#[test]
fn sigterm_finishes_the_request_in_flight_and_exits_0() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let mut command = forms_serve(&data).unwrap();
        let (log, stderr) = std::io::pipe().unwrap();
        let server = Server::start(command.stderr(stderr)).unwrap();
        // `command` has the write end open as well: a server that ended silently would be waited for.
        drop(command);
        let mut recorder = Recorder::new(&server, &data).await;
        let form = recorder.form(&server);
        let body = r#"{"answers":{"q1":"sent after the signal"}}"#;
        let head = format!(
            "POST {}/submissions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            form.path(),
            form.key,
            body.len()
        );
        let mut stream = BufReader::new(TcpStream::connect(form.endpoint.address).await.unwrap());
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server asks for the body: the request is in flight.
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        assert!(line.starts_with("HTTP/1.1 100"), "{line}");
        server.signal(Signal::TERM).unwrap();
        let mut log_lines = std::io::BufReader::new(log).lines();
        assert!(
            log_lines.any(|line| line.unwrap().contains("stopping")),
            "the server did not log the signal"
        );
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("HTTP/1.1 201"), "{answer}");
        assert_eq!(server.wait().unwrap().code(), Some(0));

        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let form = recorder.form(&server);
        assert_eq!(form.count().await.unwrap(), 1);
        assert_eq!(recorder.store_one(&server).await.0, 201);
    });
}

#[test]
fn sigterm_under_load_loses_nothing_and_exits_0() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let mut recorder = Recorder::new(&server, &data).await;
        let signalled = recorder.store_until(server, 100, |server| {
            server.signal(Signal::TERM).unwrap();
            server
        });
        let server = tokio::time::timeout(Duration::from_secs(30), signalled).await.unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(0));
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        recorder.verify(&server).await;
    });
}

#[test]
fn a_second_server_is_refused_even_if_the_lock_file_was_removed() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let mut recorder = Recorder::new(&server, &data).await;
        assert_eq!(recorder.store_one(&server).await.0, 201);
        std::fs::remove_file(data.join("lock")).unwrap();
        let second = forms_serve(&data).unwrap().stderr(Stdio::piped()).output().unwrap();
        assert_eq!(second.status.code(), Some(5), "{}", String::from_utf8_lossy(&second.stderr));
        assert_eq!(recorder.store_one(&server).await.0, 201);
        server.kill().unwrap();
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        recorder.verify(&server).await;
        assert_eq!(recorder.count(), 2);
    });
}

#[test]
fn the_error_of_a_second_process_names_the_one_that_has_the_store_open() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
    let second = forms_serve(&data).unwrap().stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(5), "{stderr}");
    assert!(stderr.contains(&server.pid().to_string()), "{stderr}");
    assert!(stderr.contains(&server.endpoint().to_string()), "{stderr}");
    assert_eq!(second.stdout, b"");
}
