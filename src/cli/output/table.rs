//! Tables: columns for a terminal, tabs for a pipe, CSV for a spreadsheet.

pub use comfy_table::Color;
use comfy_table::{Attribute, ColumnConstraint, ContentArrangement, Row, presets};
use console::measure_text_width;

use crate::cli::output::humanize::humanize;
use crate::cli::output::visible;
use crate::clock::Timestamp;
use crate::domain::integration::csv_file::is_formula;
use crate::domain::json::Value;

/// One cell: its data, and how it is displayed if that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The data as text.
    pub text: String,
    display: Option<String>,
    /// Whether it is text rather than a number: only text can be mistaken for a formula by a spreadsheet.
    pub is_text: bool,
    /// Whether it is a date, or a date with a time, if it can be read as one.
    pub is_date: bool,
    colour: Option<Color>,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), display: None, is_text: true, is_date: false, colour: None }
    }

    pub fn empty() -> Self {
        Self::text("")
    }

    pub fn number(number: impl ToString) -> Self {
        Self { is_text: false, ..Self::text(number.to_string()) }
    }

    /// Creates the cell of a date or of a date with a time, which has a type of its own in a workbook.
    pub fn date(text: impl Into<String>) -> Self {
        Self { is_date: true, ..Self::text(text) }
    }

    /// Creates a time cell, displayed as the time passed since.
    pub fn time(time: Timestamp, now: Timestamp) -> Self {
        Self::number(time).with_display(ago(time, now))
    }

    #[must_use]
    pub fn with_display(self, text: impl Into<String>) -> Self {
        Self { display: Some(text.into()), ..self }
    }

    #[must_use]
    pub fn with_colour(self, colour: Color) -> Self {
        Self { colour: Some(colour), ..self }
    }

    /// Returns the displayed text, with control characters escaped.
    fn visible(&self) -> String {
        visible(self.display.as_ref().unwrap_or(&self.text))
    }

    fn rendered(&self) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(self.visible());
        match self.colour {
            Some(colour) => cell.fg(colour),
            None => cell,
        }
    }

    /// Creates a cell from JSON: text without quotes, nothing for `null`, lists and objects in readable form.
    pub fn value(value: &Value) -> Self {
        match value {
            Value::Null => Self::empty(),
            Value::String(text) => Self::text(text.clone()),
            Value::Bool(_) | Value::Number(_) => Self::number(value),
            Value::Array(_) | Value::Object(_) => Self::text(value.to_string()).with_display(humanize(value)),
        }
    }

    /// Creates the cell of the answer to a question: that under the first of its keys that has one.
    pub fn of_answer(answers: &Value, keys: &[String]) -> Self {
        keys.iter()
            .find(|key| answers.get(key).is_some())
            .map_or_else(Self::empty, |key| Self::member(answers, key))
    }

    /// Creates a cell from the member `name` of an object; empty if there is none.
    pub fn member(object: &Value, name: &str) -> Self {
        object.get(name).map_or_else(Self::empty, Self::value)
    }
}

/// Minimum width of a text column, which may be cut.
const MIN_WIDTH: usize = 8;

/// Spaces after a column.
const GAP: u16 = 2;

