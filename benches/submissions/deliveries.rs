//! Deliveries: what they cost submissions, how many are made per second, whether dead receivers delay a healthy one, how far
//! behind a CSV file is, and what a million waiting ones cost a start.
//!
//! `cargo bench --bench submissions -- deliveries`; `FORMS_BENCH_ROUNDS`, `FORMS_BENCH_SECONDS` and `FORMS_BENCH_STORED` set
//! the extent.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::fill::{Form, expect, published_form};
use crate::common::load::Until;
use crate::common::receiver::Receiver;
use crate::common::samples::{Samples, median};
use crate::common::server::{Server, forms_serve, highest_memory, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::{Connection, request};

/// Numbers of concurrent connections that submit.
const CONNECTIONS: [usize; 3] = [1, 64, 256];

/// Deliveries made to measure their rate.
const DELIVERED: u64 = 20_000;

/// Numbers of receivers that never answer.
const DEAD: [u64; 2] = [1, 200];

/// Deliveries that wait for all receivers that never answer.
const WAITING: u64 = 10_000;

/// Rows of the CSV file.
const CSV_ROWS: u64 = 100_000;

/// Submissions per second on the form with the healthy receiver beside it.
const HEALTHY_RATE: u64 = 50;

/// Time after the start with very many waiting deliveries at which memory is read.
const SETTLED: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How often the CSV file is looked at.
const POLL_FILE: Duration = Duration::from_millis(100);

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let mut table = Table::new(&["measurement", "figure", "target"]);
    for connections in CONNECTIONS {
        report_progress(&format!("submissions over {connections} connections"))?;
        let (with_one, with_three) = cost_of_deliveries(connections).await?;
        let name = format!("rate with a webhook / without, {connections} connections");
        table.row([name, format!("{with_one:.2}"), ">= 0.75".to_owned()]);
        let name = format!("rate with three webhooks / without, {connections} connections");
        table.row([name, format!("{with_three:.2}"), String::new()]);
    }
    report_progress("deliveries per second")?;
    let rate = delivery_rate().await?;
    table.row(["deliveries per second".to_owned(), format!("{rate:.0}"), ">= 1000".to_owned()]);
    for dead in DEAD {
        report_progress(&format!("{dead} receivers that never answer"))?;
        let delays = delays_beside_black_holes(dead).await?;
        let p99 = format!("{:.0} ms", delays.percentile(0.99));
        table.row([format!("p99 delay beside {dead} dead receivers"), p99, "< 2000 ms".to_owned()]);
    }
    report_progress("a CSV file")?;
    let (behind, share) = csv_file().await?;
    table.row(["CSV file at most behind".to_owned(), format!("{behind:.1} s"), "<= 15 s".to_owned()]);
    table.row(["its share of a core".to_owned(), format!("{:.0} %", share * 100.0), "< 20 %".to_owned()]);
    report_progress("a start with very many waiting deliveries")?;
    let (seconds, memory) = start_with_backlog().await?;
    let stored = settings::stored()?;
    let name = format!("start with {stored} waiting");
    table.row([name, format!("{seconds:.2} s"), "<= 5 s".to_owned()]);
    table.row(["its memory after 10 s".to_owned(), format!("{memory} MiB"), "< 200 MB".to_owned()]);
    table.print()
}

/// The median ratios of the rates of submissions with one and with three webhooks to that without, while nothing is delivered.
async fn cost_of_deliveries(connections: usize) -> io::Result<(f64, f64)> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = start(&data, true)?;
    let receiver = Receiver::healthy().await?;
    let plain = published_form(server.endpoint(), &operator_key(&data)?).await?;
    let hooked = with_webhooks(&server, &data, &[receiver.address]).await?;
    let hooked_thrice = with_webhooks(&server, &data, &[receiver.address; 3]).await?;
    let (mut with_one, mut with_three) = (Vec::new(), Vec::new());
    for _ in 0..settings::rounds()? {
        let without = rate(&plain, connections).await?;
        with_one.push(rate(&hooked, connections).await? / without);
        with_three.push(rate(&hooked_thrice, connections).await? / without);
    }
    server.stop()?;
    Ok((median(with_one), median(with_three)))
}

async fn rate(form: &Form, connections: usize) -> io::Result<f64> {
    rustix::fs::sync();
    let samples = form.submissions(connections).run(Until::Elapsed(settings::duration(2.0)?)).await?;
    Ok(samples.rate())
}

/// Deliveries per second to a receiver that answers at once, from a backlog.
async fn delivery_rate() -> io::Result<f64> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let receiver = Receiver::healthy().await?;
    fill(&data, receiver.address, DELIVERED).await?;
    let server = start(&data, false)?;
    let begin = Instant::now();
    while receiver.count() < DELIVERED as usize {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    server.stop()?;
    Ok(DELIVERED as f64 / seconds)
}

