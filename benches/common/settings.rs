//! Settings of the benchmarks: defaults, and the environment variables that change them.

use std::io;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use tempfile::TempDir;

/// Submissions in a large store: `FORMS_BENCH_STORED`, by default a million.
pub(crate) fn stored() -> io::Result<u64> {
    setting("FORMS_BENCH_STORED", 1_000_000)
}

/// Rounds of a comparison: `FORMS_BENCH_ROUNDS`, by default 5.
pub(crate) fn rounds() -> io::Result<usize> {
    setting("FORMS_BENCH_ROUNDS", 5)
}

/// Duration of a measurement: `FORMS_BENCH_SECONDS`, by default `default` seconds.
pub(crate) fn duration(default: f64) -> io::Result<Duration> {
    setting("FORMS_BENCH_SECONDS", default).map(Duration::from_secs_f64)
}

/// Creates a temporary folder below `target`, removed with the value. The system's temporary folder may be in memory,
/// where syncs cost nothing.
pub(crate) fn folder() -> io::Result<TempDir> {
    tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

fn setting<T: FromStr>(name: &str, default: T) -> io::Result<T> {
    match std::env::var(name) {
        Ok(text) => {
            text.parse().map_err(|_error| io::Error::other(format!("{name} expects a number, got `{text}`")))
        }
        Err(_) => Ok(default),
    }
}
