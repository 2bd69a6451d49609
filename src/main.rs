//! The `forms` executable.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A submission is allocated by one thread and freed by another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    forms::cli::run(std::env::args_os().collect())
}
