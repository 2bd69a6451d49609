//! Memory, and latencies of other clients, under clients that are slow, silent, endless or malicious, and under more load
//! than the disk allows.
//!
//! `cargo bench --bench hostile -- attacks`; with `FORMS_BENCH_TLS=1` over TLS. `FORMS_BENCH_SECONDS` sets the duration of
//! each row, 20 by default: most limits take effect within 15. The last rows need strace, which delays every sync by 50 ms.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::pending;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use axum::http::Request;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::common::endpoint::{ByteStream, Endpoint};
use crate::common::fill::{Form, published_form};
use crate::common::load::Load;
use crate::common::samples::Samples;
use crate::common::server::{Server, forms_serve, forms_serve_tls, highest_memory, log_of, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::{Connection, request};

/// Descriptors that the server may open.
const OPEN_FILES: usize = 1_024;

/// Hostile clients with the same address, unless an attack says otherwise.
const CLIENTS_PER_ADDRESS: usize = 800;

/// Connections that one address may hold.
const CONNECTIONS_PER_ADDRESS: usize = 220;

/// Keep-alive connections of the other clients, which store submissions.
const OTHER_CLIENTS: usize = 4;

/// Connections that all hostile clients together open per second at most; more would leave no CPU time for the server.
const ATTEMPTS_PER_SECOND: u32 = 1_000;

/// Bytes of a large body.
const BODY: usize = 1 << 20;

/// Delay of each sync in the last rows, in microseconds.
const SYNC_DELAY: &str = "50000";

/// Connections in the last rows: what a sync every 50 ms serves, and ten times as many.
const LOADS: [usize; 2] = [90, 900];

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let folder = settings::folder()?;
    let is_tls = std::env::var_os("FORMS_BENCH_TLS").is_some();
    let duration = settings::duration(20.0)?;
    let mut table = Table::new(&[
        "attack",
        "clients",
        "responses",
        "max MiB",
        "new connection p50 ms",
        "p99",
        "target",
        "store p50 ms",
        "p99",
    ]);
    for attack in ATTACKS.iter().filter(|attack| is_tls || !attack.needs_tls) {
        report_progress(attack.name)?;
        table.row(attack.measure(&folder.path().join("store"), is_tls, duration).await?);
    }
    table.print()?;
    let mut table = Table::new(&[
        "connections, syncs take 50 ms",
        "stored per second",
        "p50 ms",
        "p99",
        "target",
        "refused",
        "p50 ms",
        "p99",
    ]);
    for connections in LOADS {
        report_progress(&format!("{connections} connections with slow syncs"))?;
        table.row(measure_slow_disk(&folder.path().join("slow"), is_tls, connections, duration).await?);
    }
    Ok(table.print()?)
}

/// What a hostile client does on one connection; returns the status of the response, or 0 if there is none.
type Behaviour = fn(Target) -> Pin<Box<dyn Future<Output = io::Result<u16>> + Send>>;

/// A kind of hostile clients. Each repeats its behaviour on a new connection.
#[derive(Clone, Copy)]
struct Attack {
    name: &'static str,
    clients: usize,
    clients_per_address: usize,
    needs_tls: bool,
    behaviour: Behaviour,
}

/// Declares an [`Attack`] over HTTP and TLS, or only over TLS.
const fn attack(name: &'static str, clients: usize, behaviour: Behaviour) -> Attack {
    Attack { name, clients, clients_per_address: CLIENTS_PER_ADDRESS, needs_tls: false, behaviour }
}

const fn tls_attack(name: &'static str, clients: usize, behaviour: Behaviour) -> Attack {
    Attack { needs_tls: true, ..attack(name, clients, behaviour) }
}

const ATTACKS: [Attack; 14] = [
    attack("none", 1, |_| Box::pin(pending())),
    attack("half a head", 800, |target| Box::pin(half_head(target))),
    attack("a byte a second", 800, |target| Box::pin(byte_a_second(target))),
    attack("silence", 800, |target| Box::pin(silence(target))),
    tls_attack("no handshake", 800, |target| Box::pin(no_handshake(target))),
    attack("a body without end", 16, |target| Box::pin(endless_body(target))),
    attack("a body, a byte a second", 800, |target| Box::pin(slow_body(target))),
    Attack {
        clients_per_address: CONNECTIONS_PER_ADDRESS,
        ..attack("1,100 bodies, 1,100 bytes a second", 1_100, |target| Box::pin(slow_large_body(target)))
    },
    attack("10,000 connections", 10_000, |target| Box::pin(silence(target))),
    attack("JSON of a million levels", 8, |target| Box::pin(post(target, "[".repeat(BODY), ""))),
    attack("JSON of 75,000 answers", 8, |target| Box::pin(many_answers(target))),
    attack("a gzip bomb", 8, |target| Box::pin(gzip_bomb(target))),
    tls_attack("HTTP/2 rapid reset", 8, |target| Box::pin(rapid_reset(target))),
    tls_attack("HTTP/2 pings", 4, |target| Box::pin(pings(target))),
];

