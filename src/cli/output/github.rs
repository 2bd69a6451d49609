//! Problems as GitHub workflow commands, which GitHub shows beside the lines.
//!
//! <https://docs.github.com/actions/reference/workflow-commands-for-github-actions#setting-an-error-message>

use crate::cli::output::diagnostics::Diagnostic;
use crate::cli::output::exit::CliError;
use crate::cli::output::render_error;

/// Returns a command for each problem in `error`.
pub fn commands(error: &CliError) -> String {
    match error {
        CliError::Rejected(report) => report.diagnostics.iter().map(command).collect(),
        other => command(&render_error::to_diagnostic(other)),
    }
}

fn command(diagnostic: &Diagnostic) -> String {
    let mut properties = Vec::new();
    if let Some(location) = &diagnostic.location {
        let (line, column) = location.line_and_column();
        properties.push(format!("file={}", property(&location.file)));
        properties.push(format!("line={line},col={column}"));
    }
    let code = diagnostic.code.as_deref().or(diagnostic.local_code);
    properties.extend(code.map(|code| format!("title={}", property(code))));
    let help = diagnostic.hint().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    format!("::error {}::{}\n", properties.join(","), data(&format!("{}{help}", diagnostic.message)))
}

/// Escapes `text` as the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes `text` as the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
