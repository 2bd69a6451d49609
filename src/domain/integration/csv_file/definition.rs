//! What a CSV file is and takes.

use super::{CsvExport, DELIMITER};
use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::HasSpec;
use crate::domain::integration::row::VALUES;
use crate::domain::integration::settings::PATH;
use crate::domain::integration::spec::{IntegrationSpec, Member, MemberValue, Need};

/// Maximum characters of a path.
const MAX_PATH: usize = 200;

/// Maximum bytes of a name in a path, as file systems have it, less what the name of a temporary file adds.
const MAX_NAME: usize = 240;

impl HasSpec for CsvExport {
    const SPEC: IntegrationSpec = IntegrationSpec {
        about: "A CSV file on the server, with one row for each submission.",
        events: &[EventType::SubmissionCompleted],
        members: &[
            Member {
                name: PATH,
                need: Need::Required,
                value: MemberValue::Text { max: MAX_PATH, check: check_path },
                about: "Where the file is, relative to `exports` in the server's data directory.",
                example: r#""visits.csv""#,
            },
            Member {
                name: DELIMITER,
                need: Need::Default(r#"",""#),
                value: MemberValue::Choice(&[",", ";", "\t", "|"]),
                about: "The character between two cells.",
                example: "",
            },
            VALUES,
        ],
        set_up: "Give a name that ends in .csv as `path`. The file is in `exports/<form id>/` of the server's data directory.",
        limits: "The file is written whole and renamed soon after each change, with pauses of twenty times as long as that took. So it follows edits, deletions and new questions, whose columns are added at the right; whatever else writes to it is overwritten. Text that a spreadsheet would run as a formula gets a leading `'`.",
        repeats: "Each submission is one row: the file shows what is stored.",
        source: "",
    };
}

/// Checks that `path` is one of a CSV file below the folder of exports.
fn check_path(path: &str) -> Result<(), String> {
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.') && part.trim() == part;
    let is_short = |part: &str| part.len() <= MAX_NAME;
    let problem = if path.starts_with('/') {
        "must be relative: it begins in the folder of exports"
    } else if path.contains(|found: char| found == '\\' || found == ':' || found.is_control()) {
        "must not contain a backslash, a colon or a control character"
    } else if !path.split('/').all(is_name) {
        "must be names that do not start with a dot, separated by slashes"
    } else if !path.split('/').all(is_short) {
        "must have at most 240 bytes between two slashes"
    } else if !path.ends_with(".csv") {
        "must end in .csv"
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
}