/// Rows with headers.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub headers: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
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

    /// Returns the columns in which a row shows something.
    #[must_use]
    pub fn without_empty(&self) -> Self {
        let is_filled = |index: &usize| self.rows.iter().any(|row| !row[*index].visible().is_empty());
        self.columns_at(&(0..self.headers.len()).filter(is_filled).collect::<Vec<_>>())
    }

    /// Returns the columns at these indices.
    fn columns_at(&self, indices: &[usize]) -> Self {
        let headers = indices.iter().map(|index| self.headers[*index].clone()).collect();
        let row = |row: &Vec<Cell>| indices.iter().map(|index| row[*index].clone()).collect();
        Self { headers, rows: self.rows.iter().map(row).collect() }
    }

    /// Formats the table for a terminal: no borders, one line per row. Returns the text and the number of columns that
    /// fit.
    pub fn columns(&self, width: u16, colour: bool) -> (String, usize) {
        let indices = self.fitting(width);
        let shown = self.columns_at(&indices);
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        // Cells have no line feeds, so they are cut at the width, not at the word before.
        table.set_delimiter('\n');
        let header = |header: &String| {
            comfy_table::Cell::new(visible(&header_text(header))).add_attribute(Attribute::Dim)
        };
        table.set_header(one_line(shown.headers.iter().map(header)));
        for row in &shown.rows {
            table.add_row(one_line(row.iter().map(Cell::rendered)));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let is_last = index + 1 == indices.len();
            column.set_padding((0, if is_last { 0 } else { GAP }));
            if shown.is_whole(index) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table.style_text_only();
        // The flags and variables about colours were evaluated before.
        crossterm::style::force_color_output(true);
        let table = if colour { table.enforce_styling() } else { table.force_no_tty() };
        (table.lines().map(|line| line.trim_end().to_owned() + "\n").collect(), indices.len())
    }

    /// Returns the indices of the columns that fit into `width`: the last are left out first, except `title`.
    fn fitting(&self, width: u16) -> Vec<usize> {
        let mut columns: Vec<_> = (0..self.headers.len()).collect();
        let needed: Vec<_> =
            columns.iter().map(|column| self.min_width(*column) + usize::from(GAP)).collect();
        let total = |columns: &[usize]| columns.iter().map(|column| needed[*column]).sum::<usize>();
        while columns.len() > 1 && total(&columns) > usize::from(width.saturating_add(GAP)) {
            let last = columns.iter().rposition(|column| self.headers[*column] != "title");
            columns.remove(last.filter(|last| *last > 0).unwrap_or(columns.len() - 1));
        }
        columns
    }

    /// Returns the width to which a column may be cut.
    fn min_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].visible());
        let texts = cells.chain([visible(&header_text(&self.headers[column]))]);
        let width = texts.map(|text| measure_text_width(&text)).max().unwrap_or_default();
        if self.is_whole(column) { width } else { width.min(MIN_WIDTH) }
    }

    /// Whether a column is never cut: part of an id, a number or a time is useless.
    fn is_whole(&self, column: usize) -> bool {
        matches!(&*self.headers[column], "id" | "question")
            || self.rows.iter().all(|row| !row[column].is_text)
    }

    /// Formats the rows for a pipe: tab-separated, no header, not truncated.
    pub fn tabs(&self) -> String {
        let line = |row: &Vec<Cell>| {
            row.iter().map(|cell| visible(&cell.text)).collect::<Vec<_>>().join("\t") + "\n"
        };
        self.rows.iter().map(line).collect()
    }

    /// Formats the header as CSV (RFC 4180, lines end in a line feed).
    pub fn csv_header(&self) -> String {
        csv_line(&self.headers.iter().map(Cell::text).collect::<Vec<_>>(), false)
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

/// Creates a row whose cells are cut at the end of its line.
fn one_line(cells: impl Iterator<Item = comfy_table::Cell>) -> Row {
    let mut row = Row::from(cells);
    row.max_height(1);
    row
}

/// Formats a row as CSV. Unless `raw`, text that a spreadsheet would run as a formula gets a leading `'`.
pub fn csv_line(cells: &[Cell], raw: bool) -> String {
    let field = |cell: &Cell| {
        let escape = if !raw && cell.is_text && is_formula(&cell.text) { "'" } else { "" };
        let text = format!("{escape}{}", cell.text);
        // A line of one empty field would be an empty line.
        let is_quoted = text.contains(['"', ',', '\n', '\r']) || (text.is_empty() && cells.len() == 1);
        if is_quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    cells.iter().map(field).collect::<Vec<_>>().join(",") + "\n"
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
