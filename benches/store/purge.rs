//! Latencies of other clients while a large form is purged, and while the index is verified after a start.
//!
//! `cargo bench --bench store -- purge`; `FORMS_BENCH_STORED` sets the number of submissions of the form, and
//! `FORMS_BENCH_SECONDS` the duration of a measurement. The other clients are four connections that store and four that
//! read the newest page of another form, each without pause.

use std::error::Error;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forms::id::FormId;
use forms::store::sled::engine::Engine;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::sled::engine::tx::Direction;

use crate::common::fill::{Form, expect, published_form};
use crate::common::load::{Load, Until};
use crate::common::samples::Samples;
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::{Connection, request};

/// Connections of each kind of other clients.
const OTHER_CLIENTS: usize = 4;

/// Submissions in the form of the other clients.
const SMALL_COUNT: u64 = 10_000;

/// Interval of reading the log while the index is verified, and the maximum number of intervals.
const WINDOW: Duration = Duration::from_secs(1);
const WINDOWS: usize = 300;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let (stored, duration) = (settings::stored()?, settings::duration(10.0)?);
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let key = operator_key(&data)?;
    let large = published_form(server.endpoint(), &key).await?;
    let small = published_form(server.endpoint(), &key).await?;
    report_progress(&format!("storing {stored}"))?;
    small.fill(SMALL_COUNT).await?;
    large.fill(stored).await?;
    server.stop()?;

    let mut table =
        Table::new(&["during", "seconds", "store p99 ms", "read p99 ms", "highest ms", "target p99"]);
    report_progress("verifying")?;
    let server = Server::start(forms_serve(&data)?.env("FORMS_LOG", "debug"))?;
    let mut verifying = Latencies::default();
    while !is_index_verified(&data)? && verifying.windows < WINDOWS {
        verifying.add(measure_latencies(&server, &small, WINDOW).await?);
    }
    let mut idle = Latencies::default();
    idle.add(measure_latencies(&server, &small, duration).await?);
    report_progress("purging")?;
    let purge = request("DELETE", &format!("{}?purge=true", large.path()), &key, "");
    expect(&mut Connection::open(server.endpoint()).await?, &purge, 204).await?;
    let mut purging = Latencies::default();
    purging.add(measure_latencies(&server, &small, duration).await?);
    server.stop()?;
    let erased = stored.saturating_sub(count_rows(&data, large.id.parse()?)?);

    for (name, latencies, target) in [
        ("no other work".to_owned(), idle, ""),
        ("the index is verified".to_owned(), verifying, "< 50 ms"),
        (format!("a purge, {erased} of {stored} erased"), purging, "< 50 ms"),
    ] {
        table.row(latencies.row(name, target));
    }
    Ok(table.print()?)
}

/// Latencies of the other clients.
#[derive(Default)]
struct Latencies {
    windows: usize,
    stores: Samples,
    reads: Samples,
}

impl Latencies {
    fn add(&mut self, (stores, reads): (Samples, Samples)) {
        self.windows += 1;
        self.stores.add(stores);
        self.reads.add(reads);
    }

    fn row(&self, name: String, target: &str) -> [String; 6] {
        let highest = self.stores.percentile(1.0).max(self.reads.percentile(1.0));
        let p99 = |samples: &Samples| format!("{:.1}", samples.percentile(0.99));
        [
            name,
            format!("{:.0}", self.stores.seconds()),
            p99(&self.stores),
            p99(&self.reads),
            format!("{highest:.1}"),
            target.to_owned(),
        ]
    }
}

/// Measures storing and reading in `form`.
async fn measure_latencies(
    server: &Server,
    form: &Form,
    duration: Duration,
) -> io::Result<(Samples, Samples)> {
    let form = Form { endpoint: server.endpoint(), ..form.clone() };
    let stores = form.submissions(OTHER_CLIENTS);
    let reads = Load { request: form.get("/submissions"), status: 200, ..stores.clone() };
    let until = Until::Elapsed(duration);
    tokio::try_join!(stores.run(until), reads.run(until))
}

/// Whether the server has logged that the index is verified.
fn is_index_verified(data: &Path) -> io::Result<bool> {
    Ok(std::fs::read_to_string(data.with_extension("log"))?.contains("agrees with"))
}

/// Counts the remaining submission rows of a form in a store that is not open.
fn count_rows(data: &Path, form: FormId) -> Result<u64, Box<dyn Error>> {
    const AT_ONCE: usize = 10_000;
    let options = EngineOptions { verify_index: false, preallocate: false, ..EngineOptions::default() };
    let engine = Engine::open_path(data, options, Arc::new(|_event| {}))?;
    // The rows of submissions are those under `S` and the form's id.
    let prefix: Vec<u8> = [b"S".as_slice(), &form.to_bytes()].concat();
    let (mut after, mut count) = (Bound::Included(prefix.clone()), 0);
    loop {
        let rows = engine.reader().scan((after, Bound::Unbounded), Direction::Ascending, AT_ONCE)?;
        let matching = rows.iter().take_while(|(key, _)| key.starts_with(&prefix)).count();
        count += matching as u64;
        match rows.last() {
            Some((key, _)) if matching == AT_ONCE => after = Bound::Excluded(key.clone()),
            _ => break,
        }
    }
    engine.close()?;
    Ok(count)
}
