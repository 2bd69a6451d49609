//! What a CSV file is and takes.

use super::{CsvExport, DELIMITER};
use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::HasSpec;
use crate::domain::integration::row::VALUES;
use crate::domain::integration::settings::PATH;
use crate::domain::integration::spec::{IntegrationSpec, Member, MemberValue, Need};

/// Maximum characters of a path.
const MAX_PATH: usize = 200;

/// Maximum bytes of a name in a path, as file systems have it, less the number of a later file.
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
        limits: "When a question is added, or the settings change, another file is begun: `visits.2.csv`. Text that a spreadsheet would run as a formula gets a leading `'`.",
        repeats: "Exactly once: what an interrupted attempt wrote is cut off before the rows are written again.",
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
    } else if is_numbered(path) {
        "must not end in a number such as .2.csv: the server numbers later files so"
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
}

/// Whether `path` ends as those of later files do: `leads.2.csv`.
fn is_numbered(path: &str) -> bool {
    let number = path.strip_suffix(".csv").and_then(|stem| stem.rsplit_once('.')).map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
