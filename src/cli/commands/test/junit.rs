//! Results as JUnit XML, which Jenkins and GitLab read: a suite for each form.

use crate::cli::commands::test::results::{FormResults, TestResult};
use crate::cli::output::visible_lines;
use crate::domain::html;

/// Returns the results of all forms.
pub(super) fn xml(results: &[FormResults]) -> String {
    let (head, suites) = (r#"<?xml version="1.0" encoding="UTF-8"?>"#, results.iter().map(suite));
    format!("{head}\n<testsuites>\n{}</testsuites>\n", suites.collect::<String>())
}

fn suite(form: &FormResults) -> String {
    let (name, tests, failed) = (escape(&form.file), form.tests.len(), form.failed);
    let cases: String = form.tests.iter().map(|test| case(&name, test)).collect();
    let counts = format!(r#"tests="{tests}" failures="{failed}" errors="0" skipped="0""#);
    format!("  <testsuite name=\"{name}\" {counts}>\n{cases}  </testsuite>\n")
}

fn case(form: &str, test: &TestResult) -> String {
    let (name, file, line) = (escape(&test.name), escape(&test.file), test.line);
    let start = format!(r#"    <testcase classname="{form}" name="{name}" file="{file}" line="{line}""#);
    if test.passed {
        return format!("{start}/>\n");
    }
    let reasons = escape(&test.failures.join("; "));
    let failure =
        format!(r#"<failure message="{reasons}" type="mismatch">{file}:{line}: {reasons}</failure>"#);
    format!("{start}>\n      {failure}\n    </testcase>\n")
}

/// Escapes `text` for XML 1.0, which cannot represent control characters and two others at all.
fn escape(text: &str) -> String {
    html::escape(&visible_lines(text)).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
