//! Submissions per second with idempotency keys while old keys expire: the clock is 25 h ahead of the first keys.
//! For comparison, the same server without expired keys.
//!
//! `cargo bench --bench submissions -- idempotency`; `FORMS_BENCH_ROUNDS` and `FORMS_BENCH_SECONDS` set the duration. The
//! servers are measured in turns, so that other load on the machine affects both; a ratio is the median of the ratios of
//! neighbouring turns.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use forms::app::App;
use forms::clock::{Clock, SystemClock, Timestamp};
use forms::config::HttpSettings;
use forms::cpu_pool::CpuPool;
use forms::delivery::{DeliveryService, DeliverySettings, HttpSender};
use forms::domain::integration::address::AddressPolicy;
use forms::domain::validation::limits::Limits;
use forms::http::router;
use forms::http::server::accept_loop::serve;
use forms::secret::{Secret, SystemRandomness};
use forms::server::open_local;
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::vault::{MASTER_KEY_BYTES, Vault};
use tokio::net::TcpListener;
use tokio::time::interval;

use crate::common::fill::{Form, published_form};
use crate::common::load::{Load, NUMBER, Until};
use crate::common::samples::{Samples, median};
use crate::common::server::{Server, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};

/// Numbers of concurrent connections.
const CASES: [usize; 3] = [16, 64, 900];

/// First argument of a server process; the second is its data directory, the third the offset of its clock.
const ROLE: &str = "server-at";

/// Time after which every key has expired.
const KEY_LIFETIME: Duration = Duration::from_secs(25 * 60 * 60);

/// Days in the trash, which is empty here.
const TRASH_DAYS: u32 = 30;

/// Warm-up before each measured turn.
const WARM_UP: Duration = Duration::from_millis(500);

/// Ratio of stored keys to those that the turns may remove, so that they suffice until the end.
const KEY_RESERVE: f64 = 1.5;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}

/// Serves until killed if this process was started as a server; otherwise returns false.
pub(crate) fn serve_if_requested() -> Result<bool, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    let Some(at) = arguments.iter().position(|argument| argument == ROLE) else { return Ok(false) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve_at(Path::new(&arguments[at + 1]), arguments[at + 2].parse()?))?;
    Ok(true)
}

/// The system clock with an offset in milliseconds.
struct AheadClock(i64);

impl Clock for AheadClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + self.0)
    }
}

/// Serves until killed.
async fn serve_at(data: &Path, ahead_millis: i64) -> Result<(), Box<dyn Error>> {
    // Creates the operator key if there is none.
    open_local(data).await?.close().await?;
    let (random, pool) = (Arc::new(SystemRandomness), CpuPool::default());
    let store =
        SledStore::open(data, EngineOptions::default(), pool.clone(), random.clone(), Arc::new(|_| ()))?;
    let clock = Arc::new(AheadClock(ahead_millis));
    let (store, sender) = (Arc::new(store), HttpSender::new(AddressPolicy::default(), clock.clone()));
    let vault = Vault::new(&Secret::new([0; MASTER_KEY_BYTES]));
    let deliveries = DeliveryService::new(
        store.clone(),
        vault,
        Arc::new(sender),
        clock.clone(),
        random.clone(),
        DeliverySettings::default(),
    );
    let deliveries = Arc::new(deliveries);
    let app = Arc::new(App::new(store, pool, clock, random, Limits::default(), deliveries));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "http://{}", listener.local_addr()?)?;
    let settings = HttpSettings::default();
    let api = router(Arc::clone(&app), settings.clone());
    tokio::select! {
        () = serve(&listener, api, &settings, None, std::future::pending()) => Ok(()),
        failed = run_maintenance(&app) => failed,
    }
}

/// Runs maintenance more often than a real server does, so that it happens in every turn.
async fn run_maintenance(app: &App) -> Result<(), Box<dyn Error>> {
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
        report_progress(&format!("{connections} connections"))?;
        let (young, expired): (Vec<_>, Vec<_>) = measure_turns(connections).await?.into_iter().unzip();
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

/// Measures both servers in turns; each pair is without and with expired keys.
async fn measure_turns(connections: usize) -> io::Result<Vec<(Samples, Samples)>> {
    let folder = settings::folder()?;
    let (young, old) = (folder.path().join("young"), folder.path().join("old"));
    let turns = settings::rounds()?;
    let duration = settings::duration(3.0)?;
    let mut forms = Vec::new();
    for data in [&young, &old] {
        let server = start(data, Duration::ZERO)?;
        let form = published_form(server.endpoint(), &operator_key(data)?).await?;
        let trial = submissions_with_keys(&form, connections, "trial").run(Until::Elapsed(WARM_UP)).await?;
        let seconds = turns as f64 * (duration + WARM_UP).as_secs_f64();
        let count = (trial.rate() * seconds * KEY_RESERVE) as u64;
        submissions_with_keys(&form, 256, "first").run(Until::Sent { count, over: Duration::ZERO }).await?;
        server.stop()?;
        forms.push(form);
    }
    let servers = [start(&young, Duration::ZERO)?, start(&old, KEY_LIFETIME)?];
    let mut measured = Vec::new();
    for turn in 0..turns {
        let mut pair = Vec::new();
        for (server, form) in servers.iter().zip(&forms) {
            rustix::fs::sync();
            let form = Form { endpoint: server.endpoint(), ..form.clone() };
            submissions_with_keys(&form, connections, &format!("warm-{turn}"))
                .run(Until::Elapsed(WARM_UP))
                .await?;
            pair.push(
                submissions_with_keys(&form, connections, &format!("turn-{turn}"))
                    .run(Until::Elapsed(duration))
                    .await?,
            );
        }
        measured.extend(pair.pop().zip(pair.pop()).map(|(expired, young)| (young, expired)));
    }
    Ok(measured)
}

/// Submissions with a different idempotency key each, which begins with `name`.
fn submissions_with_keys(form: &Form, connections: usize, name: &str) -> Load {
    let mut load = form.submissions(connections);
    let header = format!("\r\nIdempotency-Key: {name}-{NUMBER}");
    let end = load.request.windows(2).position(|pair| pair == b"\r\n").unwrap_or(0);
    load.request.splice(end..end, header.into_bytes());
    load
}
