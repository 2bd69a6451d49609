//! Latencies of reading from a small and a large store: the newest page of 50, and single random submissions.
//!
//! `cargo bench --bench store -- reads`; `FORMS_BENCH_STORED` sets the number of submissions in the large store. One
//! connection sends one request at a time; both servers run, and are measured in turns.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::fill::{Form, expect, published_form};
use crate::common::samples::{Samples, median};
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::Connection;

/// Submissions in the small store.
const SMALL_COUNT: u64 = 10_000;

/// Single submissions that are read in turn: more than fit in CPU caches.
const SAMPLE_COUNT: usize = 5_000;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let small = FilledServer::new(SMALL_COUNT).await?;
    let large = FilledServer::new(settings::stored()?).await?;
    let mut table = Table::new(&["read", "stored", "p50 ms", "p99 ms", "p50 large/small", "target"]);
    for (name, of) in [
        ("newest 50", (|filled| &filled.page) as fn(&FilledServer) -> &Vec<_>),
        ("one", |filled| &filled.single_reads),
    ] {
        let mut turns = Vec::new();
        for _ in 0..settings::rounds()? {
            turns.push((read(&small, of(&small)).await?, read(&large, of(&large)).await?));
        }
        let median_of = |pick: &dyn Fn(&(Samples, Samples)) -> f64| median(turns.iter().map(pick));
        table.row([
            name.into(),
            small.stored.to_string(),
            format!("{:.3}", median_of(&|turn| turn.0.percentile(0.5))),
            format!("{:.3}", median_of(&|turn| turn.0.percentile(0.99))),
            String::new(),
            String::new(),
        ]);
        table.row([
            name.into(),
            large.stored.to_string(),
            format!("{:.3}", median_of(&|turn| turn.1.percentile(0.5))),
            format!("{:.3}", median_of(&|turn| turn.1.percentile(0.99))),
            format!("{:.2}", median_of(&|turn| turn.1.percentile(0.5) / turn.0.percentile(0.5))),
            "<= 1.50".into(),
        ]);
    }
    table.print()
}

/// A server with `stored` submissions, and the requests that read them.
struct FilledServer {
    server: Server,
    stored: u64,
    page: Vec<Vec<u8>>,
    single_reads: Vec<Vec<u8>>,
    _folder: TempDir,
}

impl FilledServer {
    async fn new(stored: u64) -> io::Result<Self> {
        report_progress(&format!("storing {stored}"))?;
        let folder = settings::folder()?;
        let data = folder.path().join("store");
        let server = Server::start(&mut forms_serve(&data)?)?;
        let form = published_form(server.endpoint(), &operator_key(&data)?).await?;
        form.fill(stored).await?;
        let ids = sample_ids(&form, stored).await?;
        let single_reads = ids.iter().map(|id| form.get(&format!("/submissions/{id}"))).collect();
        Ok(Self { server, stored, page: vec![form.get("/submissions")], single_reads, _folder: folder })
    }
}

/// Sends the requests one after another, repeatedly, for the duration of a measurement.
async fn read(filled: &FilledServer, requests: &[Vec<u8>]) -> io::Result<Samples> {
    let mut connection = Connection::open(filled.server.endpoint()).await?;
    let duration = settings::duration(3.0)?;
    let (begin, mut latencies) = (Instant::now(), Vec::new());
    for request in requests.iter().cycle() {
        let before = begin.elapsed();
        if before >= duration {
            break;
        }
        expect(&mut connection, request, 200).await?;
        latencies.push(begin.elapsed().saturating_sub(before));
    }
    Ok(Samples::new(latencies, begin.elapsed().max(Duration::from_nanos(1))))
}

/// Ids of submissions spread over the form, in an order that no cache favours.
async fn sample_ids(form: &Form, stored: u64) -> io::Result<Vec<String>> {
    let every = (stored as usize / SAMPLE_COUNT).max(1);
    let (mut ids, mut cursor, mut seen) = (Vec::new(), String::new(), 0);
    let mut connection = Connection::open(form.endpoint).await?;
    loop {
        let page = form.get(&format!("/submissions?limit=1000{cursor}"));
        let text = String::from_utf8_lossy(expect(&mut connection, &page, 200).await?).into_owned();
        for (at, mark) in text.match_indices(r#""id":""#) {
            if seen % every == 0 {
                ids.push(text[at + mark.len()..].split('"').next().unwrap_or_default().to_owned());
            }
            seen += 1;
        }
        let Some((_, next)) = text.rsplit_once(r#""next_cursor":""#) else { break };
        cursor = format!("&cursor={}", next.split('"').next().unwrap_or_default());
    }
    // A stride that is coprime to the length visits every id once, far from the previous one.
    let stride = (ids.len() * 2 / 3..).find(|stride| gcd(*stride, ids.len()) == 1).unwrap_or(1);
    Ok((0..ids.len()).map(|turn| ids[turn * stride % ids.len()].clone()).collect())
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
