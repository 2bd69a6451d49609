//! `--color`, and when a stream gets colours.

use crate::cli::environment::Environment;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Colour {
    /// If stdout is a terminal that supports them
    #[default]
    Auto,
    Always,
    Never,
}

/// Whether a stream gets colours: the flag, then `NO_COLOR`, then `FORCE_COLOR` and `CLICOLOR_FORCE`, then whether it is a
/// terminal that supports them.
pub(super) fn uses_colour(flag: Colour, environment: &Environment, is_terminal: bool) -> bool {
    let is_set = |name| environment.get(name).is_some();
    let is_on = |name| environment.get(name).is_some_and(|value| value != "0");
    match flag {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto if is_set("NO_COLOR") => false,
        Colour::Auto if is_on("FORCE_COLOR") || is_on("CLICOLOR_FORCE") => true,
        Colour::Auto => is_terminal && environment.get("TERM") != Some("dumb"),
    }
}