/// The server under attack, a form with its key, and the address of the hostile client.
#[derive(Clone)]
struct Target {
    endpoint: Endpoint,
    form: Form,
    source: Ipv4Addr,
}

impl Target {
    async fn connect(&self, protocol: &[u8]) -> io::Result<Box<dyn ByteStream>> {
        let stream = self.endpoint.connect_from(self.source).await?;
        self.endpoint.secure(stream, protocol).await
    }
}

impl Attack {
    /// Measures one row of the table.
    async fn measure(&self, data: &Path, is_tls: bool, duration: Duration) -> io::Result<[String; 9]> {
        let mut command = serve(data, is_tls)?;
        // What every address has that is not loopback.
        command.args(["--max-connections-per-address", &CONNECTIONS_PER_ADDRESS.to_string()]);
        let server = Server::start(with_open_files(command).stderr(log_of(data)?))?;
        let form = published_form(server.endpoint(), &operator_key(data)?).await?;
        let statuses: Arc<Mutex<BTreeMap<u16, usize>>> = Arc::default();
        let mut clients = JoinSet::new();
        for number in 0..self.clients {
            let source = Ipv4Addr::new(127, 0, 1, (number / self.clients_per_address) as u8);
            let target = Target { endpoint: server.endpoint(), form: form.clone(), source };
            clients.spawn(repeat(*self, target, Arc::clone(&statuses)));
        }
        let (new, stores) = tokio::try_join!(
            connect_repeatedly(server.endpoint(), duration),
            store(&form, OTHER_CLIENTS, duration)
        )?;
        let stores = Samples::new(stores.into_iter().map(|(_, latency)| latency).collect(), duration);
        clients.shutdown().await;
        let highest = highest_memory(&server)?;
        server.stop()?;
        let statuses = std::mem::take(&mut *statuses.lock().map_err(|_poisoned| io::ErrorKind::Other)?);
        let responses: Vec<_> = statuses.iter().map(|(status, count)| format!("{count}x{status}")).collect();
        Ok([
            self.name.to_owned(),
            self.clients.to_string(),
            responses.join(" "),
            highest.to_string(),
            ms(&new, 0.5),
            ms(&new, 0.99),
            "< 100".to_owned(),
            ms(&stores, 0.5),
            ms(&stores, 0.99),
        ])
    }
}

fn ms(samples: &Samples, share: f64) -> String {
    format!("{:.1}", samples.percentile(share))
}

fn serve(data: &Path, is_tls: bool) -> io::Result<Command> {
    if is_tls { forms_serve_tls(data) } else { forms_serve(data) }
}

/// Returns `command` with [`OPEN_FILES`] as its limit of open files.
fn with_open_files(command: Command) -> Command {
    wrapped(command, "sh", &["-c", &format!("ulimit -n {OPEN_FILES} && exec \"$@\""), "sh"])
}

/// Returns the command that runs `command` by `program`.
fn wrapped(command: Command, program: &str, args: &[&str]) -> Command {
    let mut wrapper = Command::new(program);
    wrapper.args(args).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        wrapper.env(name, value);
    }
    wrapper
}

/// Repeats the behaviour of one client, and counts the responses.
async fn repeat(attack: Attack, target: Target, statuses: Arc<Mutex<BTreeMap<u16, usize>>>) {
    let pause = Duration::from_secs(attack.clients as u64) / ATTEMPTS_PER_SECOND;
    loop {
        // A server without a free connection closes the new one.
        let status = (attack.behaviour)(target.clone()).await.unwrap_or_default();
        if let Ok(mut statuses) = statuses.lock() {
            *statuses.entry(status).or_default() += 1;
        }
        sleep(pause).await;
    }
}

/// Latencies of requests on a new connection each, one after the other, for `duration`.
async fn connect_repeatedly(endpoint: Endpoint, duration: Duration) -> io::Result<Samples> {
    let begin = Instant::now();
    let mut latencies = Vec::new();
    let get = request("GET", "/healthz", "none", "");
    while begin.elapsed() < duration {
        let started = Instant::now();
        let response =
            async { Connection::open(endpoint).await?.exchange(&get).await.map(|answer| answer.status) };
        match timeout(Duration::from_secs(5), response).await {
            Ok(Ok(200)) => {}
            other => report_progress(&format!("a new connection failed: {other:?}"))?,
        }
        latencies.push(started.elapsed());
        sleep(Duration::from_millis(5)).await;
    }
    Ok(Samples::new(latencies, begin.elapsed()))
}

