//! Tables: columns for a terminal, tabs for a pipe, CSV for a spreadsheet.

use std::fmt::Write as _;

use comfy_table::{Table as Columns, presets};
use console::{measure_text_width, truncate_str};

use crate::cli::output::humanize::humanize;
use crate::cli::output::visible;
use crate::clock::Timestamp;
use crate::domain::json::Value;

/// One cell: its data, and how it is displayed if that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    shown: Option<String>,
    /// Whether it is text rather than a number: only text can be mistaken for a formula by a spreadsheet.
    is_text: bool,
    /// ANSI colour code.
    colour: Option<u8>,
}

impl Cell {
    /// Creates a text cell.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), shown: None, is_text: true, colour: None }
    }

    /// Creates a number cell.
    pub fn number(number: impl ToString) -> Self {
        Self { text: number.to_string(), shown: None, is_text: false, colour: None }
    }

    /// Creates a time cell, displayed as the time passed since.
    pub fn time(time: Timestamp, now: Timestamp) -> Self {
        Self::number(time).with_display(ago(time, now))
    }

    /// Sets the displayed text.
    #[must_use]
    pub fn with_display(self, text: impl Into<String>) -> Self {
        Self { shown: Some(text.into()), ..self }
    }

    /// Sets the ANSI colour (32 is green).
    #[must_use]
    pub fn with_colour(self, colour: u8) -> Self {
        Self { colour: Some(colour), ..self }
    }

    /// Returns the displayed text, with control characters escaped.
    fn visible(&self) -> String {
        visible(self.shown.as_ref().unwrap_or(&self.text))
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

    /// Creates a table of objects: a column for each of `wanted`, or, if that is empty, for each member that occurs.
    pub fn of_objects(values: &[Value], wanted: &[String]) -> Self {
        let mut headers = wanted.to_vec();
        for (name, _) in values.iter().flat_map(members).filter(|_| wanted.is_empty()) {
            if !headers.contains(name) {
                headers.push(name.clone());
            }
        }
        let row = |value| headers.iter().map(|name| Cell::member(value, name)).collect();
        let rows = values.iter().map(row).collect();
        Self { headers, rows }
    }

    /// Keeps the columns `wanted`, in that order; all if it is empty. Unknown names are ignored.
    #[must_use]
    pub fn select(self, wanted: &[String]) -> Self {
        if wanted.is_empty() {
            return self;
        }
        let place = |name: &String| self.headers.iter().position(|header| header == name);
        self.columns_at(&wanted.iter().filter_map(place).collect::<Vec<_>>())
    }

    /// Removes the column `name` if it is empty in all rows.
    #[must_use]
    pub fn without_unused(self, name: &str) -> Self {
        let is_unused = |place: usize| self.rows.iter().all(|row| row[place].text.is_empty());
        let kept = |place: &usize| self.headers[*place] != name || !is_unused(*place);
        self.columns_at(&(0..self.headers.len()).filter(kept).collect::<Vec<_>>())
    }

    /// Removes all empty columns if the table is wider than `width`.
    #[must_use]
    pub fn without_empty(self, width: u16) -> Self {
        if self.rows.is_empty() || self.visible_columns(width).len() == self.headers.len() {
            return self;
        }
        let is_filled = |place: &usize| self.rows.iter().any(|row| !row[*place].text.is_empty());
        self.columns_at(&(0..self.headers.len()).filter(is_filled).collect::<Vec<_>>())
    }

    /// Returns the columns at the indices `places`.
    fn columns_at(&self, places: &[usize]) -> Self {
        let headers = places.iter().map(|place| self.headers[*place].clone()).collect();
        let row = |row: &Vec<Cell>| places.iter().map(|place| row[*place].clone()).collect();
        Self { headers, rows: self.rows.iter().map(row).collect() }
    }

    /// Returns the indices of the columns that fit into `width`. If not all fit, the last are dropped first, except
    /// `title`.
    pub fn visible_columns(&self, width: u16) -> Vec<usize> {
        let least: Vec<_> = (0..self.headers.len()).map(|place| self.min_width(place) + GAP).collect();
        let mut kept: Vec<_> = (0..least.len()).collect();
        // There is no gap after the last column.
        let room = usize::from(width) + GAP;
        while kept.len() > 1 && kept.iter().map(|place| least[*place]).sum::<usize>() > room {
            let is_title = |place: &usize| self.headers[*place] == "title";
            let last = kept.iter().rposition(|place| !is_title(place)).filter(|index| *index > 0);
            kept.remove(last.unwrap_or(kept.len() - 1));
        }
        kept
    }

    /// Returns the width of a column without truncation.
    fn full_width(&self, place: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(place)).map(Cell::visible);
        let texts = cells.chain(self.headers.get(place).map(|header| visible(&header_text(header))));
        texts.map(|text| measure_text_width(&text)).max().unwrap_or_default()
    }

    fn min_width(&self, place: usize) -> usize {
        let widest = self.full_width(place);
        if self.is_never_cut(place) { widest } else { widest.min(MIN_WIDTH) }
    }

    /// Returns the widths of the columns at `places` within `width`: the widest that may be truncated shrinks.
    fn widths(&self, places: &[usize], width: u16) -> Vec<usize> {
        let room = usize::from(width).saturating_sub(GAP * places.len().saturating_sub(1));
        let mut widths: Vec<_> = places.iter().map(|place| self.full_width(*place).min(room)).collect();
        while widths.iter().sum::<usize>() > room {
            let may_give = |index: &usize| widths[*index] > MIN_WIDTH && !self.is_never_cut(places[*index]);
            let Some(widest) = (0..widths.len()).filter(may_give).max_by_key(|index| widths[*index]) else {
                break;
            };
            widths[widest] -= 1;
        }
        widths
    }

    /// Formats the table for a terminal: no borders, one line per row, only the
    /// [`visible_columns`](Self::visible_columns).
    pub fn columns(&self, width: u16, colour: bool) -> String {
        let places = self.visible_columns(width);
        let widths = self.widths(&places, width);
        let cut = |text: String, width: &usize| truncate_str(&text, *width, "…").into_owned();
        let header = places.iter().map(|place| visible(&header_text(&self.headers[*place])));
        let mut columns = Columns::new();
        columns.load_style(presets::NOTHING);
        columns.set_header(header.zip(&widths).map(|(text, width)| cut(text, width)));
        for row in &self.rows {
            let cells = places.iter().map(|place| row[*place].visible());
            columns.add_row(cells.zip(&widths).map(|(text, width)| cut(text, width)));
        }
        let line = |(index, line): (usize, String)| {
            // The library begins each line with a space.
            let line = line.get(1..).unwrap_or_default().trim_end();
            match index.checked_sub(1) {
                _ if !colour => format!("{line}\n"),
                None => format!("\u{1b}[2m{line}\u{1b}[0m\n"),
                Some(index) => {
                    format!("{}\n", colourize(line, self.rows[index].as_slice(), &places, &widths))
                }
            }
        };
        columns.lines().enumerate().map(line).collect()
    }

    /// Whether a column is never truncated: part of an id, a number or a time is useless.
    fn is_never_cut(&self, place: usize) -> bool {
        let is_id = self.headers.get(place).is_some_and(|header| header == "id" || header == "question");
        is_id || self.rows.iter().all(|row| row.get(place).is_some_and(|cell| !cell.is_text))
    }

    /// Formats the rows for a pipe: tab-separated, no header, not truncated.
    pub fn tabs(&self) -> String {
        self.rows
            .iter()
            .map(|row| row.iter().map(|cell| visible(&cell.text)).collect::<Vec<_>>().join("\t") + "\n")
            .collect()
    }

    /// Formats header and rows as CSV (RFC 4180, lines end in a line feed). Unless `raw`, text that a spreadsheet would
    /// run as a formula gets a leading `'`.
    pub fn csv(&self, raw: bool) -> String {
        let headers: Vec<_> = self.headers.iter().map(Cell::text).collect();
        csv_line(&headers, raw) + &self.csv_rows(raw)
    }

    /// Formats the rows as CSV.
    pub fn csv_rows(&self, raw: bool) -> String {
        self.rows.iter().map(|row| csv_line(row, raw)).collect()
    }
}

