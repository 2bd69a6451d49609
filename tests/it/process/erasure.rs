//! What was erased leaves the files of a running server, which answers meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::common::fill::{Form, member, published_form};
use super::common::server::operator_key;
use super::{forms, start, with_data};
use crate::harness::stored_text::has_text;

const ERASED: &str = "forget-me-0451";

/// Sends a request and returns the whole response.
fn call(form: &Form, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(form.endpoint.address).unwrap();
    let (path, key, length) = (form.path() + path, &form.key, body.len());
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.to_lowercase()
}

/// Repeats a request until `is_done`; returns how often it succeeded, and how often it was to be tried again.
fn repeat(form: &Form, is_done: &AtomicBool, method: &str, body: &str) -> (usize, usize) {
    let (mut succeeded, mut refused) = (0, 0);
    while !is_done.load(Ordering::Relaxed) {
        let response = call(form, method, "/submissions", body);
        match response.get(9..12) {
            Some("200" | "201") => succeeded += 1,
            Some("503") if response.contains("\r\nretry-after: ") => refused += 1,
            _ => panic!("{response}"),
        }
    }
    (succeeded, refused)
}

#[test]
fn what_was_erased_is_in_no_file_of_a_running_server_once_it_is_compacted() {
    with_data(async |data| {
        let server = start(data);
        let form = published_form(server.endpoint(), &operator_key(data).unwrap()).await.unwrap();
        form.fill(2_000).await.unwrap();
        let [erased, kept] = [ERASED, "remember-me-0451"].map(|text| {
            let body = format!(r#"{{"answers":{{"q1":"{text}","q2":"{text}@example.com","q3":1}}}}"#);
            let response = call(&form, "POST", "/submissions", &body);
            member(response.split("\r\n\r\n").nth(1).unwrap().as_bytes(), "id").unwrap()
        });
        let purged = call(&form, "DELETE", &format!("/submissions/{erased}?purge=true"), "");
        assert!(purged.starts_with("http/1.1 204"), "{purged}");
        assert!(has_text(data, ERASED));
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let body = r#"{"answers":{"q1":"meanwhile","q2":"new@example.com","q3":1}}"#;
            let writes = scope.spawn(|| repeat(&form, &is_done, "POST", body));
            let reads = scope.spawn(|| repeat(&form, &is_done, "GET", ""));
            let url = format!("http://{}", form.endpoint.address);
            let mut compact = forms(data);
            compact.args(["store", "compact", "--url", &url, "--key-file"]).arg(data.join("operator-key"));
            let compacted = compact.output().unwrap();
            is_done.store(true, Ordering::Relaxed);
            assert!(compacted.status.success(), "{compacted:?}");
            let [writes, reads] = [writes, reads].map(|thread| thread.join().unwrap());
            assert!(writes.0 > 0 && reads.0 > 0, "{writes:?} {reads:?}");
            println!("(succeeded, refused): writes {writes:?}, reads {reads:?}");
        });
        assert!(!has_text(data, ERASED) && has_text(data, "remember-me-0451"));
        let shown = call(&form, "GET", &format!("/submissions/{kept}"), "");
        assert!(shown.contains("remember-me-0451"), "{shown}");
        let log = std::fs::read_to_string(data.with_extension("log")).unwrap();
        assert!(!log.contains("rebuilding the index") && !log.contains("keeps what was erased"), "{log}");
        server.kill().unwrap();
    });
}
