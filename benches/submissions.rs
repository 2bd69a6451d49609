//! Durable submissions a second, beside the most that this machine and this HTTP stack could do.
//!
//! `cargo bench --bench submissions`; `FORMS_BENCH_ROUNDS` and `FORMS_BENCH_SECONDS` change how long it takes.
//! The real server and the limit server (see `limit`) take turns, so that what else the machine does hits both; a
//! ratio is the median of the ratios of neighbouring turns.

mod common;
mod limit;

use std::error::Error;
use std::io;
use std::time::Duration;

use self::common::fill::{Form, published_form};
use self::common::load::Until;
use self::common::samples::{Samples, median};
use self::common::server::{Server, forms_serve, operator_key};
use self::common::settings;
use self::common::table::{Table, say};

/// Connections at once, and what is to be reached with them.
const CASES: [(usize, &str); 4] = [(1, "p50 <= 1.50"), (16, ""), (64, "rate >= 0.75"), (256, "rate >= 0.75")];

/// How long both run before each turn that counts.
const WARM_UP: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    if limit::serve_if_asked()? {
        return Ok(());
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let mut table =
        Table::new(&["connections", "server", "per second", "p50 ms", "p99 ms", "rate", "p50", "target"]);
    for (connections, target) in CASES {
        say(&format!("{connections} connections"))?;
        let turns = take_turns(connections).await?;
        let ratio = |figure: &dyn Fn(&Samples) -> f64| {
            format!("{:.2}", median(turns.iter().map(|(ours, limit)| figure(ours) / figure(limit))))
        };
        let ours: Vec<_> = turns.iter().map(|(ours, _)| ours).collect();
        let limits: Vec<_> = turns.iter().map(|(_, limit)| limit).collect();
        let name = connections.to_string();
        let [rate, p50, p99] = figures(&limits);
        table.row([
            name.clone(),
            "limit".into(),
            rate,
            p50,
            p99,
            String::new(),
            String::new(),
            String::new(),
        ]);
        let [rate, p50, p99] = figures(&ours);
        let ratios = (ratio(&Samples::rate), ratio(&|samples| samples.percentile(0.5)));
        table.row([name, "forms".into(), rate, p50, p99, ratios.0, ratios.1, target.into()]);
    }
    table.print()
}

/// The turns of both servers, pair by pair: ours, then the limit's.
async fn take_turns(connections: usize) -> io::Result<Vec<(Samples, Samples)>> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let limit = Server::start(&mut limit::command(folder.path())?)?;
    let ours = Server::start(&mut forms_serve(&data)?)?;
    let form = published_form(ours.address(), &operator_key(&data)?).await?;
    let same_on_limit = Form { address: limit.address(), ..form.clone() };
    let mut turns = Vec::new();
    for _ in 0..settings::rounds()? {
        turns.push((turn(&form, connections).await?, turn(&same_on_limit, connections).await?));
    }
    ours.stop()?;
    Ok(turns)
}

/// One measurement. What earlier ones left to be written is written before, so that nobody pays for another.
async fn turn(form: &Form, connections: usize) -> io::Result<Samples> {
    rustix::fs::sync();
    let load = form.submissions(connections);
    load.run(Until::Elapsed(WARM_UP)).await?;
    load.run(Until::Elapsed(settings::duration(3.0)?)).await
}

/// Rate, p50 and p99: the median of the turns.
fn figures(turns: &[&Samples]) -> [String; 3] {
    let of = |figure: &dyn Fn(&Samples) -> f64| median(turns.iter().map(|samples| figure(samples)));
    [
        format!("{:.0}", of(&Samples::rate)),
        format!("{:.2}", of(&|samples| samples.percentile(0.5))),
        format!("{:.2}", of(&|samples| samples.percentile(0.99))),
    ]
}