/// Reads until the server closes; returns the status of the response, 0 if there is none.
async fn read_status(mut stream: impl AsyncRead + Unpin) -> u16 {
    let mut head = Vec::new();
    while head.len() < 12 && stream.read_buf(&mut head).await.is_ok_and(|count| count > 0) {}
    let digits = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

async fn half_head(target: Target) -> io::Result<u16> {
    let mut stream = target.connect(b"http/1.1").await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await?;
    stream.flush().await?;
    Ok(read_status(&mut *stream).await)
}

async fn byte_a_second(target: Target) -> io::Result<u16> {
    let stream = target.connect(b"http/1.1").await?;
    Ok(trickle(stream, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", 1).await)
}

async fn slow_body(target: Target) -> io::Result<u16> {
    body_at_rate(target, 1_000, 1).await
}

async fn slow_large_body(target: Target) -> io::Result<u16> {
    body_at_rate(target, 60_000, 1_100).await
}

/// Sends a body of `size` bytes, `rate` bytes a second.
async fn body_at_rate(target: Target, size: usize, rate: usize) -> io::Result<u16> {
    let form = &target.form;
    let head = request("POST", &format!("{}/submissions", form.path()), &form.key, &" ".repeat(size));
    let end = head.len() - size;
    let mut stream = target.connect(b"http/1.1").await?;
    stream.write_all(&head[..end]).await?;
    Ok(trickle(stream, &head[end..], rate).await)
}

/// Sends `rate` of the `bytes` per second until the server responds or closes.
async fn trickle(stream: Box<dyn ByteStream>, bytes: &[u8], rate: usize) -> u16 {
    let (reading, mut writing) = tokio::io::split(stream);
    let send = async {
        for part in bytes.chunks(rate) {
            writing.write_all(part).await?;
            writing.flush().await?;
            sleep(Duration::from_secs(1)).await;
        }
        io::Result::Ok(())
    };
    tokio::select! {
        status = read_status(reading) => status,
        _ = send => 0,
    }
}

async fn silence(target: Target) -> io::Result<u16> {
    let mut stream = target.connect(b"http/1.1").await?;
    Ok(read_status(&mut *stream).await)
}

async fn no_handshake(target: Target) -> io::Result<u16> {
    let mut stream = target.endpoint.connect_from(target.source).await?;
    Ok(read_status(&mut stream).await)
}

async fn endless_body(target: Target) -> io::Result<u16> {
    let form = &target.form;
    let head = format!(
        "POST {}/submissions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        form.path(),
        form.key
    );
    let mut stream = target.connect(b"http/1.1").await?;
    stream.write_all(head.as_bytes()).await?;
    let chunk = format!("2000\r\n{}\r\n", " ".repeat(0x2000));
    let (reading, mut writing) = tokio::io::split(stream);
    let mut status = pin!(read_status(reading));
    let send = async { while writing.write_all(chunk.as_bytes()).await.is_ok() {} };
    tokio::select! {
        status = &mut status => Ok(status),
        () = send => Ok(status.await),
    }
}

async fn many_answers(target: Target) -> io::Result<u16> {
    let answers: Vec<_> = (0..75_000).map(|number| format!(r#""q{number}":1"#)).collect();
    post(target, format!(r#"{{"answers":{{{}}}}}"#, answers.join(",")), "").await
}

/// 64 MiB of zeros, compressed.
static GZIP_BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&vec![0; 64 * BODY]).and_then(|()| encoder.finish()).expect("memory can be written")
});

async fn gzip_bomb(target: Target) -> io::Result<u16> {
    post(target, &*GZIP_BOMB, "Content-Encoding: gzip\r\n").await
}

/// Sends `body` as a submission, with more `headers`.
async fn post(target: Target, body: impl AsRef<[u8]>, headers: &str) -> io::Result<u16> {
    let (form, body) = (&target.form, body.as_ref());
    let mut sent = format!(
        "POST {}/submissions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n",
        form.path(),
        form.key,
        body.len()
    )
    .into_bytes();
    sent.extend(body);
    let mut stream = target.connect(b"http/1.1").await?;
    // A server that has refused the body may close before it is sent.
    let _refused = stream.write_all(&sent).await;
    let _refused = stream.flush().await;
    Ok(read_status(&mut *stream).await)
}

/// Opens requests and resets them at once (CVE-2023-44487), until the server closes the connection.
async fn rapid_reset(target: Target) -> io::Result<u16> {
    let stream = target.connect(b"h2").await?;
    let (mut client, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let form = &target.form;
    let uri = format!("https://localhost{}/submissions?limit=1000", form.path());
    let get = Request::get(uri).header("authorization", format!("Bearer {}", form.key)).body(());
    let get = get.map_err(io::Error::other)?;
    while let Ok(ready) = client.ready().await {
        client = ready;
        let Ok((_response, mut stream)) = client.send_request(get.clone(), true) else { break };
        let _: &mut h2::SendStream<Bytes> = &mut stream;
        stream.send_reset(h2::Reason::CANCEL);
        // `ready` never waits; the connection's task must run to send.
        tokio::task::yield_now().await;
    }
    connection.abort();
    Ok(0)
}

/// Sends pings (RFC 9113 §6.7) until the server closes the connection.
async fn pings(target: Target) -> io::Result<u16> {
    let (mut reading, mut writing) = tokio::io::split(target.connect(b"h2").await?);
    let (settings, mut discarded) = ([0, 0, 0, 4, 0, 0, 0, 0, 0], tokio::io::sink());
    writing.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings.as_slice()].concat()).await?;
    let pings = [0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(1_000);
    let send = async { while writing.write_all(&pings).await.is_ok() {} };
    tokio::select! {
        _ended = tokio::io::copy(&mut reading, &mut discarded) => {}
        () = send => {}
    }
    Ok(0)
}

/// Measures a row of the second table: `connections` that store submissions without pause, while each sync takes 50 ms.
async fn measure_slow_disk(
    data: &Path,
    is_tls: bool,
    connections: usize,
    duration: Duration,
) -> io::Result<[String; 8]> {
    let injection = format!("inject=fdatasync:delay_enter={SYNC_DELAY}");
    let strace =
        ["-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", &injection];
    let server = Server::start(wrapped(serve(data, is_tls)?, "strace", &strace).stderr(log_of(data)?))?;
    let form = published_form(server.endpoint(), &operator_key(data)?).await?;
    let sent = store(&form, connections, duration).await?;
    server.stop()?;
    let (stored, refused): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(status, _)| *status == 201);
    let [stored, refused] =
        [stored, refused].map(|sent| sent.into_iter().map(|(_, latency)| latency).collect());
    let (stored, refused) = (Samples::new(stored, duration), Samples::new(refused, duration));
    Ok([
        connections.to_string(),
        format!("{:.0}", stored.rate()),
        ms(&stored, 0.5),
        ms(&stored, 0.99),
        "< 1000".to_owned(),
        refused.count().to_string(),
        ms(&refused, 0.5),
        ms(&refused, 0.99),
    ])
}

/// Stores submissions over `connections` for `duration`; returns the statuses and the latencies.
async fn store(form: &Form, connections: usize, duration: Duration) -> io::Result<Vec<(u16, Duration)>> {
    let load = form.submissions(connections);
    let (mut senders, opened) = (JoinSet::new(), Arc::new(Barrier::new(connections)));
    for number in 0..connections {
        senders.spawn(store_repeatedly(load.clone(), number as u64, Arc::clone(&opened), duration));
    }
    let mut sent = Vec::new();
    while let Some(ended) = senders.join_next().await {
        sent.append(&mut ended??);
    }
    Ok(sent)
}

/// Opens a connection; tries again until one is accepted.
async fn reopen(endpoint: Endpoint) -> Connection {
    loop {
        match Connection::open(endpoint).await {
            Ok(connection) => return connection,
            Err(_refused) => sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Stores submissions on one connection, once all are `opened`; a closed one is opened again, and the submission repeated. The statuses are 201,
/// 429 or 503.
async fn store_repeatedly(
    load: Load,
    number: u64,
    opened: Arc<Barrier>,
    duration: Duration,
) -> io::Result<Vec<(u16, Duration)>> {
    let mut connection = reopen(load.endpoint).await;
    opened.wait().await;
    let begin = Instant::now();
    let mut sent = Vec::new();
    while begin.elapsed() < duration {
        let started = Instant::now();
        let request = load.numbered(number * 1_000_000 + sent.len() as u64);
        let status = loop {
            match connection.exchange(&request).await {
                Ok(response) => break response.status,
                Err(_closed) => connection = reopen(load.endpoint).await,
            }
        };
        match status {
            201 | 429 | 503 => sent.push((status, started.elapsed())),
            other => return Err(io::Error::other(format!("unexpected status {other}"))),
        }
    }
    Ok(sent)
}
