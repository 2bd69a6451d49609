//! Termination of the process when the store can no longer guarantee durability.

/// Exit code of a process whose store has failed.
pub const EXIT_CODE: i32 = 70;

/// Prints the reason and exits at once: no request is answered, nothing is cleaned up, the next start repairs.
#[expect(clippy::print_stderr, reason = "the message must not wait for a logger")]
#[expect(
    clippy::disallowed_methods,
    reason = "nothing may run after a failed sync, destructors least of all"
)]
pub fn end_process(why: &str) {
    eprintln!("forms: the store has failed: {why}; acknowledged writes are safe; restart the server");
    std::process::exit(EXIT_CODE);
}
