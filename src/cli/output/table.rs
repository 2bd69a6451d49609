//! Tables: columns for a terminal, tabs for a pipe, CSV for a spreadsheet.

use std::borrow::Cow;
use std::fmt::Write as _;

use comfy_table::presets;
use console::{measure_text_width, truncate_str};

use crate::cli::output::humanize::humanize;
use crate::cli::output::visible;
use crate::clock::Timestamp;
use crate::domain::integration::csv_file::is_formula;
use crate::domain::json::Value;

/// One cell: its data, and how it is displayed if that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    display: Option<String>,
    /// Whether it is text rather than a number: only text can be mistaken for a formula by a spreadsheet.
    is_text: bool,
    /// ANSI colour code.
    colour: Option<u8>,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), display: None, is_text: true, colour: None }
    }

    pub fn number(number: impl ToString) -> Self {
        Self { text: number.to_string(), display: None, is_text: false, colour: None }
    }

    /// Creates a time cell, displayed as the time passed since.
    pub fn time(time: Timestamp, now: Timestamp) -> Self {
        Self::number(time).with_display(ago(time, now))
    }

    #[must_use]
    pub fn with_display(self, text: impl Into<String>) -> Self {
        Self { display: Some(text.into()), ..self }
    }

    /// Sets the ANSI colour (32 is green).
    #[must_use]
    pub fn with_colour(self, colour: u8) -> Self {
        Self { colour: Some(colour), ..self }
    }

    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Returns its data as text.
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// Returns the text for CSV: with a leading `'` if it would run as a formula, unless `raw`.
    pub fn export_text(&self, raw: bool) -> Cow<'_, str> {
        match !raw && self.is_text && is_formula(&self.text) {
            true => format!("'{}", self.text).into(),
            false => (&*self.text).into(),
        }
    }

    /// Returns the displayed text, with control characters escaped.
    fn visible(&self) -> String {
        visible(self.display.as_ref().unwrap_or(&self.text))
    }

    /// Creates a cell from JSON: text without quotes, nothing for `null`, lists and objects in readable form.
    pub fn value(value: &Value) -> Self {
        match value {
            Value::Null => Self::text(""),
            Value::String(text) => Self::text(text.clone()),
            Value::Bool(_) | Value::Number(_) => Self::number(value),
            Value::Array(_) | Value::Object(_) => Self::text(value.to_string()).with_display(humanize(value)),
        }
    }

    /// Creates a cell from the member `name` of an object; empty if there is none.
    pub fn member(object: &Value, name: &str) -> Self {
        object.get(name).map_or_else(|| Self::text(""), Self::value)
    }
}

/// Minimum width of a text column that may be truncated.
const MIN_WIDTH: usize = 8;

/// Spaces between columns.
const GAP: usize = 2;

/// A displayed column: its index in the table, its width, and the width to which it may be truncated.
struct Column {
    index: usize,
    width: usize,
    min: usize,
}

