//! Memory, and latencies of other clients, while clients send large bodies slowly, do not read large responses, or
//! request compressed ones.
//!
//! `cargo bench --bench hostile -- overload`. With `FORMS_BENCH_CGROUP`, the folder of a cgroup, the servers run in it:
//!
//! ```sh
//! cgroup=/sys/fs/cgroup/memory/forms            # cgroup v2: /sys/fs/cgroup/forms, and the file `memory.max`
//! mkdir $cgroup && echo 512M > $cgroup/memory.limit_in_bytes
//! FORMS_BENCH_CGROUP=$cgroup cargo bench --bench hostile -- overload
//! ```
//!
//! The other clients are four connections that store small submissions and four that request `/healthz`, with a
//! separate key.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forms::app::bootstrap;
use forms::clock::{Clock, SystemClock};
use forms::cpu_pool::CpuPool;
use forms::domain::workspace::ApiKey;
use forms::secret::{KeyText, SystemRandomness};
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{Keys, Maintenance, NewKey};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::common::fill::{Form, published, published_form};
use crate::common::load::{Load, Until};
use crate::common::samples::Samples;
use crate::common::server::{Server, forms_serve, highest_memory};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::request;

/// Keys shared by the attacking clients; the other clients have another key.
const KEYS: usize = 8;

/// Connections that each send a body without its last byte.
const SENDING: usize = 1_024;

/// Connections that each request a page and do not read it.
const NOT_READING: usize = 200;

/// Connections that read pages without pause.
const COMPRESSING: usize = 20;

/// Connections of each kind of other clients.
const OTHER_CLIENTS: usize = 4;

/// Bytes of a large body.
const BODY: usize = 1 << 20;

/// Submissions of 8 kB, enough for a full page.
const LONG_TEXTS: u64 = 400;

const LONG_TEXT_FORM: &str =
    r#"{"title":"Tales","questions":[{"type":"long_text","title":"What happened?"}]}"#;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let keys = make_keys(&data).await?;
    let mut table = Table::new(&[
        "load",
        "responses",
        "max MiB",
        "target",
        "/healthz p50 ms",
        "p99",
        "store p50 ms",
        "p99",
    ]);
    let fixture = Fixture::open(&data, &keys).await?;
    table.row(fixture.run("none", Attack::None).await?);
    for (name, attack) in [
        ("1,024 send 1 MiB slowly", Attack::Sending),
        ("200 do not read 1 MiB", Attack::NotReading),
        ("200 do not read 1 MiB in gzip", Attack::NotReadingCompressed),
        ("20 read 1 MiB", Attack::Reading(None)),
        ("20 read 1 MiB in gzip", Attack::Reading(Some("gzip"))),
    ] {
        report_progress(name)?;
        table.row(Fixture::open(&data, &keys).await?.run(name, attack).await?);
    }
    Ok(table.print()?)
}

/// Creates a store with keys for the attacking clients and one for the other clients.
async fn make_keys(data: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let (random, now) = (Arc::new(SystemRandomness), SystemClock.now());
    let (pool, report) = (CpuPool::default(), Arc::new(|_event| {}));
    let store = SledStore::open(data, EngineOptions::default(), pool, random.clone(), report)?;
    let keys: Vec<_> = (0..=KEYS).map(|_| KeyText::draw(&*random)).collect();
    bootstrap(&store, &keys[0], &*random, now).await?;
    let first = store.find_key(keys[0].id()).await?.ok_or("the first key does not exist")?;
    for key in &keys[1..] {
        let key = ApiKey { id: key.id(), hash: key.hash(), ..(*first).clone() };
        store.insert_key(NewKey { key, idempotency_key: None }).await?;
    }
    store.close().await?;
    Ok(keys.iter().map(|key| key.reveal().to_owned()).collect())
}

