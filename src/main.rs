//! The `forms` executable.

use std::process::ExitCode;

fn main() -> ExitCode {
    forms::cli::run(std::env::args_os().collect())
}
