//! Memory, and what others notice, while clients send large bodies slowly, read large answers not at all, or have them
//! compressed.
//!
//! `cargo bench --bench overload`. With `FORMS_BENCH_CGROUP`, the folder of a cgroup, the servers run in it:
//!
//! ```sh
//! cgroup=/sys/fs/cgroup/memory/forms            # cgroup v2: /sys/fs/cgroup/forms, and the file `memory.max`
//! mkdir $cgroup && echo 512M > $cgroup/memory.limit_in_bytes
//! FORMS_BENCH_CGROUP=$cgroup cargo bench --bench overload
//! ```
//!
//! Others are four connections that store small submissions and four that ask for `/healthz`, with a key of their own.

mod common;

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
use forms::store::{Keys, Maintenance};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use self::common::fill::{Form, published, published_form};
use self::common::load::{Load, Until};
use self::common::samples::Samples;
use self::common::server::{Server, forms_serve};
use self::common::settings;
use self::common::table::{Table, say};
use self::common::wire::request;

/// Keys that the hostile clients share; the others have one more.
const KEYS: usize = 8;

/// Connections that send a body each, all of it but the last byte.
const SENDING: usize = 1_024;

/// Connections that ask for a page each, and do not read it.
const NOT_READING: usize = 200;

/// Connections that have page after page compressed.
const COMPRESSING: usize = 20;

/// Connections of each kind of others.
const OTHERS: usize = 4;

/// Bytes of a large body.
const BODY: usize = 1 << 20;

/// Submissions of 8 kB, of which a page is full.
const TALES: u64 = 400;

const TALES_FORM: &str = r#"{"title":"Tales","questions":[{"type":"long_text","title":"What happened?"}]}"#;

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let keys = make_keys(&data).await?;
    let mut table = Table::new(&[
        "while",
        "answers",
        "MiB at most",
        "target",
        "/healthz p50 ms",
        "p99",
        "store p50 ms",
        "p99",
    ]);
    let scene = Scene::open(&data, &keys).await?;
    table.row(scene.run("nothing else", Hostile::None).await?);
    for (name, hostile) in [
        ("1,024 send 1 MiB slowly", Hostile::Sending),
        ("200 do not read 1 MiB", Hostile::NotReading),
        ("200 do not read 1 MiB in zstd", Hostile::NotReadingCompressed),
        ("20 read 1 MiB", Hostile::Reading(None)),
        ("20 read 1 MiB in gzip", Hostile::Reading(Some("gzip"))),
        ("20 read 1 MiB in zstd", Hostile::Reading(Some("zstd"))),
    ] {
        say(name)?;
        table.row(Scene::open(&data, &keys).await?.run(name, hostile).await?);
    }
    Ok(table.print()?)
}

/// A store with keys: those of the hostile clients, and that of the others.
async fn make_keys(data: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let (random, now) = (Arc::new(SystemRandomness::new()), SystemClock.now());
    let (pool, report) = (CpuPool::default(), Arc::new(|_event| {}));
    let store = SledStore::open(data, EngineOptions::default(), pool, random.clone(), report)?;
    let keys: Vec<_> = (0..=KEYS).map(|_| KeyText::draw(&*random)).collect();
    bootstrap(&store, &keys[0], &*random, now).await?;
    let first = store.find_key(keys[0].id()).await?.ok_or("no first key")?;
    for key in &keys[1..] {
        store.insert_key(ApiKey { id: key.id(), hash: key.hash(), ..(*first).clone() }).await?;
    }
    store.close().await?;
    Ok(keys.iter().map(|key| key.reveal().to_owned()).collect())
}

