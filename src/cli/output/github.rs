//! Problems as workflow commands of GitHub, which shows them beside the lines they are about.
//!
//! <https://docs.github.com/actions/reference/workflow-commands-for-github-actions#setting-an-error-message>

use crate::cli::output::diagnostics::Finding;
use crate::cli::output::exit::CliError;
use crate::cli::output::render_error;

/// A command for each problem that `error` is made of.
pub fn commands(error: &CliError) -> String {
    match error {
        CliError::Rejected(report) => report.findings.iter().map(command).collect(),
        other => command(&render_error::tell(other)),
    }
}

fn command(finding: &Finding) -> String {
    let mut properties = Vec::new();
    if let Some(mark) = &finding.mark {
        let (line, column) = mark.line_and_column();
        properties.push(format!("file={}", property(&mark.file)));
        properties.push(format!("line={line},col={column}"));
    }
    let code = finding.code.as_deref().or(finding.local_code);
    properties.extend(code.map(|code| format!("title={}", property(code))));
    let help = finding.hint().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    format!("::error {}::{}\n", properties.join(","), data(&format!("{}{help}", finding.message)))
}

/// `text` as the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// `text` as the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::command;
    use crate::cli::output::diagnostics::{Finding, Mark};

    #[test]
    fn nothing_in_a_problem_can_end_its_command() {
        let mark = Mark {
            file: "a,b:c%.yaml".to_owned(),
            source: Arc::from("x\n é: 1\n"),
            place: 5..6,
            label: None,
            earlier: None,
        };
        let finding = Finding::new("unknown_field", "100%\r\n::error::x").help(Some("one\ntwo".to_owned()));
        assert_eq!(
            command(&Finding { mark: Some(mark), ..finding }),
            "::error file=a%2Cb%3Ac%25.yaml,line=2,col=3,title=unknown_field::100%25%0D%0A::error::x%0Ahelp: one two\n"
        );
        assert_eq!(command(&Finding::plain("cannot read x")), "::error ::cannot read x\n");
    }
}
