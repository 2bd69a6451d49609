//! CSV files on the server, with one row for each submission.

use crate::domain::condition::Condition;
use crate::domain::form::Version;
use crate::domain::integration::Integration;
use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::{Kind, Rendering};
use crate::domain::integration::outbound::Outbound;
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Sealer, holds};
use crate::domain::integration::row::{RowBody, SCHEDULE, VALUES, answer_text, is_raw, render_row};
use crate::domain::integration::settings::{PATH, Settings};
use crate::domain::integration::spec::{IntegrationSpec, Member, MemberValue, Need, Pace, WriteMode};
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::submission::Submission;
use crate::id::IntegrationId;

const DELIMITER: &str = "delimiter";

/// Maximum characters of a path.
const MAX_PATH: usize = 200;

/// Maximum bytes of a name in a path, as file systems have it, less what the name of a temporary file adds.
const MAX_NAME: usize = 240;

static SPEC: IntegrationSpec = IntegrationSpec {
    about: "A CSV file on the server, with one row for each submission.",
    events: &[EventType::SubmissionCompleted],
    members: &[
        Member {
            name: PATH,
            need: Need::Required,
            value: MemberValue::Text { max: MAX_PATH, check: check_path },
            about: "Where the file is, relative to `exports/<form id>/` in the server's data directory.",
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
    pace: Pace {
        mode: WriteMode::Replace,
        concurrency: 1,
        batch: 1,
        interval_ms: 0,
        longest_ms: 60_000,
        schedule: &SCHEDULE,
    },
    set_up: "Give a name that ends in .csv as `path`. The file is in `exports/<form id>/` of the server's data directory.",
    limits: "The file is written whole and renamed soon after each change, with pauses of twenty times as long as that took. So it follows edits, deletions and new questions, whose columns are added at the right; whatever else writes to it is overwritten. Text that a spreadsheet would run as a formula gets a leading `'`.",
    repeats: "Each submission is one row: the file shows what is stored.",
    source: "",
};

/// A CSV file on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFile {
    /// Relative to the form's folder below `exports/` of the data directory, which is named by its id; ends in `.csv`.
    pub path: String,
    /// One ASCII character.
    pub delimiter: char,
}

pub(super) struct CsvExport;

impl Kind for CsvExport {
    fn spec(&self) -> &IntegrationSpec {
        &SPEC
    }

    fn target(&self, settings: &Settings) -> String {
        settings.text(PATH).unwrap_or_default().to_owned()
    }

    /// Forms and integrations have files of their own, whatever these are called.
    fn destination(&self, settings: &Settings, id: IntegrationId) -> String {
        format!("{}/{id}", self.target(settings))
    }

    fn render(&self, settings: &Settings, rendering: Rendering<'_>) -> Option<Vec<u8>> {
        render_row(rendering, cell_of(settings))
    }

    /// All its deliveries are carried out together, by writing the file.
    fn plan(&self, _: &Settings, _: PlannedAttempt<'_>, _: Sealer<'_>) -> Result<Outbound, PlanError> {
        Err(PlanError::Damaged)
    }
}

/// The rows of a CSV file.
pub struct CsvRows<'a> {
    integration: &'a Integration,
    condition: Option<Condition>,
}

impl<'a> CsvRows<'a> {
    pub fn new(integration: &'a Integration) -> Self {
        Self { integration, condition: integration.condition() }
    }

    /// Returns the row of a submission; `None` if the integration's condition does not hold.
    pub fn row(&self, submission: &Submission, version: &Version) -> Option<RowBody<String>> {
        let Integration { when, fields, kind, .. } = self.integration;
        if when.is_some() {
            let condition = self.condition.as_ref()?;
            holds(condition, version, &submission.answers).then_some(())?;
        }
        Some(RowBody::new(submission, version, fields.as_ref(), cell_of(&kind.settings)))
    }
}

/// Returns how cells are written: for programs or for people.
fn cell_of(settings: &Settings) -> fn(&Question, &Value) -> String {
    if is_raw(settings) { |_, answer| raw_cell(answer) } else { cell }
}

impl Integration {
    /// The file, if it is a CSV file.
    pub fn csv_file(&self) -> Option<CsvFile> {
        let settings = &self.kind.settings;
        let delimiter = settings.text(DELIMITER).and_then(|text| text.chars().next()).unwrap_or(',');
        self.is_file().then(|| CsvFile { path: self.target(), delimiter })
    }
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

/// Returns an answer as the text of a cell for people: options by their labels, lists joined.
fn cell(question: &Question, answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => answer.to_string(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => {
            escape_formula(answer_text(question, answer))
        }
    }
}

/// Returns an answer as the text of a cell for programs: values of options, lists and objects as JSON.
fn raw_cell(answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::String(text) => escape_formula(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => answer.to_string(),
    }
}

/// Returns text with a leading `'` if a spreadsheet would run it as a formula.
pub fn escape_formula(text: String) -> String {
    if is_formula(&text) { format!("'{text}") } else { text }
}

/// First characters of a formula (OWASP, CSV Injection), and those that spreadsheets convert to one of them or skip.
const FORMULA_STARTS: [char; 12] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\0', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Whether a spreadsheet would run `text` as a formula. Numbers such as `-5` are none.
pub fn is_formula(text: &str) -> bool {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    text.starts_with(FORMULA_STARTS) && !is_number
}

/// Returns a record of a CSV file (RFC 4180).
pub fn csv_record<'a>(cells: impl IntoIterator<Item = &'a str>, delimiter: char) -> String {
    let mut record = String::new();
    for (place, cell) in cells.into_iter().enumerate() {
        if place > 0 {
            record.push(delimiter);
        }
        if cell.contains([delimiter, '"', '\r', '\n']) {
            record.push('"');
            record.push_str(&cell.replace('"', "\"\""));
            record.push('"');
        } else {
            record.push_str(cell);
        }
    }
    record.push_str("\r\n");
    record
}
