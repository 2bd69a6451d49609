//! How long to measure, how much to store, and where: the defaults, and the environment variables that change them.

use std::io;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use tempfile::TempDir;

/// Submissions in a large store: `FORMS_BENCH_STORED`, a million.
pub(crate) fn stored() -> io::Result<u64> {
    setting("FORMS_BENCH_STORED", 1_000_000)
}

/// How often the sides of a comparison take turns: `FORMS_BENCH_ROUNDS`.
pub(crate) fn rounds() -> io::Result<usize> {
    setting("FORMS_BENCH_ROUNDS", 5)
}

/// How long a measurement takes: `FORMS_BENCH_SECONDS`, else `default` seconds.
pub(crate) fn duration(default: f64) -> io::Result<Duration> {
    setting("FORMS_BENCH_SECONDS", default).map(Duration::from_secs_f64)
}

/// A folder below `target`, removed with the value: on a disk, where the system's own folder for temporary files may
/// be memory, whose syncs cost nothing.
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