/// Returns a header as displayed.
pub fn header_text(header: &str) -> String {
    match header {
        "response_count" => "RESPONSES".to_owned(),
        header => header.trim_end_matches("_at").to_uppercase(),
    }
}

/// Adds the colours of `row`'s cells at `places` to `line`, whose columns have these `widths`.
fn colourize(line: &str, row: &[Cell], places: &[usize], widths: &[usize]) -> String {
    let (mut begin, mut painted) = (0, String::new());
    let mut characters = line.chars();
    for (place, width) in places.iter().zip(widths) {
        let end = begin + width + GAP;
        let mut text = String::new();
        while measure_text_width(&text) < end - begin {
            let Some(next) = characters.next() else { break };
            text.push(next);
        }
        painted += &match row[*place].colour {
            Some(colour) => {
                format!("\u{1b}[{colour}m{}\u{1b}[0m{}", text.trim_end(), &text[text.trim_end().len()..])
            }
            None => text,
        };
        begin = end;
    }
    painted
}

fn members(value: &Value) -> &[(String, Value)] {
    match value {
        Value::Object(members) => members,
        _ => &[],
    }
}

fn csv_line(cells: &[Cell], raw: bool) -> String {
    let mut line = String::new();
    for (place, cell) in cells.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let guard = if !raw && cell.is_text && is_formula(&cell.text) { "'" } else { "" };
        let text = format!("{guard}{}", cell.text);
        let quoted = if text.contains(['"', ',', '\n', '\r']) || (text.is_empty() && cells.len() == 1) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        };
        let _infallible = write!(line, "{comma}{quoted}");
    }
    line.push('\n');
    line
}

