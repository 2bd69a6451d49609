//! More connections than there is room for: one client that holds all it can, and too few file descriptors.

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
use super::witness::{Witness, submit};
use super::{block_on, serve_by};

const ATTACKER: [u8; 4] = [127, 0, 0, 1];
const OTHER: [u8; 4] = [127, 0, 0, 2];

/// Connections the server may have: `FORMS_TEST_CONNECTIONS`, 64. With the server's own default the test is
/// `FORMS_TEST_CONNECTIONS=1024 cargo test --test it process::crowd`.
fn max_connections() -> usize {
    std::env::var("FORMS_TEST_CONNECTIONS").map_or(64, |text| text.parse().unwrap())
}

async fn connect(ip: [u8; 4], address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((ip, 0).into())?;
    socket.connect(address).await
}

/// Asks for the server's health on a new connection.
async fn ask(ip: [u8; 4], address: SocketAddr) -> io::Result<TcpStream> {
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

/// What a client does to hold as many connections as it can.
struct Attack {
    address: SocketAddr,
    /// Requests that were answered.
    asked: AtomicUsize,
    /// When the next connection is opened again: 50 a second, so that it is the connections that are short, not the
    /// machine.
    reopening: Mutex<Interval>,
}

impl Attack {
    fn new(address: SocketAddr) -> Self {
        let reopening = Mutex::new(interval(Duration::from_millis(20)));
        Self { address, asked: AtomicUsize::new(0), reopening }
    }

    /// Sends one request on a connection and rests; begins again as often as the server closes it.
    async fn rest(self: Arc<Self>) {
        loop {
            if let Ok(mut stream) = ask(ATTACKER, self.address).await {
                self.asked.fetch_add(1, Ordering::Relaxed);
                while stream.read(&mut [0]).await.is_ok_and(|count| count > 0) {}
            }
            self.reopening.lock().await.tick().await;
        }
    }
}

/// The longest that another client's new connection waits for its answer, while one address holds or reopens more
/// connections than there are. A connection that is closed before its answer is tried again, as clients do.
fn longest_wait(more: &[&str]) -> Duration {
    let most = max_connections();
    allow_files(3 * most);
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let mut command = forms_serve(&data).unwrap();
        let server =
            Server::start(command.args(["--max-connections", &most.to_string()]).args(more)).unwrap();
        let attack = Arc::new(Attack::new(server.address()));
        let mut connections = JoinSet::new();
        for _ in 0..most + most / 10 {
            connections.spawn(Arc::clone(&attack).rest());
        }
        let mut longest = Duration::ZERO;
        // The attack is complete once as many were served as there is room for.
        while attack.asked.load(Ordering::Relaxed) < most {
            tokio::task::yield_now().await;
        }
        for _ in 0..20 {
            let begun = Instant::now();
            let served = async { while ask(OTHER, attack.address).await.is_err() {} };
            timeout(Duration::from_secs(30), served).await.expect("an answer");
            longest = longest.max(begun.elapsed());
        }
        longest
    })
}

/// Lets this process open as many files.
fn allow_files(files: usize) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files as u64) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files as u64), ..limit }).unwrap();
    }
}

#[test]
fn an_address_with_more_than_its_share_keeps_nobody_out() {
    let share = (max_connections() / 4).to_string();
    let waited = longest_wait(&["--max-connections-per-address", &share]);
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[test]
fn connections_that_rest_keep_nobody_out() {
    let waited = longest_wait(&[]);
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[test]
fn with_few_descriptors_all_that_is_acknowledged_is_stored() {
    allow_files(2_000);
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    let few = ["sh", "-c", "ulimit -n 64 && exec \"$@\"", "sh"];
    block_on(async {
        let server = Server::start(&mut serve_by(&few, &data, &[])).unwrap();
        let mut witness = Witness::new(&server, &data).await;
        let mut crowd = Vec::new();
        for _ in 0..500 {
            crowd.push(connect(ATTACKER, server.address()).await.unwrap());
        }
        let stop = |server: Server| {
            server.signal(Signal::TERM).unwrap();
            server
        };
        let server = witness.store_from(500, server, 500, stop).await;
        assert_eq!(server.wait().unwrap().code(), Some(0));
        let server = Server::start(&mut serve_by(&few, &data, &[])).unwrap();
        witness.verify(&server).await;
    });
}

#[test]
fn running_out_of_descriptors_only_delays_connections() {
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let form = Witness::new(&server, &data).await.form(&server);
        let mut open = Connection::open(server.address()).await.unwrap();
        let health = request("GET", "/healthz", "", "");
        assert_eq!(open.exchange(&health).await.unwrap().status, 200);

        let before = limit_files(&server, Some(lowest_free(&server)));
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let mut stream = connect(ATTACKER, server.address()).await.unwrap();
            stream.write_all(&health).await.unwrap();
            waiting.push(stream);
        }
        // Long enough that the store syncs its index and needs a new segment, and that accepting is tried again.
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
            timeout(Duration::from_secs(5), stream.read_exact(&mut seen)).await.expect("an answer").unwrap();
            assert_eq!(&seen, b"HTTP/1.1 200");
        }
        assert_eq!(form.count().await.unwrap(), stored);
        while open.exchange(&submit(&form, 0)).await.unwrap().status != 201 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the store does not recover");
        }
        assert_eq!(server.stop().unwrap().code(), Some(0));
        let log = fs::read_to_string(data.with_extension("log")).unwrap();
        assert_eq!(log.matches("cannot accept connections").count(), 1, "{log}");
    });
}

/// The lowest number that no open file of `server` has.
fn lowest_free(server: &Server) -> u64 {
    let open = |number: &u64| fs::exists(format!("/proc/{}/fd/{number}", server.pid())).unwrap();
    (0..).find(|number| !open(number)).unwrap()
}

/// Limits the numbers of files that `server` opens from now on; returns the limit before.
fn limit_files(server: &Server, current: Option<u64>) -> Option<u64> {
    let pid = Pid::from_raw(server.pid().cast_signed());
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current, maximum }).unwrap().current
}