/// Behaviour of the attacking clients.
#[derive(Debug, Clone, Copy)]
enum Attack {
    None,
    Sending,
    NotReading,
    NotReadingCompressed,
    Reading(Option<&'static str>),
}

/// A server with a form that has large pages, and a form of the other clients.
struct Fixture {
    server: Server,
    keys: Vec<String>,
    long_texts: Form,
    other_form: Form,
}

impl Fixture {
    async fn open(data: &Path, keys: &[String]) -> io::Result<Self> {
        let mut command = forms_serve(data)?;
        let server = Server::start(command.args(["--max-connections", "1100"]))?;
        if let Ok(cgroup) = std::env::var("FORMS_BENCH_CGROUP") {
            std::fs::write(Path::new(&cgroup).join("cgroup.procs"), server.pid().to_string())?;
        }
        let long_texts = published(server.endpoint(), &keys[0], LONG_TEXT_FORM).await?;
        let text = "The room was quiet and the breakfast good. ".repeat(190);
        let body = format!(r#"{{"answers":{{"q1":"{text}"}}}}"#);
        let request = request("POST", &format!("{}/submissions", long_texts.path()), &long_texts.key, &body);
        let load = Load { request, ..long_texts.submissions(OTHER_CLIENTS) };
        load.run(Until::Sent { count: LONG_TEXTS, over: Duration::ZERO }).await?;
        let other_form = published_form(server.endpoint(), &keys[KEYS]).await?;
        Ok(Self { server, keys: keys.to_vec(), long_texts, other_form })
    }

    /// Measures one row of the table. The server must run until the end.
    async fn run(self, name: &str, attack: Attack) -> io::Result<[String; 8]> {
        let duration = settings::duration(8.0)?;
        let (responses, (health, stores)) = match attack {
            Attack::None => (BTreeMap::new(), self.measure_latencies(duration).await?),
            Attack::Sending => {
                let mut streams = Vec::new();
                for place in 0..SENDING {
                    streams.push(tokio::spawn(send_body(
                        self.server.endpoint().address,
                        self.body_request(place),
                    )));
                }
                let latencies = self.measure_latencies(duration).await?;
                (statuses(streams).await?, latencies)
            }
            Attack::NotReading | Attack::NotReadingCompressed => {
                let encoding = matches!(attack, Attack::NotReadingCompressed).then_some("gzip");
                let mut streams = Vec::new();
                for place in 0..NOT_READING {
                    let request = self.page_request(place, encoding);
                    streams
                        .push(tokio::spawn(request_without_reading(self.server.endpoint().address, request)));
                }
                let latencies = self.measure_latencies(duration).await?;
                (statuses(streams).await?, latencies)
            }
            Attack::Reading(encoding) => {
                let reading: Vec<_> = (0..COMPRESSING)
                    .map(|place| {
                        let request = self.page_request(place, encoding);
                        let load = Load { connections: 1, request, status: 200, ..self.health() };
                        tokio::spawn(async move { load.run(Until::Elapsed(duration)).await })
                    })
                    .collect();
                let latencies = self.measure_latencies(duration).await?;
                let mut read = 0;
                for reading in reading {
                    read += reading.await??.count();
                }
                (BTreeMap::from([(200, read)]), latencies)
            }
        };
        let highest = highest_memory(&self.server)?;
        self.server.stop()?;
        let responses = responses.iter().map(|(status, count)| format!("{count}x{status}"));
        let ms = |samples: &Samples, share| format!("{:.1}", samples.percentile(share));
        Ok([
            name.to_owned(),
            responses.collect::<Vec<_>>().join(" "),
            highest.to_string(),
            "< 300".to_owned(),
            ms(&health, 0.5),
            ms(&health, 0.99),
            ms(&stores, 0.5),
            ms(&stores, 0.99),
        ])
    }

    /// Latencies of `/healthz` and of storing for the other clients.
    async fn measure_latencies(&self, duration: Duration) -> io::Result<(Samples, Samples)> {
        let until = Until::Elapsed(duration);
        let (health, stores) = (self.health(), self.other_form.submissions(OTHER_CLIENTS));
        tokio::try_join!(health.run(until), stores.run(until))
    }

    fn health(&self) -> Load {
        let request = request("GET", "/healthz", &self.keys[KEYS], "");
        Load { endpoint: self.server.endpoint(), connections: OTHER_CLIENTS, request, status: 200 }
    }

    /// The head and all but the last byte of a submission of a MiB.
    fn body_request(&self, place: usize) -> Vec<u8> {
        let body = format!("{}{}", r#"{"answers":{}}"#, " ".repeat(BODY - 14));
        let path = format!("{}/submissions", self.long_texts.path());
        let mut request = request("POST", &path, &self.keys[place % KEYS], &body);
        request.pop();
        request
    }

    /// A request for a page of a MiB.
    fn page_request(&self, place: usize, encoding: Option<&str>) -> Vec<u8> {
        let path = format!("{}/submissions?limit=1000", self.long_texts.path());
        let mut request = request("GET", &path, &self.keys[place % KEYS], "");
        if let Some(encoding) = encoding {
            let end = request.len() - 2;
            request.splice(end.., format!("Accept-Encoding: {encoding}\r\n\r\n").into_bytes());
        }
        request
    }
}

/// Sends `request` until the server stops reading. The connection stays open.
async fn send_body(address: SocketAddr, request: Vec<u8>) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    // A server that has refused the body may close before it is sent.
    let _refused = stream.write_all(&request).await;
    Ok(stream)
}

/// Sends `request` over a connection with a tiny receive buffer.
async fn request_without_reading(address: SocketAddr, request: Vec<u8>) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(2_048)?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(&request).await?;
    Ok(stream)
}

/// The statuses of the responses with their counts; 0 is no response so far.
async fn statuses(
    streams: Vec<tokio::task::JoinHandle<io::Result<TcpStream>>>,
) -> io::Result<BTreeMap<u16, usize>> {
    let mut statuses = BTreeMap::new();
    for stream in streams {
        let (stream, mut head) = (stream.await??, [0; 12]);
        // Either the response has arrived, or the server waits for the rest of the body.
        let peeked = timeout(Duration::from_millis(1), stream.peek(&mut head)).await;
        let has_response = peeked.is_ok_and(|peeked| peeked.is_ok_and(|count| count == head.len()));
        let status = std::str::from_utf8(&head[9..]).ok().filter(|_| has_response);
        *statuses.entry(status.and_then(|digits| digits.parse().ok()).unwrap_or(0)).or_default() += 1;
    }
    Ok(statuses)
}
