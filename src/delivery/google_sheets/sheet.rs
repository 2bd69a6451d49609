//! The tab of a spreadsheet: columns by question, and a row for each submission
//! (<https://developers.google.com/workspace/sheets/api/reference/rest/v4/spreadsheets.values>).

use std::collections::{HashMap, HashSet};

use percent_encoding::utf8_percent_encode;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::api::{Result, Spreadsheet, parse};
use crate::delivery::redact::RESERVED;
use crate::delivery::report::{retry, with_answer};
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::delivery::error_code::ErrorCode;
use crate::domain::integration::outbound::SheetRow;
use crate::domain::integration::row::{FIRST_COLUMNS, column_name};

/// Milliseconds within which Google ends every request: rows whose answer is late are there by then, or never
/// (<https://developers.google.com/workspace/sheets/api/limits>).
const MAX_APPEND_TIME: i64 = 180_000;

/// The first row of a tab: names of columns.
pub(super) struct Header {
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// How many names are in the tab.
    written: usize,
}

/// A range of cells, as read.
#[derive(Deserialize)]
struct ValueRange {
    #[serde(default)]
    values: Vec<Vec<Json>>,
}

impl Header {
    /// The header in a row with these cells; `None` if they are something else.
    fn new(cells: Vec<Json>) -> Option<Self> {
        let text = |cell| if let Json::String(text) = cell { text } else { cell.to_string() };
        let mut header = Self { names: Vec::new(), places: HashMap::new(), written: cells.len() };
        cells.into_iter().map(text).for_each(|name| header.add(name));
        let first = header.names.first();
        first.is_none_or(|first| first == FIRST_COLUMNS[0]).then_some(header)
    }

    /// Adds the columns that are missing for `row`, at the right.
    pub(super) fn add_columns(&mut self, row: &SheetRow) {
        let questions = row.cells.iter().map(|(question, _)| column_name(question));
        for name in FIRST_COLUMNS.map(Into::into).into_iter().chain(questions) {
            if !self.places.contains_key(&*name) {
                self.add(name.into_owned());
            }
        }
    }

    /// Whether columns were added.
    pub(super) fn has_grown(&self) -> bool {
        self.names.len() > self.written
    }

    fn add(&mut self, name: String) {
        self.places.entry(name.clone()).or_insert(self.names.len());
        self.names.push(name);
    }

    /// The cells of `row` in the order of the columns.
    pub(super) fn row(&self, row: &SheetRow) -> Json {
        let mut cells = vec![Json::Null; self.names.len()];
        let mut set = |name: &str, cell: &Json| {
            if let Some(place) = self.places.get(name) {
                cells[*place] = as_entered(cell);
            }
        };
        set(FIRST_COLUMNS[0], &row.id.as_str().into());
        set(FIRST_COLUMNS[1], &row.submitted_at);
        row.cells.iter().for_each(|(question, cell)| set(&column_name(question), cell));
        Json::Array(cells)
    }
}

/// Returns a cell as somebody would type it: Google makes dates of what looks like them, and would run formulas. A text
/// behind an apostrophe, which is not a part of it, stays as it is.
fn as_entered(cell: &Json) -> Json {
    match cell {
        Json::String(text) => format!("'{text}").into(),
        Json::Object(members) => members.get("date").cloned().unwrap_or_default(),
        other => other.clone(),
    }
}

impl Spreadsheet<'_> {
    pub(super) async fn read_header(&self) -> Result<Header> {
        let rows = self.read_values("1:1", "ROWS").await?;
        Header::new(rows.into_iter().next().unwrap_or_default()).ok_or_else(|| {
            let text = "the first row was not written by forms: cell A1 must be `id`; use an empty tab or correct it, then redeliver";
            Box::new(Outcome::Permanent { error: ErrorCode::NotAHeader.error(text) }.into())
        })
    }

    /// Writes the names of the columns that were added; of the first one again, if none was.
    pub(super) async fn write_header(&self, header: &Header) -> Result<()> {
        if header.written == 0 {
            // Other than an update, this adds columns to a tab that has too few.
            let path = format!("/values/{}:append?valueInputOption=RAW", self.range("A1"));
            return self.call("POST", &path, Some(&json!({ "values": [header.names] }))).await.map(drop);
        }
        let places = if header.has_grown() { header.written..header.names.len() } else { 0..1 };
        let cells = format!("{}1:{}1", column(places.start), column(places.end - 1));
        let path = format!("/values/{}?valueInputOption=RAW", self.range(&cells));
        let written = self.call("PUT", &path, Some(&json!({ "values": [header.names[places]] }))).await;
        written.map(drop).map_err(|report| match report.http_status {
            Some(400) => {
                let text = "the tab has too few columns for a new question: add columns at its right";
                Box::new(SendReport { outcome: retry(ErrorCode::TooFewColumns, text), ..*report })
            }
            _ => report,
        })
    }

    /// Reads the ids of submissions in column A.
    pub(super) async fn read_ids(&self) -> Result<HashSet<String>> {
        let columns = self.read_values("A:A", "COLUMNS").await?;
        let text = |cell| if let Json::String(text) = cell { Some(text) } else { None };
        Ok(columns.into_iter().flatten().filter_map(text).collect())
    }

    /// Appends rows; none is not a request.
    pub(super) async fn append(&self, rows: &[Json]) -> Result<SendReport> {
        if rows.is_empty() {
            return Ok(Outcome::Delivered.into());
        }
        let options = "valueInputOption=USER_ENTERED&insertDataOption=INSERT_ROWS";
        let path = format!("/values/{}:append?{options}", self.range("A1"));
        let appended = self.call("POST", &path, Some(&json!({ "values": rows }))).await;
        appended.map(|answer| with_answer(&answer, Outcome::Delivered)).map_err(|mut report| {
            if matches!(report.outcome, Outcome::Retryable { is_slow: true, .. }) {
                report.hold_ms = MAX_APPEND_TIME;
            }
            report
        })
    }

    async fn read_values(&self, cells: &str, dimension: &str) -> Result<Vec<Vec<Json>>> {
        let path = format!("/values/{}?majorDimension={dimension}&prettyPrint=false", self.range(cells));
        Ok(parse::<ValueRange>(&self.call("GET", &path, None).await?)?.values)
    }

    /// Returns the range `cells` of the tab in A1 notation, as a part of a path
    /// (<https://developers.google.com/workspace/sheets/api/guides/concepts#cell>).
    fn range(&self, cells: &str) -> String {
        let range = match self.tab() {
            Some(name) => format!("'{}'!{cells}", name.replace('\'', "''")),
            None => cells.to_owned(),
        };
        utf8_percent_encode(&range, RESERVED).to_string()
    }
}

/// Returns the name of a column: `A` for 0, `Z` for 25, `AA` for 26.
fn column(place: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(place % 26).unwrap_or(0));
    let before = if place < 26 { String::new() } else { column(place / 26 - 1) };
    format!("{before}{letter}")
}
