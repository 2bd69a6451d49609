//! Reading from a small store and from a large one: the newest page of 50, and single submissions anywhere in it.
//!
//! `cargo bench --bench reads`; `FORMS_BENCH_STORED` changes how many the large store holds. One connection, one
//! request at a time; both stores are served at once and take turns.

mod common;

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use self::common::fill::{Form, expect, published_form};
use self::common::samples::{Samples, median};
use self::common::server::{Server, forms_serve, operator_key};
use self::common::settings;
use self::common::table::{Table, say};
use self::common::wire::Connection;

/// Submissions in the small store.
const SMALL: u64 = 10_000;

/// Single submissions that are read in turn: more than stay warm by chance.
const POINTS: usize = 5_000;

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let small = Filled::new(SMALL).await?;
    let large = Filled::new(settings::stored()?).await?;
    let mut table = Table::new(&["read", "stored", "p50 ms", "p99 ms", "p50 large/small", "target"]);
    for (name, of) in
        [("newest 50", (|filled| &filled.page) as fn(&Filled) -> &Vec<_>), ("one", |filled| &filled.points)]
    {
        let mut turns = Vec::new();
        for _ in 0..settings::rounds()? {
            turns.push((read(&small, of(&small)).await?, read(&large, of(&large)).await?));
        }
        let figure = |pick: &dyn Fn(&(Samples, Samples)) -> f64| median(turns.iter().map(pick));
        table.row([
            name.into(),
            small.stored.to_string(),
            format!("{:.3}", figure(&|turn| turn.0.percentile(0.5))),
            format!("{:.3}", figure(&|turn| turn.0.percentile(0.99))),
            String::new(),
            String::new(),
        ]);
        table.row([
            name.into(),
            large.stored.to_string(),
            format!("{:.3}", figure(&|turn| turn.1.percentile(0.5))),
            format!("{:.3}", figure(&|turn| turn.1.percentile(0.99))),
            format!("{:.2}", figure(&|turn| turn.1.percentile(0.5) / turn.0.percentile(0.5))),
            "<= 1.50".into(),
        ]);
    }
    table.print()
}

/// A server with so many submissions, and the requests that read them.
struct Filled {
    server: Server,
    stored: u64,
    page: Vec<Vec<u8>>,
    points: Vec<Vec<u8>>,
    _folder: TempDir,
}

impl Filled {
    async fn new(stored: u64) -> io::Result<Self> {
        say(&format!("storing {stored}"))?;
        let folder = settings::folder()?;
        let data = folder.path().join("store");
        let server = Server::start(&mut forms_serve(&data)?)?;
        let form = published_form(server.address(), &operator_key(&data)?).await?;
        form.fill(stored).await?;
        let ids = sample_ids(&form, stored).await?;
        let points = ids.iter().map(|id| form.get(&format!("/submissions/{id}"))).collect();
        Ok(Self { server, stored, page: vec![form.get("/submissions")], points, _folder: folder })
    }
}

/// One request after the other, over and over, for the time of a measurement.
async fn read(filled: &Filled, requests: &[Vec<u8>]) -> io::Result<Samples> {
    let mut connection = Connection::open(filled.server.address()).await?;
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

/// Ids from all over the form, in no order that a cache could like.
async fn sample_ids(form: &Form, stored: u64) -> io::Result<Vec<String>> {
    let every = (stored as usize / POINTS).max(1);
    let (mut ids, mut cursor, mut seen) = (Vec::new(), String::new(), 0);
    let mut connection = Connection::open(form.address).await?;
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
    // A stride that shares no factor with the length meets every id once, far from the one before.
    let stride = (ids.len() * 2 / 3..).find(|stride| gcd(*stride, ids.len()) == 1).unwrap_or(1);
    Ok((0..ids.len()).map(|turn| ids[turn * stride % ids.len()].clone()).collect())
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
