//! An orderly end, and what a second process on the same data is told.

use std::io::BufRead;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::block_on;
use super::common::server::{Server, forms_serve};
use super::common::settings;
use super::witness::Witness;

#[test]
fn sigterm_lets_a_request_under_way_finish_and_exits_0() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let mut command = forms_serve(&data).unwrap();
        let (log, stderr) = std::io::pipe().unwrap();
        let server = Server::start(command.stderr(stderr)).unwrap();
        // It holds the writing end too, and a server that ended without a word would be waited for.
        drop(command);
        let mut witness = Witness::new(&server, &data).await;
        let form = witness.form(&server);
        let body = r#"{"answers":{"q1":"sent after the signal"}}"#;
        let head = format!(
            "POST {}/submissions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            form.path(),
            form.key,
            body.len()
        );
        let mut stream = BufReader::new(TcpStream::connect(form.address).await.unwrap());
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server asks for the body: the request is under way.
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        assert!(line.starts_with("HTTP/1.1 100"), "{line}");
        server.signal(Signal::TERM).unwrap();
        let mut talk = std::io::BufReader::new(log).lines();
        assert!(talk.any(|line| line.unwrap().contains("stopping")), "the server says nothing of the signal");
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("HTTP/1.1 201"), "{answer}");
        assert_eq!(server.wait().unwrap().code(), Some(0));

        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let form = witness.form(&server);
        assert_eq!(form.count().await.unwrap(), 1);
        assert_eq!(witness.store_one(&server).await.0, 201);
    });
}

#[test]
fn sigterm_under_load_loses_nothing_and_exits_0() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let mut witness = Witness::new(&server, &data).await;
        let signalled = witness.store_until(server, 100, |server| {
            server.signal(Signal::TERM).unwrap();
            server
        });
        let server = tokio::time::timeout(Duration::from_secs(30), signalled).await.unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(0));
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        witness.verify(&server).await;
    });
}

#[test]
fn a_second_server_leaves_a_store_alone_whose_lock_file_was_removed() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let mut witness = Witness::new(&server, &data).await;
        assert_eq!(witness.store_one(&server).await.0, 201);
        std::fs::remove_file(data.join("lock")).unwrap();
        let second = forms_serve(&data).unwrap().stderr(Stdio::piped()).output().unwrap();
        assert_eq!(second.status.code(), Some(5), "{}", String::from_utf8_lossy(&second.stderr));
        assert_eq!(witness.store_one(&server).await.0, 201);
        server.kill().unwrap();
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        witness.verify(&server).await;
        assert_eq!(witness.count(), 2);
    });
}

#[test]
fn a_second_process_on_the_same_data_is_told_who_holds_it() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
    let second = forms_serve(&data).unwrap().stderr(Stdio::piped()).output().unwrap();
    let told = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(5), "{told}");
    assert!(told.contains(&server.pid().to_string()), "{told}");
    assert!(told.contains(&format!("http://{}", server.address())), "{told}");
    assert_eq!(second.stdout, b"");
}
