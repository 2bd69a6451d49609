//! Servers that misbehave on purpose, and requests by a client that is not ours.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::Home;

/// What a stand-in does with one connection.
pub(crate) enum Reply {
    /// Answers with these bytes.
    Bytes(Vec<u8>),
    /// Hands the request to the server at this address, and keeps the answer to itself.
    Swallow(String),
    /// Reports that the request has come, and does not answer until the client hangs up.
    Silence(Sender<()>),
    /// Hands the request on, and the answer back.
    Pass(String),
}

/// A server that does with the n-th connection what the n-th reply says.
pub(crate) struct StandIn {
    pub(crate) url: String,
    /// The requests it got.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    pub(crate) fn answering(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&requests);
        let thread = std::thread::spawn(move || {
            for reply in replies {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read_request(&stream);
                heard.lock().unwrap().push(request.clone());
                match reply {
                    // Who has read enough may hang up.
                    Reply::Bytes(bytes) => drop(stream.write_all(&bytes)),
                    Reply::Silence(came) => {
                        came.send(()).unwrap();
                        drop(stream.read_to_end(&mut Vec::new()));
                    }
                    Reply::Swallow(server) => drop(forward(&server, &request)),
                    Reply::Pass(server) => stream.write_all(&forward(&server, &request)).unwrap(),
                }
            }
        });
        Self { url, requests, thread: Some(thread) }
    }

    /// A 200 with this JSON.
    pub(crate) fn ok(body: &str) -> Reply {
        Self::status("200 OK", "", body)
    }

    /// An answer with this status and these header lines.
    pub(crate) fn status(status: &str, headers: &str, body: &str) -> Reply {
        let head = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        Reply::Bytes([head.as_bytes(), body.as_bytes()].concat())
    }

    /// Waits until every reply was given.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.thread.take().unwrap().join().unwrap();
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut request).unwrap() > 0, "{request}");
    }
    let length =
        request.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    request + &String::from_utf8(body).unwrap()
}

/// Sends the request as it is, asking for the connection to be closed, and gives the whole answer.
fn forward(server: &str, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(request.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Sends one request and gives the body of the answer, which must be a success.
pub(crate) fn send(url: &str, method: &str, path: &str, key: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let answer = String::from_utf8(forward(url, &request)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A POST.
pub(crate) fn post(url: &str, path: &str, key: &str, body: &str) -> String {
    send(url, "POST", path, key, body)
}

/// The operator key of the store in `home`.
pub(crate) fn operator_key(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("store/operator-key")).unwrap().trim().to_owned()
}
