//! What others notice while a large form is purged, and while the index is proved after a start.
//!
//! `cargo bench --bench purge`; `FORMS_BENCH_STORED` changes how many submissions the form holds, and
//! `FORMS_BENCH_SECONDS` how long the others are watched. Others are four connections that store and four that read
//! the newest page of another form, each as fast as it is answered.

mod common;

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

use self::common::fill::{Form, expect, published_form};
use self::common::load::{Load, Until};
use self::common::samples::Samples;
use self::common::server::{Server, forms_serve, operator_key};
use self::common::settings;
use self::common::table::{Table, say};
use self::common::wire::{Connection, request};

/// Connections of each kind.
const OTHERS: usize = 4;

/// Submissions in the others' form.
const SMALL: u64 = 10_000;

/// How often the log is looked at while the index is proved, and how often at most.
const WINDOW: Duration = Duration::from_secs(1);
const WINDOWS: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let (stored, duration) = (settings::stored()?, settings::duration(10.0)?);
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let key = operator_key(&data)?;
    let large = published_form(server.address(), &key).await?;
    let small = published_form(server.address(), &key).await?;
    say(&format!("storing {stored}"))?;
    small.fill(SMALL).await?;
    large.fill(stored).await?;
    server.stop()?;

    let mut table =
        Table::new(&["while", "seconds", "store p99 ms", "read p99 ms", "highest ms", "target p99"]);
    say("proving")?;
    let server = Server::start(forms_serve(&data)?.env("FORMS_LOG", "debug"))?;
    let mut proving = Watched::default();
    while !has_proved(&data)? && proving.windows < WINDOWS {
        proving.add(watch(&server, &small, WINDOW).await?);
    }
    let mut idle = Watched::default();
    idle.add(watch(&server, &small, duration).await?);
    say("purging")?;
    let purge = request("DELETE", &format!("{}?purge=true", large.path()), &key, "");
    expect(&mut Connection::open(server.address()).await?, &purge, 204).await?;
    let mut purging = Watched::default();
    purging.add(watch(&server, &small, duration).await?);
    server.stop()?;
    let erased = stored.saturating_sub(count_rows(&data, large.id.parse()?)?);

    for (name, watched, target) in [
        ("nothing else".to_owned(), idle, ""),
        ("the index is proved".to_owned(), proving, "< 50 ms"),
        (format!("a purge, {erased} of {stored} erased"), purging, "< 50 ms"),
    ] {
        table.row(watched.row(name, target));
    }
    Ok(table.print()?)
}

/// What the others saw.
#[derive(Default)]
struct Watched {
    windows: usize,
    stores: Samples,
    reads: Samples,
}

impl Watched {
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

/// Latencies of storing and of reading in `form`, for a while.
async fn watch(server: &Server, form: &Form, duration: Duration) -> io::Result<(Samples, Samples)> {
    let form = Form { address: server.address(), ..form.clone() };
    let stores = form.submissions(OTHERS);
    let reads = Load { request: form.get("/submissions"), status: 200, ..stores.clone() };
    let until = Until::Elapsed(duration);
    tokio::try_join!(stores.run(until), reads.run(until))
}

/// Whether the server's log says that the index was proved.
fn has_proved(data: &Path) -> io::Result<bool> {
    Ok(std::fs::read_to_string(data.with_extension("log"))?.contains("agrees with"))
}

/// Rows of submissions that a form has left in a store that nobody serves.
fn count_rows(data: &Path, form: FormId) -> Result<u64, Box<dyn Error>> {
    const AT_ONCE: usize = 10_000;
    let options = EngineOptions { verify_index: false, preallocate: false, ..EngineOptions::default() };
    let engine = Engine::open_path(data, options, Arc::new(|_event| {}))?;
    // The rows of submissions are those under `S` and the form's id.
    let prefix: Vec<u8> = [b"S".as_slice(), &form.to_bytes()].concat();
    let (mut after, mut count) = (Bound::Included(prefix.clone()), 0);
    loop {
        let rows = engine.reader().scan((after, Bound::Unbounded), Direction::Ascending, AT_ONCE)?;
        let ours = rows.iter().take_while(|(key, _)| key.starts_with(&prefix)).count();
        count += ours as u64;
        match rows.last() {
            Some((key, _)) if ours == AT_ONCE => after = Bound::Excluded(key.clone()),
            _ => break,
        }
    }
    engine.close()?;
    Ok(count)
}