/// Whether a spreadsheet would interpret `text` as a formula. `-5` and `+49.5` are numbers.
fn is_formula(text: &str) -> bool {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number
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

#[cfg(test)]
mod tests {
    use super::{Cell, Table, ago};
    use crate::clock::Timestamp;

    fn table() -> Table {
        let mut table = Table::new(["name", "=x"]);
        table.rows.push(vec![Cell::text("=1+1"), Cell::text("a,\"b\"\n")]);
        table.rows.push(vec![Cell::text("-5"), Cell::number(-5)]);
        table.rows.push(vec![Cell::text("-x\u{1b}"), Cell::text("tab\there")]);
        table
    }

    #[test]
    fn csv_runs_no_formula_and_changes_no_number() {
        assert_eq!(table().csv(false), "name,'=x\n'=1+1,\"a,\"\"b\"\"\n\"\n-5,-5\n'-x\u{1b},tab\there\n");
        assert_eq!(table().csv(true).lines().nth(1), Some("=1+1,\"a,\"\"b\"\""));
    }

    #[test]
    fn a_pipe_gets_tabs_and_nothing_else_that_steers() {
        assert_eq!(table().tabs(), "=1+1\ta,\"b\"\\n\n-5\t-5\n-x\\u{1b}\ttab\\there\n");
    }

    #[test]
    fn a_terminal_gets_columns_that_fit() {
        let now = Timestamp::parse("2026-11-20T09:00:00.000Z").unwrap();
        let mut table = Table::new(["id", "updated_at", "title", "description"]);
        let long = || Cell::text("word ".repeat(30));
        table.rows.push(vec![Cell::text("frm_7k2m9q4x1abz"), Cell::time(now, now), long(), long()]);
        let text = table.columns(50, false);
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        assert!(text.starts_with("ID ") && text.contains(" UPDATED ") && text.lines().count() == 2, "{text}");
        assert!(text.contains("\nfrm_7k2m9q4x1abz  just now  ") && text.contains('…'), "{text}");
        assert!(table.columns(40, true).contains("\u{1b}[2m"));
        let chosen = table.select(&["title".to_owned(), "id".to_owned()]).columns(50, false);
        assert!(chosen.lines().all(|line| line.chars().count() <= 50), "{chosen}");
        assert!(chosen.ends_with("…  frm_7k2m9q4x1abz\n"), "{chosen}");
    }

    #[test]
    fn a_terminal_gets_as_many_columns_as_can_be_read() {
        let mut table = Table::new(["id", "a", "b", "how_did_you_hear_of_us", "c"]);
        let long = || Cell::text("word ".repeat(9));
        table.rows.push(vec![Cell::text("sub_01k3v8m2f4"), Cell::text("x"), long(), long(), long()]);
        for (width, count) in
            [(5, 1), (16, 1), (17, 2), (26, 2), (27, 3), (37, 4), (46, 4), (47, 5), (500, 5)]
        {
            assert_eq!(table.visible_columns(width).len(), count, "{width}");
            let lines = table.columns(width, false);
            assert_eq!(lines.lines().next().unwrap().split_whitespace().count(), count, "{width}: {lines}");
        }
    }

    #[test]
    fn cells_are_cut_at_the_width_and_the_title_is_the_last_column_to_go() {
        let mut table = Table::new(["id", "status", "response_count", "updated_at", "title"]);
        let status = Cell::text("published").with_colour(32);
        let title = Cell::text("Supercalifragilistic expialidocious");
        table.rows.push(vec![
            Cell::text("frm_7k2m9q4x1abz"),
            status,
            Cell::number(12),
            Cell::number(1),
            title,
        ]);
        let row = |width, colour| table.columns(width, colour).lines().nth(1).unwrap().to_owned();
        assert_eq!(row(40, false), "frm_7k2m9q4x1abz  published  Supercalif…");
        assert_eq!(row(50, false), "frm_7k2m9q4x1abz  published  12         Supercali…");
        assert_eq!(row(22, false), "frm_7k2m9q4x1abz");
        assert!(row(80, false).ends_with("  Supercalifragilistic expialido…"), "{}", row(80, false));
        assert!(row(40, true).contains("  \u{1b}[32mpublished\u{1b}[0m  Super"), "{:?}", row(40, true));
    }

    #[test]
    fn columns_without_anything_go_first_where_room_is_short() {
        let mut table = Table::new(["id", "nothing", "name"]);
        table.rows.push(vec![Cell::text("sub_01k3v8m2f4"), Cell::text(""), Cell::text("Ada Lovelace")]);
        let headers = |width| table.clone().without_empty(width).headers;
        assert_eq!(headers(80), ["id", "nothing", "name"]);
        assert_eq!(headers(27), ["id", "name"]);
        assert_eq!(Table::new(["id", "name"]).without_empty(1).headers.len(), 2);
    }

    #[test]
    fn people_read_how_long_ago_it_was() {
        let now = Timestamp::parse("2026-11-20T09:00:00.000Z").unwrap();
        for (time, expected) in [
            ("2026-11-20T08:59:30.000Z", "just now"),
            ("2026-11-20T08:30:00.000Z", "30 min ago"),
            ("2026-11-20T06:00:00.000Z", "3 h ago"),
            ("2026-11-19T06:00:00.000Z", "1 day ago"),
            ("2026-11-10T06:00:00.000Z", "10 days ago"),
            ("2025-11-10T06:00:00.000Z", "2025-11-10"),
            ("2026-11-20T10:00:00.000Z", "2026-11-20T10:00:00.000Z"),
        ] {
            assert_eq!(ago(Timestamp::parse(time).unwrap(), now), expected);
        }
    }
}