/// What the hostile clients do.
#[derive(Debug, Clone, Copy)]
enum Hostile {
    None,
    Sending,
    NotReading,
    NotReadingCompressed,
    Reading(Option<&'static str>),
}

/// A server with a form of large pages, and one of the others.
struct Scene {
    server: Server,
    keys: Vec<String>,
    tales: Form,
    others: Form,
}

impl Scene {
    async fn open(data: &Path, keys: &[String]) -> io::Result<Self> {
        let mut command = forms_serve(data)?;
        let server = Server::start(command.args(["--max-connections", "1100"]))?;
        if let Ok(cgroup) = std::env::var("FORMS_BENCH_CGROUP") {
            std::fs::write(Path::new(&cgroup).join("cgroup.procs"), server.pid().to_string())?;
        }
        let tales = published(server.address(), &keys[0], TALES_FORM).await?;
        let tale = "The room was quiet and the breakfast good. ".repeat(190);
        let body = format!(r#"{{"answers":{{"q1":"{tale}"}}}}"#);
        let request = request("POST", &format!("{}/submissions", tales.path()), &tales.key, &body);
        let load = Load { request, ..tales.submissions(OTHERS) };
        load.run(Until::Sent { count: TALES, over: Duration::ZERO }).await?;
        let others = published_form(server.address(), &keys[KEYS]).await?;
        Ok(Self { server, keys: keys.to_vec(), tales, others })
    }

    /// One row of the table. The server must live to its end.
    async fn run(self, name: &str, hostile: Hostile) -> io::Result<[String; 8]> {
        let duration = settings::duration(8.0)?;
        let (answers, (health, stores)) = match hostile {
            Hostile::None => (BTreeMap::new(), self.watch(duration).await?),
            Hostile::Sending => {
                let mut streams = Vec::new();
                for place in 0..SENDING {
                    streams.push(tokio::spawn(send_body(self.server.address(), self.body_request(place))));
                }
                let watched = self.watch(duration).await?;
                (statuses(streams).await?, watched)
            }
            Hostile::NotReading | Hostile::NotReadingCompressed => {
                let encoding = matches!(hostile, Hostile::NotReadingCompressed).then_some("zstd");
                let mut streams = Vec::new();
                for place in 0..NOT_READING {
                    let request = self.page_request(place, encoding);
                    streams.push(tokio::spawn(ask(self.server.address(), request)));
                }
                let watched = self.watch(duration).await?;
                (statuses(streams).await?, watched)
            }
            Hostile::Reading(encoding) => {
                let reading: Vec<_> = (0..COMPRESSING)
                    .map(|place| {
                        let request = self.page_request(place, encoding);
                        let load = Load { connections: 1, request, status: 200, ..self.health() };
                        tokio::spawn(async move { load.run(Until::Elapsed(duration)).await })
                    })
                    .collect();
                let watched = self.watch(duration).await?;
                let mut read = 0;
                for reading in reading {
                    read += reading.await??.count();
                }
                (BTreeMap::from([(200, read)]), watched)
            }
        };
        let highest = highest_memory(&self.server)?;
        self.server.stop()?;
        let answers = answers.iter().map(|(status, count)| format!("{count}x{status}"));
        let ms = |samples: &Samples, share| format!("{:.1}", samples.percentile(share));
        Ok([
            name.to_owned(),
            answers.collect::<Vec<_>>().join(" "),
            highest.to_string(),
            "< 300".to_owned(),
            ms(&health, 0.5),
            ms(&health, 0.99),
            ms(&stores, 0.5),
            ms(&stores, 0.99),
        ])
    }

    /// What others see for a while.
    async fn watch(&self, duration: Duration) -> io::Result<(Samples, Samples)> {
        let until = Until::Elapsed(duration);
        let (health, stores) = (self.health(), self.others.submissions(OTHERS));
        tokio::try_join!(health.run(until), stores.run(until))
    }

    fn health(&self) -> Load {
        let request = request("GET", "/healthz", &self.keys[KEYS], "");
        Load { address: self.server.address(), connections: OTHERS, request, status: 200 }
    }

    /// The head and all but the last byte of a submission of a MiB.
    fn body_request(&self, place: usize) -> Vec<u8> {
        let body = format!("{}{}", r#"{"answers":{}}"#, " ".repeat(BODY - 14));
        let path = format!("{}/submissions", self.tales.path());
        let mut request = request("POST", &path, &self.keys[place % KEYS], &body);
        request.pop();
        request
    }

    /// A request for a page of a MiB.
    fn page_request(&self, place: usize, encoding: Option<&str>) -> Vec<u8> {
        let path = format!("{}/submissions?limit=1000", self.tales.path());
        let mut request = request("GET", &path, &self.keys[place % KEYS], "");
        if let Some(encoding) = encoding {
            let end = request.len() - 2;
            request.splice(end.., format!("Accept-Encoding: {encoding}\r\n\r\n").into_bytes());
        }
        request
    }
}

/// Sends `request` as far as the server takes it. The connection stays open.
async fn send_body(address: SocketAddr, request: Vec<u8>) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    // A server that has refused the body may close before it is sent.
    let _refused = stream.write_all(&request).await;
    Ok(stream)
}

/// Sends `request` over a connection that takes hardly any of the answer.
async fn ask(address: SocketAddr, request: Vec<u8>) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(2_048)?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(&request).await?;
    Ok(stream)
}

/// The statuses that were answered, and how often; 0 is no answer so far.
async fn statuses(
    streams: Vec<tokio::task::JoinHandle<io::Result<TcpStream>>>,
) -> io::Result<BTreeMap<u16, usize>> {
    let mut statuses = BTreeMap::new();
    for stream in streams {
        let (stream, mut head) = (stream.await??, [0; 12]);
        // The answer is there, or the server waits for the rest of the body.
        let peeked = timeout(Duration::from_millis(1), stream.peek(&mut head)).await;
        let has_answer = peeked.is_ok_and(|peeked| peeked.is_ok_and(|count| count == head.len()));
        let status = std::str::from_utf8(&head[9..]).ok().filter(|_| has_answer);
        *statuses.entry(status.and_then(|digits| digits.parse().ok()).unwrap_or(0)).or_default() += 1;
    }
    Ok(statuses)
}

/// The most memory that the server ever had resident, in MiB.
fn highest_memory(server: &Server) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib.div_ceil(1024)).ok_or_else(|| io::Error::other(format!("no VmHWM in {status}")))
}
