//! The executable as a process: killed, stopped, refused a locked store, traced while it writes, and out of disk space.
//!
//! The code that starts a server and calls it is shared with the benchmarks.

mod backup; // backups under load
#[path = "../../../benches/common/mod.rs"]
mod common;
mod concurrent_clients; // response limit and counts
mod connection_limits; // too few file descriptors
mod damage; // a flipped bit, a cut or a missing part of any file
mod deliveries; // deliveries when the server is killed or stopped, and what its log has of them
mod erasure; // what was erased leaves a running server
mod full_disk; // a disk without free space
mod kill; // kill -9, repeatedly
mod postgres; // the executable on a database
mod recorder; // a client that records what was acknowledged
mod salvage; // what verification and salvage report of damaged journals
mod shutdown; // graceful shutdown, and a second process
mod sync_order; // no response before its sync
mod tls; // other TLS clients, and reloading the certificate

use std::path::Path;
use std::process::Command;

use self::common::server::{Server, forms_serve, log_of};

/// The command that runs `forms serve` on `data` through `outer`, which takes a program and its arguments at its end.
fn serve_by(outer: &[&str], data: &Path, more: &[&str]) -> Command {
    let command = forms_serve(data).unwrap();
    let mut wrapped = Command::new(outer[0]);
    wrapped.args(&outer[1..]).arg(command.get_program()).args(command.get_args()).args(more);
    wrapped.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped.stderr(log_of(data).unwrap());
    wrapped
}

/// Whether `strace` works here; if not, reports on stderr that `skipped` is not tested.
fn has_strace(skipped: &str) -> bool {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        common::table::report_progress(&format!("strace is missing or may not trace: {skipped} is skipped"))
            .unwrap();
    }
    works
}

/// Runs `work` with the path of a new data directory, on a new runtime.
fn with_data<T>(work: impl AsyncFnOnce(&Path) -> T) -> T {
    let folder = common::settings::folder().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(&folder.path().join("store")))
}

/// Starts a server on `data`.
fn start(data: &Path) -> Server {
    Server::start(&mut forms_serve(data).unwrap()).unwrap()
}

/// `forms` with a home folder of its own beside `data`.
fn forms(data: &Path) -> Command {
    let home = data.with_extension("home");
    std::fs::create_dir_all(&home).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_forms"));
    command.env_clear().env("HOME", &home).env("XDG_RUNTIME_DIR", &home).env("XDG_STATE_HOME", &home);
    command
}

/// `forms` on `server`, which serves `data`; it is not tried again if the server ends.
fn forms_on(server: &Server, data: &Path) -> Command {
    let mut command = forms(data);
    command.args(["--url", &format!("http://{}", server.endpoint().address), "--retries", "0"]);
    command.arg("--key-file").arg(data.join("operator-key"));
    command
}
