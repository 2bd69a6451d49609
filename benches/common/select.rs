//! The measurements of a program, all or by name.

use std::error::Error;

/// A measurement and its name.
type Measurement = (&'static str, fn() -> Result<(), Box<dyn Error>>);

/// Runs the measurements whose names are arguments of this process; without a name, all.
///
/// # Errors
/// If an argument is not a name, or a measurement fails.
pub(crate) fn run(measurements: &[Measurement]) -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`.
    let names: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let Some(unknown) = names.iter().find(|name| measurements.iter().all(|(known, _)| known != name)) {
        let known: Vec<_> = measurements.iter().map(|(name, _)| *name).collect();
        return Err(format!("unknown measurement `{unknown}`; expected one of: {}", known.join(", ")).into());
    }
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|chosen| chosen == name);
    measurements.iter().filter(|(name, _)| is_chosen(name)).try_for_each(|(_, measure)| measure())
}
