//! Time from start until ready with a large store: after a clean stop, after a kill under load, without an index.
//!
//! `cargo bench --bench store -- starts`; `FORMS_BENCH_STORED` sets the number of submissions. A server is ready when
//! `/readyz` returns 200.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::fill::{Form, published_form};
use crate::common::load::Until;
use crate::common::samples::median;
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::{Connection, request};

/// How long a server stores submissions before it is killed: longer than the flush interval of the index.
const BEFORE_KILL: Duration = Duration::from_secs(3);

/// Connections that the kill interrupts.
const CONNECTIONS: usize = 64;

/// Interval of requests to `/readyz`.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let form = published_form(server.endpoint(), &operator_key(&data)?).await?;
    let stored = settings::stored()?;
    report_progress(&format!("storing {stored}"))?;
    form.fill(stored).await?;
    server.stop()?;

    let (mut clean, mut killed, mut rebuilt) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings::rounds()? {
        let (server, seconds) = start(&data).await?;
        clean.push(seconds);
        kill_under_load(server, &form).await?;
        let (server, seconds) = start(&data).await?;
        killed.push(seconds);
        server.stop()?;
    }
    for _ in 0..settings::rounds()?.div_ceil(2) {
        std::fs::remove_dir_all(data.join("index"))?;
        let (server, seconds) = start(&data).await?;
        rebuilt.push(seconds);
        server.stop()?;
    }

    let mut table = Table::new(&["start", "median s", "longest s", "target s"]);
    for (name, seconds, target) in [
        ("after a clean stop", clean, "<= 0.5"),
        ("after kill -9", killed, "<= 2"),
        ("without an index", rebuilt, "<= 20"),
    ] {
        let longest = seconds.iter().copied().fold(0.0, f64::max);
        table.row([name.into(), format!("{:.3}", median(seconds)), format!("{longest:.3}"), target.into()]);
    }
    table.print()
}

/// Starts the server; returns it with the seconds until it was ready.
async fn start(data: &Path) -> io::Result<(Server, f64)> {
    let begin = Instant::now();
    let server = Server::start(&mut forms_serve(data)?)?;
    let mut connection = Connection::open(server.endpoint()).await?;
    let readyz = request("GET", "/readyz", "", "");
    while connection.exchange(&readyz).await?.status != 200 {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok((server, begin.elapsed().as_secs_f64()))
}

async fn kill_under_load(server: Server, form: &Form) -> io::Result<()> {
    let form = Form { endpoint: server.endpoint(), ..form.clone() };
    let load = form.submissions(CONNECTIONS);
    let sending = tokio::spawn(async move { load.run(Until::Elapsed(BEFORE_KILL * 2)).await });
    tokio::time::sleep(BEFORE_KILL).await;
    server.kill()?;
    match sending.await? {
        Ok(_) => Err(io::Error::other("the load ended before the kill")),
        Err(_interrupted) => Ok(()),
    }
}
