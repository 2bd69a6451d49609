//! Submissions a second with idempotency keys, while as many keys as come expire: the clock is 25 h after the first of
//! them. Beside it the same server whose keys are all young, so that there is nothing to sweep.
//!
//! `cargo bench --bench idempotency`; `FORMS_BENCH_ROUNDS` and `FORMS_BENCH_SECONDS` change how long it takes. Both
//! servers take turns, so that what else the machine does hits both; a ratio is the median of the ratios of neighbouring
//! turns.

mod common;

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use forms::app::App;
use forms::clock::{Clock, SystemClock, Timestamp};
use forms::config::HttpLimits;
use forms::cpu_pool::CpuPool;
use forms::domain::validation::limits::Limits;
use forms::http::router;
use forms::http::server::accept_loop::serve;
use forms::secret::SystemRandomness;
use forms::server::open_local;
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use tokio::net::TcpListener;
use tokio::time::interval;

use self::common::fill::{Form, published_form};
use self::common::load::{Load, NUMBER, Until};
use self::common::samples::{Samples, median};
use self::common::server::{Server, operator_key};
use self::common::settings;
use self::common::table::{Table, say};

/// Connections at once.
const CASES: [usize; 3] = [16, 64, 900];

/// The first argument that makes a benchmark's process a server; the second is its data, the third its clock's offset.
const ROLE: &str = "server-at";

/// After this long every key has expired.
const LATER: Duration = Duration::from_secs(25 * 60 * 60);

/// Days in the trash, which is empty.
const TRASH_DAYS: u32 = 30;

/// How long both run before each turn that counts.
const WARM_UP: Duration = Duration::from_millis(500);

/// Keys that are stored first for each that a turn may sweep: there must be enough to the end.
const SPARE: f64 = 1.5;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match arguments.iter().position(|argument| argument == ROLE) {
        Some(at) => runtime.block_on(serve_at(Path::new(&arguments[at + 1]), arguments[at + 2].parse()?)),
        None => runtime.block_on(measure()),
    }
}

/// The machine's clock, set forward.
struct AheadClock(i64);

impl Clock for AheadClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + self.0)
    }
}

/// Serves until killed.
async fn serve_at(data: &Path, ahead_millis: i64) -> Result<(), Box<dyn Error>> {
    // Makes the key, where there is none yet.
    open_local(data).await?.close().await?;
    let (random, pool) = (Arc::new(SystemRandomness::new()), CpuPool::default());
    let store =
        SledStore::open(data, EngineOptions::default(), pool.clone(), random.clone(), Arc::new(|_| ()))?;
    let clock = Arc::new(AheadClock(ahead_millis));
    let app = Arc::new(App::new(Arc::new(store), pool, clock, random, Limits::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "http://{}", listener.local_addr()?)?;
    let limits = HttpLimits::default();
    let api = router(Arc::clone(&app), limits.clone());
    tokio::select! {
        () = serve(&listener, api, &limits, std::future::pending()) => Ok(()),
        failed = keep_up(&app) => failed,
    }
}

/// Runs maintenance while requests come, and more often than a server does, so that every turn meets it.
async fn keep_up(app: &App) -> Result<(), Box<dyn Error>> {
    let mut often = interval(Duration::from_secs(1));
    loop {
        often.tick().await;
        app.maintain(TRASH_DAYS).await?;
    }
}

fn start(data: &Path, ahead: Duration) -> io::Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    Server::start(command.arg(ROLE).arg(data).arg(ahead.as_millis().to_string()))
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let mut table = Table::new(&["connections", "keys", "per second", "p99 ms", "rate", "target"]);
    for connections in CASES {
        say(&format!("{connections} connections"))?;
        let (young, expired): (Vec<_>, Vec<_>) = take_turns(connections).await?.into_iter().unzip();
        let ratio = median(expired.iter().zip(&young).map(|(expired, young)| expired.rate() / young.rate()));
        table.row(row(connections, "young", &young, [String::new(), String::new()]));
        table.row(row(connections, "expired", &expired, [format!("{ratio:.2}"), "rate >= 0.90".to_owned()]));
    }
    Ok(table.print()?)
}

fn row(connections: usize, keys: &str, turns: &[Samples], [ratio, target]: [String; 2]) -> [String; 6] {
    let rate = median(turns.iter().map(Samples::rate));
    let p99 = median(turns.iter().map(|samples| samples.percentile(0.99)));
    [connections.to_string(), keys.to_owned(), format!("{rate:.0}"), format!("{p99:.2}"), ratio, target]
}

/// The turns of both servers, pair by pair: with young keys, then with expired ones.
async fn take_turns(connections: usize) -> io::Result<Vec<(Samples, Samples)>> {
    let folder = settings::folder()?;
    let (young, old) = (folder.path().join("young"), folder.path().join("old"));
    let turns = settings::rounds()?;
    let duration = settings::duration(3.0)?;
    let mut forms = Vec::new();
    for data in [&young, &old] {
        let server = start(data, Duration::ZERO)?;
        let form = published_form(server.address(), &operator_key(data)?).await?;
        let trial = keyed(&form, connections, "trial").run(Until::Elapsed(WARM_UP)).await?;
        let seconds = turns as f64 * (duration + WARM_UP).as_secs_f64();
        let count = (trial.rate() * seconds * SPARE) as u64;
        keyed(&form, 256, "first").run(Until::Sent { count, over: Duration::ZERO }).await?;
        server.stop()?;
        forms.push(form);
    }
    let servers = [start(&young, Duration::ZERO)?, start(&old, LATER)?];
    let mut measured = Vec::new();
    for turn in 0..turns {
        let mut pair = Vec::new();
        for (server, form) in servers.iter().zip(&forms) {
            rustix::fs::sync();
            let form = Form { address: server.address(), ..form.clone() };
            keyed(&form, connections, &format!("warm-{turn}")).run(Until::Elapsed(WARM_UP)).await?;
            pair.push(
                keyed(&form, connections, &format!("turn-{turn}")).run(Until::Elapsed(duration)).await?,
            );
        }
        measured.extend(pair.pop().zip(pair.pop()).map(|(expired, young)| (young, expired)));
    }
    Ok(measured)
}

/// Submissions of which each has a key of its own, that begins with `name`.
fn keyed(form: &Form, connections: usize, name: &str) -> Load {
    let mut load = form.submissions(connections);
    let header = format!("\r\nIdempotency-Key: {name}-{NUMBER}");
    let end = load.request.windows(2).position(|pair| pair == b"\r\n").unwrap_or(0);
    load.request.splice(end..end, header.into_bytes());
    load
}
