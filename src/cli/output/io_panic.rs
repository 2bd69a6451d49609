//! I/O errors that a crate reports by panicking.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether this thread is in [`catch_io_panic`].
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call`. If it panics because of an error of the operating system, returns that error and prints nothing; other
/// panics go on. What `call` changes must not be used after an error.
pub fn catch_io_panic<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CATCHING.get() || os_error(info.payload()).is_none() {
                previous(info);
            }
        }));
    });
    IS_CATCHING.set(true);
    let ended = panic::catch_unwind(AssertUnwindSafe(call));
    IS_CATCHING.set(false);
    ended.unwrap_or_else(|payload| match os_error(&*payload) {
        Some(error) => Err(error),
        None => panic::resume_unwind(payload),
    })
}

/// Returns the error in the message of `Result::expect`: `… Os { code: 28, kind: StorageFull, … }`.
fn os_error(payload: &dyn Any) -> Option<io::Error> {
    let (_, error) = payload.downcast_ref::<String>()?.split_once("Os { code: ")?;
    let (code, _) = error.split_once(',')?;
    code.parse().ok().map(io::Error::from_raw_os_error)
}
