//! Parsing of the settings of a CSV file.

use super::{CsvFile, DELIMITERS};
use crate::domain::integration::IntegrationKind;
use crate::domain::integration::definition::draft_kind::{DraftInput, KindDraft};
use crate::domain::integration::description::{Description, Entry, Member, MemberValue, Need};
use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::Described;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

/// Maximum characters of a path.
const MAX_PATH: usize = 200;

/// Maximum bytes of a name in a path, as file systems have it, less the number of a later file.
const MAX_NAME: usize = 240;

impl Described for CsvFile {
    const DESCRIPTION: Description = Description {
        about: "A CSV file on the server, with one row for each submission.",
        events: &[EventType::SubmissionCompleted],
        members: &[
            Member {
                name: "path",
                need: Need::Required,
                value: MemberValue::Own {
                    schema: r#"{"type":"string","minLength":5,"maxLength":255,"pattern":"^.*\\.csv$"}"#,
                    shown: None,
                    entry: Entry::Text,
                },
                about: "Where the file is, relative to `exports` in the server's data directory.",
                example: r#""visits.csv""#,
            },
            Member {
                name: "delimiter",
                need: Need::Default(r#"",""#),
                value: MemberValue::Choice(&[",", ";", "\t", "|"]),
                about: "The character between two cells.",
                example: "",
            },
        ],
        set_up: "Give a name that ends in .csv as `path`. The file is in `exports/<form id>/` of the server's data directory.",
        limits: "When a question is added, or the settings change, another file is begun: `visits.2.csv`. Text that a spreadsheet would run as a formula gets a leading `'`.",
        repeats: "Exactly once: what an interrupted attempt wrote is cut off before the rows are written again.",
        source: "",
    };

    fn read(fields: &mut Fields<'_, '_>, _: DraftInput<'_>) -> Option<KindDraft> {
        let path = fields.required_text("path", MAX_PATH);
        if let Some(problem) = path.as_deref().and_then(path_problem) {
            fields.refuse("path", Rule::InvalidRange, problem);
        }
        let delimiter = fields.one_of("delimiter", Rule::NotAnOption, &DELIMITERS);
        let file = Self { path: path?, delimiter: delimiter.unwrap_or(',') };
        let path = Some(file.path.clone());
        Some(KindDraft { path, build: Box::new(|_, _| (IntegrationKind::CsvFile(file), None)) })
    }
}

/// Explains why `path` is not the path of a CSV file below the folder of exports.
fn path_problem(path: &str) -> Option<&'static str> {
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.') && part.trim() == part;
    let is_short = |part: &str| part.len() <= MAX_NAME;
    if path.starts_with('/') {
        Some("`path` must be relative: it begins in the folder of exports")
    } else if path.contains(|found: char| found == '\\' || found == ':' || found.is_control()) {
        Some("`path` must not contain a backslash, a colon or a control character")
    } else if !path.split('/').all(is_name) {
        Some("every part of `path` must be a name that does not start with a dot")
    } else if !path.split('/').all(is_short) {
        Some("every part of `path` has at most 240 bytes")
    } else if !path.ends_with(".csv") {
        Some("`path` must end in .csv")
    } else if is_numbered(path) {
        Some("`path` must not end in a number such as .2.csv: the server numbers later files so")
    } else {
        None
    }
}

/// Whether `path` ends as those of later files do: `leads.2.csv`.
fn is_numbered(path: &str) -> bool {
    let number = path.strip_suffix(".csv").and_then(|stem| stem.rsplit_once('.')).map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::path_problem;

    #[test]
    fn paths_stay_below_the_folder_of_exports() {
        for path in
            ["a.csv", "team/2026/answers.csv", "Rückmeldungen.csv", "a b.csv", "leads-2026.csv", "v1.2b.csv"]
        {
            assert_eq!(path_problem(path), None, "{path}");
        }
        for path in [
            "/etc/a.csv",
            "../a.csv",
            "a/../b.csv",
            "a/./b.csv",
            "a//b.csv",
            "..",
            ".csv",
            "a/.csv",
            "~\\a.csv",
            "c:a.csv",
            "a\0.csv",
            "a.txt",
            "a.csv/",
            "a\n.csv",
            " a.csv",
            "a /b.csv",
            "a.CSV",
            "a.2.csv",
            &format!("{}.csv", "é".repeat(120)),
        ] {
            assert!(path_problem(path).is_some(), "{path}");
        }
    }
}