/// Delays from the answer to a submission until the healthy receiver has it, beside so many receivers that never answer.
async fn delays_beside_black_holes(count: u64) -> io::Result<Samples> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let (mut dead, healthy) = (Vec::new(), Receiver::healthy().await?);
    for _ in 0..count {
        dead.push(Receiver::black_hole().await?);
        fill(&data, dead[dead.len() - 1].address, WAITING / count).await?;
    }
    let server = start(&data, false)?;
    let form = with_webhooks(&server, &data, &[healthy.address]).await?;
    let load = form.submissions(1);
    let count = HEALTHY_RATE * settings::duration(20.0)?.as_secs();
    let mut connection = Connection::open(form.endpoint).await?;
    let mut submitted = HashMap::new();
    let begin = Instant::now();
    for number in 0..count {
        tokio::time::sleep_until((begin + Duration::from_secs(number) / HEALTHY_RATE as u32).into()).await;
        expect(&mut connection, &load.numbered(number), 201).await?;
        submitted.insert(number, Instant::now());
    }
    while healthy.count() < count as usize {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let elapsed = begin.elapsed();
    let received = healthy.received();
    let delays = received.iter().map(|(number, at)| at.saturating_duration_since(submitted[number]));
    let delays = Samples::new(delays.collect(), elapsed);
    server.stop()?;
    Ok(delays)
}

/// Seconds until a server with a large backlog is ready, and its memory in MiB some time later.
async fn start_with_backlog() -> io::Result<(f64, u64)> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let dead = Receiver::black_hole().await?;
    fill(&data, dead.address, settings::stored()?).await?;
    let begin = Instant::now();
    let server = start(&data, false)?;
    let mut connection = Connection::open(server.endpoint()).await?;
    let readyz = request("GET", "/readyz", "", "");
    while connection.exchange(&readyz).await?.status != 200 {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    tokio::time::sleep(SETTLED).await;
    let memory = highest_memory(&server)?;
    server.stop()?;
    Ok((seconds, memory))
}

/// Stores submissions of a form with a webhook, with nothing delivered.
async fn fill(data: &Path, receiver: SocketAddr, count: u64) -> io::Result<()> {
    let server = start(data, true)?;
    with_webhooks(&server, data, &[receiver]).await?.fill(count).await?;
    server.stop()?;
    Ok(())
}

fn start(data: &Path, is_paused: bool) -> io::Result<Server> {
    let mut command = forms_serve(data)?;
    command.args(["--allow-net", "127.0.0.0/8"]);
    if is_paused {
        command.arg("--pause-deliveries");
    }
    Server::start(&mut command)
}

/// Creates a published form with a webhook to each receiver.
async fn with_webhooks(server: &Server, data: &Path, receivers: &[SocketAddr]) -> io::Result<Form> {
    let form = published_form(server.endpoint(), &operator_key(data)?).await?;
    for receiver in receivers {
        integrate(&form, &format!(r#"{{"type":"webhook","url":"http://{receiver}/"}}"#)).await?;
    }
    Ok(form)
}

async fn integrate(form: &Form, integration: &str) -> io::Result<()> {
    let create = request("POST", &format!("{}/integrations", form.path()), &form.key, integration);
    expect(&mut Connection::open(form.endpoint).await?, &create, 201).await.map(drop)
}

/// Returns how many seconds a CSV file of many rows is behind at most, with a submission a second, and the share of a core that
/// this takes.
async fn csv_file() -> io::Result<(f64, f64)> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = start(&data, false)?;
    let form = published_form(server.endpoint(), &operator_key(&data)?).await?;
    form.fill(CSV_ROWS).await?;
    integrate(&form, r#"{"type":"csv_file","path":"rows.csv"}"#).await?;
    let id = form.path().rsplit('/').next().unwrap_or_default().to_owned();
    let file = data.join("exports").join(id).join("rows.csv");
    let (load, mut connection) = (form.submissions(1), Connection::open(form.endpoint).await?);
    let (begin, cpu) = (Instant::now(), server.cpu_seconds()?);
    let (mut submitted, mut shown, mut behind) = (Vec::new(), 0, 0_f64);
    let (count, mut rows) = (settings::duration(60.0)?.as_secs() as usize, 0);
    while shown < count {
        tokio::time::sleep(POLL_FILE).await;
        if submitted.len() < count && begin.elapsed().as_secs() as usize >= submitted.len() {
            expect(&mut connection, &load.numbered(CSV_ROWS + submitted.len() as u64), 201).await?;
            submitted.push(Instant::now());
        }
        let length = std::fs::metadata(&file).map_or(0, |file| file.len());
        if length != rows {
            rows = length;
            let lines = std::fs::read(&file)?.iter().filter(|byte| **byte == b'\n').count();
            let now_shown = lines.saturating_sub(1 + CSV_ROWS as usize);
            for at in submitted.iter().take(now_shown).skip(shown) {
                behind = behind.max(at.elapsed().as_secs_f64());
            }
            shown = now_shown.max(shown);
        }
    }
    let share = (server.cpu_seconds()? - cpu) / begin.elapsed().as_secs_f64();
    server.stop()?;
    Ok((behind, share))
}
