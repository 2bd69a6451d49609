//! Durable submissions per second, compared to the maximum of this machine and this HTTP stack.
//!
//! `cargo bench --bench submissions -- rate`; `FORMS_BENCH_ROUNDS` and `FORMS_BENCH_SECONDS` set the duration. The
//! real server and the limit server (see `limit`) are measured in turns, so that other load on the machine affects both;
//! a ratio is the median of the ratios of neighbouring turns.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::common::fill::{Form, published_form};
use crate::common::load::Until;
use crate::common::samples::{Samples, median};
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};

/// Numbers of concurrent connections, with the targets.
const CASES: [(usize, &str); 4] = [(1, "p50 <= 1.50"), (16, ""), (64, "rate >= 0.75"), (256, "rate >= 0.75")];

/// Warm-up before each measured turn.
const WARM_UP: Duration = Duration::from_millis(500);

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let mut table = Table::new(&[
        "connections",
        "server",
        "per second",
        "p50 ms",
        "p99 ms",
        "cpu us each",
        "rate",
        "p50",
        "target",
    ]);
    for (connections, target) in CASES {
        report_progress(&format!("{connections} connections"))?;
        let (ours, limit): (Vec<_>, Vec<_>) = measure_turns(connections).await?.into_iter().unzip();
        let ratio = |figure: &dyn Fn(&Turn) -> f64| {
            format!(
                "{:.2}",
                median(ours.iter().zip(&limit).map(|(ours, limit)| figure(ours) / figure(limit)))
            )
        };
        let ratios = [ratio(&|turn| turn.samples.rate()), ratio(&|turn| turn.samples.percentile(0.5))];
        let none = [String::new(), String::new()];
        table.row(row(connections, "limit", &limit, none, ""));
        table.row(row(connections, "forms", &ours, ratios, target));
    }
    table.print()
}

/// One measurement, with the server's CPU time per submission in microseconds.
struct Turn {
    samples: Samples,
    cpu_micros: f64,
}

/// Measures both servers in turns; each pair is the real server's, then the limit server's.
async fn measure_turns(connections: usize) -> io::Result<Vec<(Turn, Turn)>> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let limit = Server::start(&mut super::limit::command(folder.path())?)?;
    let ours = Server::start(&mut forms_serve(&data)?)?;
    let form = published_form(ours.endpoint(), &operator_key(&data)?).await?;
    let same_on_limit = Form { endpoint: limit.endpoint(), ..form.clone() };
    let mut turns = Vec::new();
    for _ in 0..settings::rounds()? {
        turns
            .push((turn(&ours, &form, connections).await?, turn(&limit, &same_on_limit, connections).await?));
    }
    ours.stop()?;
    Ok(turns)
}

/// Measures once. Pending writes of earlier turns are synced before, so that they do not affect this turn.
async fn turn(server: &Server, form: &Form, connections: usize) -> io::Result<Turn> {
    rustix::fs::sync();
    let load = form.submissions(connections);
    load.run(Until::Elapsed(WARM_UP)).await?;
    let before = server.cpu_seconds()?;
    let samples = load.run(Until::Elapsed(settings::duration(3.0)?)).await?;
    let cpu_micros = (server.cpu_seconds()? - before) * 1e6 / samples.count() as f64;
    Ok(Turn { samples, cpu_micros })
}

/// A row with the medians of a server's turns.
fn row(connections: usize, server: &str, turns: &[Turn], ratios: [String; 2], target: &str) -> [String; 9] {
    let of = |figure: &dyn Fn(&Turn) -> f64| median(turns.iter().map(figure));
    let [rate, p50] = ratios;
    [
        connections.to_string(),
        server.to_owned(),
        format!("{:.0}", of(&|turn| turn.samples.rate())),
        format!("{:.2}", of(&|turn| turn.samples.percentile(0.5))),
        format!("{:.2}", of(&|turn| turn.samples.percentile(0.99))),
        format!("{:.0}", of(&|turn| turn.cpu_micros)),
        rate,
        p50,
        target.to_owned(),
    ]
}
