//! Submissions per second in batches of 1,000 over one connection, compared to single ones over 64 connections.
//!
//! `cargo bench --bench submissions -- batches`; `FORMS_BENCH_ROUNDS` and `FORMS_BENCH_SECONDS` set the duration. Both are sent
//! to one server in turns; the ratio is the median of those of neighbouring turns.

use std::error::Error;
use std::io;

use crate::common::fill::{published_form, submission};
use crate::common::load::{Load, Until};
use crate::common::samples::median;
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::request;

const ROWS: usize = 1_000;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let form = published_form(server.endpoint(), &operator_key(&data)?).await?;
    let body = format!("{{\"submissions\":[{}]}}", vec![submission(); ROWS].join(","));
    let batch = request("POST", &format!("{}/submissions:batch", form.path()), &form.key, &body);
    let batches = Load { endpoint: form.endpoint, connections: 1, request: batch, status: 200 };
    let until = || Ok::<_, io::Error>(Until::Elapsed(settings::duration(3.0)?));
    let (mut single_rates, mut batch_rates) = (Vec::new(), Vec::new());
    for round in 0..settings::rounds()? {
        report_progress(&format!("round {}", round + 1))?;
        rustix::fs::sync();
        single_rates.push(form.submissions(64).run(until()?).await?.rate());
        rustix::fs::sync();
        batch_rates.push(batches.run(until()?).await?.rate() * ROWS as f64);
    }
    server.stop()?;
    let ratio = median(batch_rates.iter().zip(&single_rates).map(|(batch, single)| batch / single));
    let mut table = Table::new(&["sent", "per second", "ratio", "target"]);
    let rate = |rates: Vec<f64>| format!("{:.0}", median(rates));
    table.row(["singly, 64 connections".to_owned(), rate(single_rates), String::new(), String::new()]);
    table.row([
        "batches, 1 connection".to_owned(),
        rate(batch_rates),
        format!("{ratio:.2}"),
        ">= 0.50".to_owned(),
    ]);
    table.print()
}
