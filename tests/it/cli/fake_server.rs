//! A fake server with scripted replies, and a raw HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::Home;

/// The reaction to one connection.
pub(crate) enum Reply {
    /// Sends these bytes.
    Bytes(Vec<u8>),
    /// Forwards the request to the server at this address and drops the response.
    DropResponse(String),
    /// Reports that the request was received, and sends nothing until the client disconnects.
    NoResponse(Sender<()>),
    /// Forwards the request and the response.
    Forward(String),
}

/// A server that handles the n-th connection with the n-th reply.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    /// The requests received.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeServer {
    pub(crate) fn with_replies(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let thread = std::thread::spawn(move || {
            for reply in replies {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read_request(&stream);
                log.lock().unwrap().push(request.clone());
                match reply {
                    // The client may disconnect before it has read everything.
                    Reply::Bytes(bytes) => drop(stream.write_all(&bytes)),
                    Reply::NoResponse(received) => {
                        received.send(()).unwrap();
                        drop(stream.read_to_end(&mut Vec::new()));
                    }
                    Reply::DropResponse(server) => drop(forward(&server, &request)),
                    Reply::Forward(server) => stream.write_all(&forward(&server, &request)).unwrap(),
                }
            }
        });
        Self { url, requests, thread: Some(thread) }
    }

    /// A 200 response with this JSON.
    pub(crate) fn ok(body: &str) -> Reply {
        Self::status("200 OK", "", body)
    }

    /// A response with this status and these header lines.
    pub(crate) fn status(status: &str, headers: &str, body: &str) -> Reply {
        let head = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        Reply::Bytes([head.as_bytes(), body.as_bytes()].concat())
    }

    /// Waits until every reply was sent and returns the requests.
    pub(crate) fn into_requests(mut self) -> Vec<String> {
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

/// Sends the request with `Connection: close` added, and returns the whole response.
fn forward(server: &str, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(request.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Sends a request that must succeed and returns the body of the response.
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

/// The operator key of the store in `home`.
pub(crate) fn operator_key(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("store/operator-key")).unwrap().trim().to_owned()
}
