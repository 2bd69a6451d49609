//! More connections than the server accepts: one client that opens as many as it can, and too few file descriptors.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, interval, timeout};

use super::common::server::{Server, forms_serve};
use super::common::settings;
use super::common::wire::{Connection, request};
use super::recorder::{Recorder, submit};
use super::{block_on, serve_by};

const ATTACKER: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

/// The server's `--max-connections`: `FORMS_TEST_CONNECTIONS`, 64 by default. With the server's default of 1024:
/// `FORMS_TEST_CONNECTIONS=1024 cargo test --test it process::connection_limits`.
fn max_connections() -> usize {
    std::env::var("FORMS_TEST_CONNECTIONS").map_or(64, |text| text.parse().unwrap())
}

async fn connect(ip: [u8; 4], address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((ip, 0).into())?;
    socket.connect(address).await
}

/// Requests `/healthz` on a new connection.
async fn get_health(ip: [u8; 4], address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = connect(ip, address).await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await?;
    let mut seen = Vec::new();
    while !seen.ends_with(b"}") {
        if stream.read_buf(&mut seen).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(stream)
}

/// A client that holds as many connections as it can.
struct Attack {
    address: SocketAddr,
    /// Requests with a response.
    served: AtomicUsize,
    /// Limits reopening to 50 connections a second, so that the test exhausts connections and not the CPU.
    reopening: Mutex<Interval>,
}

impl Attack {
    fn new(address: SocketAddr) -> Self {
        let reopening = Mutex::new(interval(Duration::from_millis(20)));
        Self { address, served: AtomicUsize::new(0), reopening }
    }

    /// Sends one request on a connection, then keeps it idle; reopens it whenever the server closes it.
    async fn hold_connection(self: Arc<Self>) {
        loop {
            if let Ok(mut stream) = get_health(ATTACKER, self.address).await {
                self.served.fetch_add(1, Ordering::Relaxed);
                while stream.read(&mut [0]).await.is_ok_and(|count| count > 0) {}
            }
            self.reopening.lock().await.tick().await;
        }
    }
}

/// The longest time to a response on another client's new connection, while one address holds or reopens more
/// connections than the server accepts. A connection that is closed before its response is retried, as clients do.
fn longest_wait(extra_args: &[&str]) -> Duration {
    let limit = max_connections();
    raise_file_limit(3 * limit);
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let mut command = forms_serve(&data).unwrap();
        let server =
            Server::start(command.args(["--max-connections", &limit.to_string()]).args(extra_args)).unwrap();
        let attack = Arc::new(Attack::new(server.endpoint().address));
        let mut connections = JoinSet::new();
        for _ in 0..limit + limit / 10 {
            connections.spawn(Arc::clone(&attack).hold_connection());
        }
        let mut longest = Duration::ZERO;
        // The attack holds every connection once it was served that often.
        while attack.served.load(Ordering::Relaxed) < limit {
            tokio::task::yield_now().await;
        }
        for _ in 0..20 {
            let begun = Instant::now();
            let request = async { while get_health(OTHER, attack.address).await.is_err() {} };
            timeout(Duration::from_secs(30), request).await.expect("a response");
            longest = longest.max(begun.elapsed());
        }
        longest
    })
}

/// Raises this process's limit on open files to at least `files`.
fn raise_file_limit(files: usize) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files as u64) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files as u64), ..limit }).unwrap();
    }
}

#[test]
fn an_address_that_exceeds_its_share_does_not_block_other_clients() {
    let share = (max_connections() / 4).to_string();
    let waited = longest_wait(&["--max-connections-per-address", &share]);
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[test]
fn idle_connections_do_not_block_other_clients() {
    let waited = longest_wait(&[]);
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[test]
fn a_server_with_few_descriptors_stores_all_that_it_acknowledges() {
    raise_file_limit(2_000);
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    let few = ["sh", "-c", "ulimit -n 64 && exec \"$@\"", "sh"];
    block_on(async {
        let server = Server::start(&mut serve_by(&few, &data, &[])).unwrap();
        let mut recorder = Recorder::new(&server, &data).await;
        let mut idle = Vec::new();
        for _ in 0..500 {
            idle.push(connect(ATTACKER, server.endpoint().address).await.unwrap());
        }
        let stop = |server: Server| {
            server.signal(Signal::TERM).unwrap();
            server
        };
        let server = recorder.store_from(500, server, 500, stop).await;
        assert_eq!(server.wait().unwrap().code(), Some(0));
        let server = Server::start(&mut serve_by(&few, &data, &[])).unwrap();
        recorder.verify(&server).await;
    });
}

#[test]
fn a_server_without_free_descriptors_only_delays_connections() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let form = Recorder::new(&server, &data).await.form(&server);
        let mut open = Connection::open(server.endpoint()).await.unwrap();
        let health = request("GET", "/healthz", "", "");
        assert_eq!(open.exchange(&health).await.unwrap().status, 200);

        let before = limit_files(&server, Some(lowest_free_descriptor(&server)));
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let mut stream = connect(ATTACKER, server.endpoint().address).await.unwrap();
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