/// Rows with headers.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub headers: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        Self { headers: headers.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }

    /// Creates a table of objects: a column for each of `selected`, or, if that is empty, for each member that occurs.
    pub fn of_objects(values: &[Value], selected: &[String]) -> Self {
        let mut headers = selected.to_vec();
        for value in values.iter().filter(|_| selected.is_empty()) {
            let Value::Object(members) = value else { continue };
            for (name, _) in members {
                if !headers.contains(name) {
                    headers.push(name.clone());
                }
            }
        }
        let row = |value| headers.iter().map(|name| Cell::member(value, name)).collect();
        let rows = values.iter().map(row).collect();
        Self { headers, rows }
    }

    /// Keeps the columns `selected`, in that order; all if it is empty. Unknown names are ignored.
    #[must_use]
    pub fn select(self, selected: &[String]) -> Self {
        if selected.is_empty() {
            return self;
        }
        let index = |name: &String| self.headers.iter().position(|header| header == name);
        self.columns_at(&selected.iter().filter_map(index).collect::<Vec<_>>())
    }

    /// Removes the column `name` if it is empty in all rows.
    #[must_use]
    pub fn without_unused(self, name: &str) -> Self {
        self.filled_columns(|header| header == name)
    }

    /// Removes all empty columns if the table is wider than `width`.
    #[must_use]
    pub fn without_empty(self, width: u16) -> Self {
        if self.rows.is_empty() || self.layout(width).len() == self.headers.len() {
            return self;
        }
        self.filled_columns(|_| true)
    }

    /// Returns the columns that have a value in a row, or whose header is not `removable`.
    fn filled_columns(&self, removable: impl Fn(&str) -> bool) -> Self {
        let is_filled = |index: usize| self.rows.iter().any(|row| !row[index].text.is_empty());
        let is_kept = |index: &usize| !removable(&self.headers[*index]) || is_filled(*index);
        self.columns_at(&(0..self.headers.len()).filter(is_kept).collect::<Vec<_>>())
    }

    /// Returns the columns at these indices.
    fn columns_at(&self, indices: &[usize]) -> Self {
        let headers = indices.iter().map(|index| self.headers[*index].clone()).collect();
        let row = |row: &Vec<Cell>| indices.iter().map(|index| row[*index].clone()).collect();
        Self { headers, rows: self.rows.iter().map(row).collect() }
    }

    /// Returns the columns that fit into `width`. If not all fit, the last are dropped first, except `title`; then the
    /// widest that may be truncated shrinks.
    fn layout(&self, width: u16) -> Vec<Column> {
        let mut columns: Vec<_> = (0..self.headers.len()).map(|index| self.measure(index)).collect();
        // There is no gap after the last column.
        let room = usize::from(width) + GAP;
        while columns.len() > 1 && columns.iter().map(|column| column.min + GAP).sum::<usize>() > room {
            let is_title = |column: &Column| self.headers[column.index] == "title";
            let last = columns.iter().rposition(|column| !is_title(column)).filter(|last| *last > 0);
            columns.remove(last.unwrap_or(columns.len() - 1));
        }
        let room = room.saturating_sub(GAP * columns.len());
        columns.iter_mut().for_each(|column| column.width = column.width.min(room));
        while columns.iter().map(|column| column.width).sum::<usize>() > room {
            let wide = columns.iter_mut().filter(|column| column.width > column.min);
            let Some(widest) = wide.max_by_key(|column| column.width) else { break };
            widest.width -= 1;
        }
        columns
    }

    fn measure(&self, index: usize) -> Column {
        let cells = || self.rows.iter().filter_map(|row| row.get(index));
        let texts = cells().map(Cell::visible).chain([visible(&header_text(&self.headers[index]))]);
        let width = texts.map(|text| measure_text_width(&text)).max().unwrap_or_default();
        // Part of an id, a number or a time is useless.
        let is_whole =
            matches!(&*self.headers[index], "id" | "question") || cells().all(|cell| !cell.is_text);
        Column { index, width, min: if is_whole { width } else { width.min(MIN_WIDTH) } }
    }

    /// Formats the table for a terminal: no borders, one line per row. Returns the text and the number of columns that
    /// fit.
    pub fn columns(&self, width: u16, colour: bool) -> (String, usize) {
        let columns = self.layout(width);
        let cut = |text: &str, column: &Column| truncate_str(text, column.width, "…").into_owned();
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        let header = |column: &Column| cut(&visible(&header_text(&self.headers[column.index])), column);
        table.set_header(columns.iter().map(header));
        for row in &self.rows {
            table.add_row(columns.iter().map(|column| cut(&row[column.index].visible(), column)));
        }
        let line = |(index, line): (usize, String)| {
            // The library begins each line with a space.
            let line = line.get(1..).unwrap_or_default().trim_end();
            match index.checked_sub(1) {
                _ if !colour => format!("{line}\n"),
                None => format!("\u{1b}[2m{line}\u{1b}[0m\n"),
                Some(index) => format!("{}\n", colour_cells(line, &self.rows[index], &columns)),
            }
        };
        (table.lines().enumerate().map(line).collect(), columns.len())
    }

    /// Formats the rows for a pipe: tab-separated, no header, not truncated.
    pub fn tabs(&self) -> String {
        let line = |row: &Vec<Cell>| {
            row.iter().map(|cell| visible(&cell.text)).collect::<Vec<_>>().join("\t") + "\n"
        };
        self.rows.iter().map(line).collect()
    }

    /// Returns the headers as cells.
    pub fn header_cells(&self) -> Vec<Cell> {
        self.headers.iter().map(Cell::text).collect()
    }

    /// Formats the header as CSV (RFC 4180, lines end in a line feed).
    pub fn csv_header(&self, raw: bool) -> String {
        csv_line(&self.header_cells(), raw)
    }

    /// Formats the rows as CSV. Unless `raw`, text that a spreadsheet would run as a formula gets a leading `'`.
    pub fn csv_rows(&self, raw: bool) -> String {
        self.rows.iter().map(|row| csv_line(row, raw)).collect()
    }
}

/// Returns a header as displayed.
pub fn header_text(header: &str) -> String {
    match header {
        "response_count" => "RESPONSES".to_owned(),
        "last_used_at" => "LAST USED".to_owned(),
        header => header.trim_end_matches("_at").to_uppercase(),
    }
}

/// Adds the colours of the cells of `row` to its `line`.
fn colour_cells(line: &str, row: &[Cell], columns: &[Column]) -> String {
    let (mut rest, mut coloured) = (line, String::new());
    for column in columns {
        let (cell, after) = rest.split_at(truncate_str(rest, column.width + GAP, "").len());
        let text = cell.trim_end();
        coloured += &match row[column.index].colour {
            Some(colour) => format!("\u{1b}[{colour}m{text}\u{1b}[0m{}", &cell[text.len()..]),
            None => cell.to_owned(),
        };
        rest = after;
    }
    coloured
}

fn csv_line(cells: &[Cell], raw: bool) -> String {
    let mut line = String::new();
    for (index, cell) in cells.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let text = cell.export_text(raw);
        let quoted = if text.contains(['"', ',', '\n', '\r']) || (text.is_empty() && cells.len() == 1) {
            format!("\"{}\"", text.replace('"', "\"\"")).into()
        } else {
            text
        };
        let _infallible = write!(line, "{comma}{quoted}");
    }
    line.push('\n');
    line
}

/// Formats the time passed: `3 h ago`.
fn ago(time: Timestamp, now: Timestamp) -> String {
    let seconds = (now.millis() - time.millis()) / 1_000;
    match seconds {
        ..0 => time.to_string(),
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..172_800 => "1 day ago".to_owned(),
        172_800..2_592_000 => format!("{} days ago", seconds / 86_400),
        _ => time.to_string().chars().take(10).collect(),
    }
}
