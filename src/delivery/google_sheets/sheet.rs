//! The tab of a spreadsheet: columns by question, and a row for each submission
//! (<https://developers.google.com/workspace/sheets/api/reference/rest/v4/spreadsheets.values>).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::api::{Call, Result, Session, failed, parse};
use super::range;
use crate::delivery::{Answer, report};
use crate::domain::delivery::attempt::Outcome;
use crate::domain::integration::outbound::SheetRow;
use crate::domain::integration::row::{FIRST_COLUMNS, column_name};

/// Maximum bytes of a range that is read: the ids of some 500,000 rows.
const MAX_READ: usize = 16 << 20;

/// Milliseconds within which Google ends every request: rows whose answer is late are there by then, or never
/// (<https://developers.google.com/workspace/sheets/api/limits>).
const MAX_APPEND_TIME: i64 = 180_000;

/// Texts are kept as they are, formulas too.
const RAW: &str = "valueInputOption=RAW";

/// The first row of a tab: names of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

/// A range of cells, as read.
#[derive(Deserialize)]
struct ValueRange {
    #[serde(default)]
    values: Vec<Vec<Json>>,
}

#[derive(Deserialize)]
struct Spreadsheet {
    sheets: Vec<Sheet>,
}

#[derive(Deserialize)]
struct Sheet {
    properties: SheetProperties,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SheetProperties {
    sheet_id: i64,
    title: String,
    #[serde(default)]
    hidden: bool,
    grid_properties: Option<GridProperties>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GridProperties {
    column_count: usize,
}

impl Header {
    /// The header in a row with these cells; `None` if they are something else.
    fn new(cells: Vec<Json>) -> Option<Self> {
        let text = |cell| if let Json::String(text) = cell { text } else { cell.to_string() };
        let mut header = Self { names: Vec::new(), places: HashMap::new() };
        cells.into_iter().map(text).for_each(|name| header.add(name));
        let first = header.names.first();
        first.is_none_or(|first| first == FIRST_COLUMNS[0]).then_some(header)
    }

    /// The number of columns.
    pub(super) fn len(&self) -> usize {
        self.names.len()
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

    fn add(&mut self, name: String) {
        self.places.entry(name.clone()).or_insert(self.names.len());
        self.names.push(name);
    }

    /// The cells of `row` in the order of the columns.
    pub(super) fn row(&self, row: &SheetRow) -> Json {
        let mut cells = vec![Json::Null; self.names.len()];
        let mut set = |name: &str, cell: Json| {
            if let Some(place) = self.places.get(name) {
                cells[*place] = cell;
            }
        };
        set(FIRST_COLUMNS[0], row.id.as_str().into());
        set(FIRST_COLUMNS[1], row.submitted_at.as_str().into());
        row.cells.iter().for_each(|(question, cell)| set(&column_name(question), cell.clone()));
        Json::Array(cells)
    }
}

impl Session<'_> {
    pub(super) async fn read_header(&mut self) -> Result<Header> {
        let rows = self.read_values("1:1", "ROWS").await?;
        Header::new(rows.into_iter().next().unwrap_or_default()).ok_or_else(|| {
            let text = "the first row was not written by forms: cell A1 must be `id`; use an empty tab or correct it, then redeliver";
            failed(Outcome::Permanent { error: report::error("not_a_header", text) })
        })
    }

    /// Writes the names of columns at `places`.
    pub(super) async fn write_header(&mut self, header: &Header, places: Range<usize>) -> Result<()> {
        let (columns, names) = (places.end, &header.names[places.clone()]);
        let cells = format!("{}1:{}1", range::column(places.start), range::column(columns.saturating_sub(1)));
        let path = format!("/values/{}?{RAW}", self.range(&cells));
        let body = json!({ "majorDimension": "ROWS", "values": [names] }).to_string();
        match self.call(Call::write("PUT", &path, body.clone())).await {
            Err(report) if report.http_status == Some(400) && self.widen(columns).await? => {
                self.call(Call::write("PUT", &path, body)).await.map(drop)
            }
            result => result.map(drop),
        }
    }

    /// Adds columns to a tab with fewer than `columns`, which cannot be written to beyond them. Returns whether there were
    /// fewer.
    async fn widen(&mut self, columns: usize) -> Result<bool> {
        let answer = self.call(Call::read("?fields=sheets.properties", MAX_READ)).await?;
        let Spreadsheet { sheets } = parse(&answer)?;
        let is_target = |tab: &SheetProperties| match &self.target.sheet {
            Some(name) => tab.title == *name,
            None => !tab.hidden,
        };
        let Some(tab) = sheets.into_iter().map(|sheet| sheet.properties).find(is_target) else {
            return Ok(false);
        };
        let present = tab.grid_properties.map_or(columns, |grid| grid.column_count);
        if present >= columns {
            return Ok(false);
        }
        let added = json!({ "sheetId": tab.sheet_id, "dimension": "COLUMNS", "length": columns - present });
        let body = json!({ "requests": [{ "appendDimension": added }] }).to_string();
        self.call(Call::write("POST", ":batchUpdate", body)).await?;
        Ok(true)
    }

    /// Reads the ids of submissions in column A.
    pub(super) async fn read_ids(&mut self) -> Result<HashSet<String>> {
        let columns = self.read_values("A:A", "COLUMNS").await?;
        let text = |cell| if let Json::String(text) = cell { Some(text) } else { None };
        Ok(columns.into_iter().flatten().filter_map(text).collect())
    }

    /// Appends rows, each as JSON; none is not a request.
    pub(super) async fn append(&mut self, rows: impl Iterator<Item = &String>) -> Result<()> {
        let rows: Vec<_> = rows.map(String::as_str).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let body = format!(r#"{{"majorDimension":"ROWS","values":[{}]}}"#, rows.join(","));
        let path = format!("/values/{}:append?{RAW}&insertDataOption=INSERT_ROWS", self.range("A1"));
        let appended = self.call(Call::write("POST", &path, body)).await;
        appended.map(drop).map_err(|mut report| {
            if matches!(report.outcome, Outcome::Retryable { is_slow: true, .. }) {
                report.hold_ms = MAX_APPEND_TIME;
            }
            report
        })
    }

    async fn read_values(&mut self, cells: &str, dimension: &str) -> Result<Vec<Vec<Json>>> {
        let path = format!("/values/{}?majorDimension={dimension}&prettyPrint=false", self.range(cells));
        let answer = self.call(Call::read(&path, MAX_READ)).await?;
        if is_cut(&answer) {
            let text =
                "the spreadsheet has too many rows to search them for an id: begin another tab, with `sheet`";
            return Err(Box::new(report::retryable("spreadsheet_too_large", text)));
        }
        Ok(parse::<ValueRange>(&answer)?.values)
    }

    fn range(&self, cells: &str) -> String {
        range::encode(self.target.sheet.as_deref(), cells)
    }
}

fn is_cut(answer: &Answer) -> bool {
    !answer.is_complete && answer.body.len() >= MAX_READ
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::Header;
    use crate::domain::integration::outbound::{SheetRow, SheetTarget};
    use crate::secret::Secret;

    fn row(cells: &[(&str, Json)]) -> SheetRow {
        let service_account = Secret::new(String::new());
        let target = SheetTarget { spreadsheet_id: "s".to_owned(), sheet: None, service_account };
        let cells = cells.iter().map(|(question, cell)| ((*question).to_owned(), cell.clone())).collect();
        SheetRow { target, id: "sub_1".to_owned(), submitted_at: "t".to_owned(), cells }
    }

    fn header(cells: Json) -> Option<Header> {
        Header::new(cells.as_array().unwrap().clone())
    }

    #[test]
    fn columns_are_added_at_the_right_and_found_wherever_they_are() {
        let row = row(&[("q2", json!(5)), ("q1", json!("Ann")), ("id", json!("own"))]);
        let mut empty = header(json!([])).unwrap();
        empty.add_columns(&row);
        assert_eq!(empty.names, ["id", "submitted_at", "q2", "q1", "answers.id"]);
        assert_eq!(empty.row(&row), json!(["sub_1", "t", 5, "Ann", "own"]));
        let mut moved = header(json!(["id", "Notes", "", "q1", "q1", 2026, "submitted_at"])).unwrap();
        moved.add_columns(&row);
        assert_eq!(moved.row(&row), json!(["sub_1", null, null, "Ann", null, null, "t", 5, "own"]));
    }

    #[test]
    fn another_first_row_is_not_a_header() {
        for cells in [json!(["Name"]), json!(["", "id"]), json!(["ID"]), json!([1])] {
            assert_eq!(header(cells.clone()), None, "{cells}");
        }
    }
}
