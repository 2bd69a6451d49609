//! The end of the process when the store can promise nothing any more.

/// Exit code of a process whose store has failed.
pub const EXIT_CODE: i32 = 70;

/// Says why and ends the process at once: nobody is answered, nothing is cleaned up, the next start repairs.
#[expect(clippy::print_stderr, reason = "the last words must not wait for a logger")]
#[expect(
    clippy::disallowed_methods,
    reason = "nothing may run after a failed sync, destructors least of all"
)]
pub fn end_process(why: &str) {
    eprintln!("forms: the store has failed: {why}; what was acknowledged is safe, start again");
    std::process::exit(EXIT_CODE);
}
