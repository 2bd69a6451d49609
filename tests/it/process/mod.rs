//! The real executable as a process: killed, stopped, locked out, watched while it writes, and out of room.
//!
//! Starting a server and speaking to it are shared with the benchmarks.

#[path = "../../../benches/common/mod.rs"]
mod common;
mod crowd; // more connections than there is room for
mod exact; // seats, slugs and counts
mod flips; // a bit that is another
mod full; // a disk without room
mod kill; // kill -9, again and again
mod order; // no answer before its sync
mod stop; // an orderly end, and a second process
mod witness; // what was acknowledged, and what is there

use std::path::Path;
use std::process::Command;

use self::common::server::{forms_serve, log_of};

/// `forms serve` on `data` run by another command: `outer` takes program and arguments at its end.
fn serve_by(outer: &[&str], data: &Path, more: &[&str]) -> Command {
    let command = forms_serve(data).unwrap();
    let mut whole = Command::new(outer[0]);
    whole.args(&outer[1..]).arg(command.get_program()).args(command.get_args()).args(more);
    whole.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    whole.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    whole.stderr(log_of(data).unwrap());
    whole
}

/// Whether `strace` can be had; where not, what a test leaves out is said on stderr.
fn has_strace(without: &str) -> bool {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        common::table::say(&format!("strace is missing or may not trace: {without} is left out")).unwrap();
    }
    works
}

/// Runs `work` on a runtime of its own.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
