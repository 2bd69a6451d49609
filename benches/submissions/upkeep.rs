//! What backups and compactions cost submissions, and the disk space before and after a compaction.
//!
//! `cargo bench --bench submissions -- upkeep`; `FORMS_BENCH_ROUNDS`, `FORMS_BENCH_SECONDS` and `FORMS_BENCH_STORED` set the
//! duration and the number of submissions stored before. 5,000 submissions a second are sent over 64 connections, in turns:
//! alone, while the command makes one backup after the other, and while it compacts again and again.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::fill::{Form, published_form, submission};
use crate::common::load::Until;
use crate::common::samples::{Samples, median};
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};

const PER_SECOND: u64 = 5_000;
const CONNECTIONS: usize = 64;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let form = published_form(server.endpoint(), &operator_key(&data)?).await?;
    let stored = settings::stored()?.min(1_000_000);
    report_progress(&format!("storing {stored} submissions"))?;
    form.fill(stored).await?;

    let archive = folder.path().join("forms.tar").display().to_string();
    let works: [(&str, Vec<&str>); 3] = [
        ("nothing", Vec::new()),
        ("backups", vec!["store", "backup", "--to", &archive]),
        ("compactions", vec!["store", "compact"]),
    ];
    let mut turns: [Vec<(Samples, usize)>; 3] = Default::default();
    for round in 0..settings::rounds()? {
        report_progress(&format!("round {}", round + 1))?;
        for ((_, arguments), turns) in works.iter().zip(&mut turns) {
            turns.push(turn(&server, &form, &data, arguments).await?);
        }
    }
    let mut table = Table::new(&["meanwhile", "times", "p50 ms", "p99 ms", "p99 ratio", "target"]);
    for (place, (name, _)) in works.iter().enumerate() {
        let of = |share: f64| median(turns[place].iter().map(|(samples, _)| samples.percentile(share)));
        let times: usize = turns[place].iter().map(|(_, times)| times).sum();
        let alone = turns[0].iter().zip(&turns[place]);
        let ratio =
            median(alone.map(|((alone, _), (samples, _))| samples.percentile(0.99) / alone.percentile(0.99)));
        let target = if place == 1 { "<= 2.00" } else { "" };
        let figures = [of(0.5), of(0.99), ratio].map(|figure| format!("{figure:.2}"));
        let [p50, p99, ratio] = figures;
        table.row([(*name).to_owned(), times.to_string(), p50, p99, ratio, target.to_owned()]);
    }
    table.print()?;
    run_forms(&server, &data, &["store", "compact"])?;
    let count = form.count().await?;
    server.stop()?;
    disk_space(&data, count)
}

/// Sends the paced load while a command runs again and again; returns how often it was completed.
async fn turn(server: &Server, form: &Form, data: &Path, arguments: &[&str]) -> io::Result<(Samples, usize)> {
    rustix::fs::sync();
    let over = settings::duration(5.0)?;
    let stop = Arc::new(AtomicBool::new(arguments.is_empty()));
    let working = {
        let (stop, mut command) = (Arc::clone(&stop), forms_command(server, data, arguments)?);
        thread::spawn(move || {
            let mut times = 0;
            while !stop.load(Ordering::Relaxed) && command.status().is_ok_and(|status| status.success()) {
                times += 1;
            }
            times
        })
    };
    let count = (PER_SECOND as f64 * over.as_secs_f64()) as u64;
    let samples = form.submissions(CONNECTIONS).run(Until::Sent { count, over }).await;
    stop.store(true, Ordering::Relaxed);
    let times = working.join().map_err(|_panic| io::Error::other("the command panicked"))?;
    Ok((samples?, times))
}

fn forms_command(server: &Server, data: &Path, arguments: &[&str]) -> io::Result<Command> {
    let serve = forms_serve(data)?;
    let mut command = Command::new(serve.get_program());
    command.env_clear().envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args([
        "--url",
        &format!("http://{}", server.endpoint().address),
        "--timeout",
        "5m",
        "--key-file",
    ]);
    command.arg(data.join("operator-key")).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

fn run_forms(server: &Server, data: &Path, arguments: &[&str]) -> io::Result<()> {
    let status = forms_command(server, data, arguments)?.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{arguments:?}: {status}"))) }
}

/// Prints the bytes on the disk for each submission.
fn disk_space(data: &Path, submissions: u64) -> io::Result<()> {
    let size = |folder: &str| -> io::Result<u64> {
        let entries: Vec<PathBuf> = std::fs::read_dir(data.join(folder))?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        entries.iter().map(|path| Ok(std::fs::metadata(path)?.len())).sum()
    };
    let body = submission().len() as f64;
    let mut table = Table::new(&["bytes a submission", "bytes", "of the body", "target"]);
    let (journal, index) = (size("journal")? as f64, size("index")? as f64);
    for (name, bytes, target) in [
        ("body", body, ""),
        ("journal", journal / submissions as f64, ""),
        ("index", index / submissions as f64, ""),
    ] {
        table.row([name.into(), format!("{bytes:.0}"), format!("{:.2}", bytes / body), target.into()]);
    }
    let all = (journal + index) / submissions as f64;
    table.row(["all".into(), format!("{all:.0}"), format!("{:.2}", all / body), "<= 1.80".into()]);
    table.print()
}
