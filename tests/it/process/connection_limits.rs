//! A server with too few file descriptors for its connections.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::common::server::Server;
use super::common::wire::{Connection, request};
use super::recorder::{Recorder, submit};
use super::{serve_by, start, with_data};

#[test]
fn a_server_with_few_descriptors_stores_all_that_it_acknowledges() {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.map(|current| current.max(2_000));
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    let few = ["sh", "-c", "ulimit -n 64 && exec \"$@\"", "sh"];
    with_data(async |data| {
        let server = Server::start(&mut serve_by(&few, data, &[])).unwrap();
        let mut recorder = Recorder::new(&server, data).await;
        let mut idle = Vec::new();
        for _ in 0..500 {
            idle.push(TcpStream::connect(server.endpoint().address).await.unwrap());
        }
        let stop = |server: Server| {
            server.signal(Signal::TERM).unwrap();
            server
        };
        let server = recorder.store_from(500, server, 500, stop).await;
        assert_eq!(server.wait().unwrap().code(), Some(0));
        let server = Server::start(&mut serve_by(&few, data, &[])).unwrap();
        recorder.verify(&server).await;
    });
}

#[test]
fn a_server_without_free_descriptors_only_delays_connections() {
    with_data(async |data| {
        let server = start(data);
        let form = Recorder::new(&server, data).await.form(&server);
        let mut open = Connection::open(server.endpoint()).await.unwrap();
        let health = request("GET", "/healthz", "", "");
        assert_eq!(open.exchange(&health).await.unwrap().status, 200);

        let before = limit_files(&server, Some(lowest_free_descriptor(&server)));
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let mut stream = TcpStream::connect(server.endpoint().address).await.unwrap();
            stream.write_all(&health).await.unwrap();
            waiting.push(stream);
        }
        // Long enough that the store syncs its index, needs a new segment, and the server retries `accept`.
        let (begun, mut stored) = (Instant::now(), 0);
        for number in 0.. {
            match open.exchange(&submit(&form, number)).await.unwrap().status {
                201 => stored += 1,
                status => assert_eq!(status, 503, "submission {number}"),
            }
            if begun.elapsed() > Duration::from_millis(500) && number > 500 {
                break;
            }
        }
        limit_files(&server, before);
        for mut stream in waiting {
            let mut seen = [0; 12];
            timeout(Duration::from_secs(5), stream.read_exact(&mut seen)).await.expect("a response").unwrap();
            assert_eq!(&seen, b"HTTP/1.1 200");
        }
        assert_eq!(form.count().await.unwrap(), stored);
        while open.exchange(&submit(&form, 0)).await.unwrap().status != 201 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the store did not recover");
        }
        assert_eq!(server.stop().unwrap().code(), Some(0));
        let log = fs::read_to_string(data.with_extension("log")).unwrap();
        assert_eq!(log.matches("cannot accept connections").count(), 1, "{log}");
    });
}

/// The lowest unused file descriptor of `server`.
fn lowest_free_descriptor(server: &Server) -> u64 {
    let open = |number: &u64| fs::exists(format!("/proc/{}/fd/{number}", server.pid())).unwrap();
    (0..).find(|number| !open(number)).unwrap()
}

/// Sets the limit on open files of `server`; returns the previous limit.
fn limit_files(server: &Server, current: Option<u64>) -> Option<u64> {
    let pid = Pid::from_raw(server.pid().cast_signed());
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current, maximum }).unwrap().current
}
