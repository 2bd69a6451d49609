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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::command;
    use crate::cli::output::diagnostics::{Diagnostic, Location};

    #[test]
    fn nothing_in_a_problem_can_end_its_command() {
        let location = Location {
            file: "a,b:c%.yaml".to_owned(),
            source: Arc::from("x\n é: 1\n"),
            place: 5..6,
            label: None,
            earlier: None,
        };
        let diagnostic =
            Diagnostic::new("unknown_field", "100%\r\n::error::x").help(Some("one\ntwo".to_owned()));
        assert_eq!(
            command(&Diagnostic { location: Some(location), ..diagnostic }),
            "::error file=a%2Cb%3Ac%25.yaml,line=2,col=3,title=unknown_field::100%25%0D%0A::error::x%0Ahelp: one two\n"
        );
        assert_eq!(command(&Diagnostic::plain("cannot read x")), "::error ::cannot read x\n");
    }
}
