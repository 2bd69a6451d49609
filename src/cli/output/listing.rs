//! Lists in all formats: complete for programs, the first fifty rows for people.

use serde::Serialize;

use crate::cli::output::columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::yaml;
use crate::cli::output::{Format, Output, value_of};
use crate::client::{MAX_PAGE, Pages};
use crate::domain::json::Value;

/// Default number of rows in a table.
const DEFAULT_ROWS: usize = 50;

/// Number of items to list.
#[derive(Debug, Clone, Copy)]
pub struct ListLimit {
    /// Maximum number of items.
    pub max: usize,
    /// Whether the default limit applies: fifty rows in a table, with a note if there are more.
    pub is_default: bool,
}

impl ListLimit {
    /// No limit.
    pub const ALL: Self = Self { max: usize::MAX, is_default: false };

    /// Creates the limit from `--limit` and `--all`.
    pub fn from_flags(limit: Option<usize>, all: bool, format: Format) -> Self {
        let is_default = limit.is_none() && !all && format == Format::Table;
        let max = limit.unwrap_or(if is_default { DEFAULT_ROWS } else { usize::MAX });
        Self { max, is_default }
    }

    /// Returns the best page size.
    pub fn page_size(self) -> usize {
        self.max.clamp(1, MAX_PAGE)
    }
}

/// How to show a list.
pub struct Listing<'a, T> {
    pub output: &'a Output,
    pub list_limit: ListLimit,
    /// Whether to leave formulas in CSV unescaped.
    pub raw: bool,
    pub headers: Vec<String>,
    /// A column that a terminal shows only if a row has a value.
    pub optional: &'static str,
    /// Message for an empty list.
    pub none: String,
    pub row: &'a dyn Fn(&T) -> Vec<Cell>,
    /// Wraps all items in the API's body.
    pub body: &'a dyn Fn(Vec<Value>) -> Value,
}

impl<T: Serialize> Listing<'_, T> {
    /// Shows the list. Returns the number of rows if the default limit cut it.
    pub async fn show(&self, pages: &mut Pages<'_, T>) -> Result<Option<usize>, CliError> {
        let selected = columns::resolve_names(&self.output.columns, &self.headers)?;
        let mut remaining = self.list_limit.max;
        let mut items: Vec<T> = Vec::new();
        let mut is_truncated = false;
        // Written after the first page has arrived: a failure leaves stdout empty.
        let is_export = matches!(self.output.format, Format::Csv | Format::Xlsx);
        let mut header = is_export.then(|| self.table(&[], &selected));
        // One page is always requested, even with a limit of 0: the query must be checked.
        while let Some(mut page) = pages.next().await? {
            if let Some(header) = header.take() {
                self.output.export_header(&header, self.raw)?;
            }
            is_truncated = page.len() > remaining || (page.len() == remaining && pages.has_more());
            page.truncate(remaining);
            remaining -= page.len();
            match self.output.format {
                Format::Jsonl => self.output.json_lines(&page)?,
                Format::Csv | Format::Xlsx => {
                    self.output.export_rows(&self.table(&page, &selected), self.raw)?;
                }
                Format::Table | Format::Json | Format::Yaml => items.extend(page),
            }
            if remaining == 0 {
                break;
            }
        }
        self.write_collected(&items, &selected)?;
        Ok((is_truncated && self.list_limit.is_default).then_some(items.len()))
    }

    /// Shows a list that comes as a whole.
    pub fn show_items(&self, items: &[T]) -> Result<(), CliError> {
        let selected = columns::resolve_names(&self.output.columns, &self.headers)?;
        match self.output.format {
            Format::Jsonl => self.output.json_lines(items),
            Format::Csv | Format::Xlsx => {
                let table = self.table(items, &selected);
                self.output.export_header(&table, self.raw)?;
                self.output.export_rows(&table, self.raw)
            }
            Format::Table | Format::Json | Format::Yaml => self.write_collected(items, &selected),
        }
    }

    /// Writes the formats that need all items at once.
    fn write_collected(&self, items: &[T], selected: &[String]) -> Result<(), CliError> {
        let body = || {
            let values: Result<Vec<_>, _> = items.iter().map(value_of).collect();
            values.map(self.body)
        };
        match self.output.format {
            Format::Table if items.is_empty() => {
                if self.output.stderr_is_terminal() && self.list_limit.max > 0 {
                    self.output.status(&self.none);
                }
                Ok(())
            }
            Format::Table => {
                let table = self.table(items, selected);
                let hides_unused = selected.is_empty() && self.output.truncates_rows();
                self.output.rows(&if hides_unused { table.without_unused(self.optional) } else { table })
            }
            Format::Json => self.output.json(&body()?),
            Format::Yaml => self.output.data(&yaml::yaml(&body()?)?),
            Format::Jsonl | Format::Csv | Format::Xlsx => Ok(()),
        }
    }

    fn table(&self, items: &[T], selected: &[String]) -> Table {
        let table = Table { headers: self.headers.clone(), rows: items.iter().map(self.row).collect() };
        table.select(selected)
    }
}
