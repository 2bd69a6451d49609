//! Resident memory: of an idle server with an empty store, and after storing a million submissions.
//!
//! `cargo bench --bench store -- memory` stores without pause; `FORMS_BENCH_SECONDS=3600` with it
//! spreads the same load over an hour. Meanwhile one connection reads the newest page repeatedly.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::common::fill::published_form;
use crate::common::load::{Load, Until};
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};

/// Connections that store.
const STORING: usize = 64;

/// Pages read while storing.
const PAGES: u64 = 2_000;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> io::Result<()> {
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let idle = Memory::of(&server)?;
    let form = published_form(server.endpoint(), &operator_key(&data)?).await?;

    let (stored, over) = (settings::stored()?, settings::duration(0.0)?);
    report_progress(&format!("storing {stored}"))?;
    let page = Load { connections: 1, request: form.get("/submissions"), status: 200, ..form.submissions(1) };
    let reading = tokio::spawn(async move { page.run(Until::Sent { count: PAGES, over }).await });
    let begin = std::time::Instant::now();
    form.submissions(STORING).run(Until::Sent { count: stored, over }).await?;
    reading.await??;
    let elapsed = Duration::from_secs(begin.elapsed().as_secs());
    let loaded = Memory::of(&server)?;
    server.stop()?;

    let mut table = Table::new(&["resident memory", "MiB", "highest MiB", "target MiB"]);
    let mut row = |name: String, memory: Memory, target: &str| {
        table.row([name, memory.resident.to_string(), memory.highest.to_string(), target.into()]);
    };
    row("idle, empty store".into(), idle, "<= 40");
    row(format!("{stored} stored in {elapsed:?}"), loaded, "<= 300");
    table.print()
}

/// Resident memory of a process in MiB: current and maximum.
struct Memory {
    resident: u64,
    highest: u64,
}

impl Memory {
    fn of(server: &Server) -> io::Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
        let figure = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            kib.map(|kib| kib.div_ceil(1024))
                .ok_or_else(|| io::Error::other(format!("no {name} in {status}")))
        };
        Ok(Self { resident: figure("VmRSS")?, highest: figure("VmHWM")? })
    }
}
