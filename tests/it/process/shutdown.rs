//! Graceful shutdown, and the error of a second process on the same data.

use std::io::BufRead;
use std::process::Stdio;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::common::server::{Server, forms_serve};
use super::recorder::Recorder;
use super::{start, with_data};

#[test]
fn sigterm_finishes_the_request_in_flight_and_exits_0() {
    with_data(async |data| {
        let mut command = forms_serve(data).unwrap();
        let (log, stderr) = std::io::pipe().unwrap();
        let server = Server::start(command.stderr(stderr)).unwrap();
        // `command` has the write end open as well: a server that ended silently would be waited for.
        drop(command);
        let recorder = Recorder::new(&server, data).await;
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
        assert_eq!(recorder.form(&start(data)).count().await.unwrap(), 1);
    });
}

#[test]
fn a_second_server_is_refused_even_if_the_lock_file_is_removed() {
    with_data(async |data| {
        let server = start(data);
        let mut recorder = Recorder::new(&server, data).await;
        assert_eq!(recorder.store_one(&server).await.0, 201);
        let start_second = || {
            let second = forms_serve(data).unwrap().stderr(Stdio::piped()).output().unwrap();
            assert_eq!((second.status.code(), &second.stdout), (Some(5), &Vec::new()), "{second:?}");
        };
        start_second();
        std::fs::remove_file(data.join("lock")).unwrap();
        start_second();
        assert_eq!(recorder.store_one(&server).await.0, 201);
        server.kill().unwrap();
        let server = start(data);
        recorder.verify(&server).await;
        assert_eq!(recorder.count(), 2);
    });
}
