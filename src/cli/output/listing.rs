//! Lists in all formats: complete for programs, the first fifty rows for people.

use clap::Args;
use serde::Serialize;

use crate::cli::input::values::count;
use crate::cli::output::columns::resolve_names;
use crate::cli::output::exit::CliError;
use crate::cli::output::humanize::grouped;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::yaml;
use crate::cli::output::{Format, Output, value_of};
use crate::client::{MAX_PAGE, Pages};
use crate::domain::json::Value;

/// Default number of rows in a table.
const DEFAULT_ROWS: usize = 50;

/// The flags for the number of items.
#[derive(Debug, Clone, Copy, Args)]
pub struct ListLimit {
    /// Maximum number to show
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "all")]
    pub limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    pub all: bool,
}

impl ListLimit {
    const ALL: Self = Self { limit: None, all: true };

    /// Whether the default limit applies: fifty rows in a table, with a note if there are more.
    pub fn is_default(self, format: Format) -> bool {
        self.limit.is_none() && !self.all && format == Format::Table
    }

    /// Returns the maximum number of items.
    pub fn max(self, format: Format) -> usize {
        self.limit.unwrap_or(if self.is_default(format) { DEFAULT_ROWS } else { usize::MAX })
    }

    /// Returns the best page size.
    pub fn page_size(self, format: Format) -> usize {
        self.max(format).clamp(1, MAX_PAGE)
    }
}

/// A column of a list of `T`.
pub struct Column<'a, T> {
    name: String,
    cell: Box<dyn Fn(&T) -> Cell + 'a>,
    shown: Shown,
}

/// When a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Always,
    /// Also if it is not chosen, but for a table in a pipe.
    OutsidePipes,
    IfChosen,
}

impl<'a, T> Column<'a, T> {
    /// Creates a column that is always shown, with the API's name for it.
    pub fn new(name: impl Into<String>, cell: impl Fn(&T) -> Cell + 'a) -> Self {
        Self { name: name.into(), cell: Box::new(cell), shown: Shown::Always }
    }

    /// Leaves the column out of a table in a pipe, unless it is chosen.
    #[must_use]
    pub fn outside_pipes(self) -> Self {
        Self { shown: Shown::OutsidePipes, ..self }
    }

    /// Shows the column only if it is chosen.
    #[must_use]
    pub fn if_chosen(self) -> Self {
        Self { shown: Shown::IfChosen, ..self }
    }
}

/// How to show a list.
pub struct Listing<'a, T> {
    output: &'a Output,
    /// The member of the API's body that has the items.
    member: &'static str,
    /// Message for an empty list.
    none: String,
    columns: Vec<Column<'a, T>>,
    limit: ListLimit,
    total: Option<u64>,
    raw: bool,
}

impl<'a, T: Serialize> Listing<'a, T> {
    /// Creates a list of all items, in the `member` of the API's body. `none` is the message for an empty one.
    pub fn new(
        output: &'a Output,
        member: &'static str,
        none: impl Into<String>,
        columns: Vec<Column<'a, T>>,
    ) -> Self {
        Self { output, member, none: none.into(), columns, limit: ListLimit::ALL, total: None, raw: false }
    }

    #[must_use]
    pub fn limit(self, limit: ListLimit) -> Self {
        Self { limit, ..self }
    }

    /// Sets the total number of items, if it is known before the first page.
    #[must_use]
    pub fn total(self, total: Option<u64>) -> Self {
        Self { total, ..self }
    }

    /// Sets whether to leave formulas in CSV unescaped.
    #[must_use]
    pub fn raw(self, raw: bool) -> Self {
        Self { raw, ..self }
    }

    /// Shows the list, and says so if the default limit cut it.
    pub async fn show<P>(&self, pages: &mut Pages<'_, P>) -> Result<(), CliError>
    where
        T: From<P>,
    {
        let (columns, format) = (self.chosen()?, self.output.format);
        let mut remaining = self.limit.max(format);
        let (mut kept, mut is_first) = (Vec::new(), true);
        // One page is always requested, even with a limit of 0: the query must be checked.
        while let Some(page) = pages.next().await? {
            let has_more = page.len() > remaining || (page.len() == remaining && pages.has_more());
            let page: Vec<T> = page.into_iter().take(remaining).map(T::from).collect();
            remaining -= page.len();
            kept.extend(self.write_page(page, &columns, is_first)?);
            is_first = false;
            if remaining > 0 {
                continue;
            }
            self.write_kept(&kept, &columns)?;
            if has_more && self.limit.is_default(format) {
                let of = self.total.or(pages.total()).map(|total| format!(" of {}", grouped(total)));
                let of = of.unwrap_or_default();
                self.output.status(&format!("showing {}{of} — use --all or --limit N", kept.len()));
            }
            return Ok(());
        }
        self.write_kept(&kept, &columns)
    }

    /// Shows a list that comes as a whole.
    pub fn show_items(&self, items: Vec<T>) -> Result<(), CliError> {
        let columns = self.chosen()?;
        let kept = self.write_page(items, &columns, true)?;
        self.write_kept(&kept, &columns)
    }

    /// Returns the columns that `--columns` chooses, or the default ones.
    fn chosen(&self) -> Result<Vec<&Column<'a, T>>, CliError> {
        let is_in_pipe = self.output.format == Format::Table && !self.output.truncates_rows();
        let is_shown = |column: &&Column<'_, T>| match column.shown {
            Shown::Always => true,
            Shown::OutsidePipes => !is_in_pipe,
            Shown::IfChosen => false,
        };
        if self.output.columns.is_empty() {
            return Ok(self.columns.iter().filter(is_shown).collect());
        }
        let available: Vec<_> = self.columns.iter().map(|column| &column.name).collect();
        let names = resolve_names(&self.output.columns, &available)?;
        let find = |name: &String| self.columns.iter().find(|column| column.name == *name);
        Ok(names.iter().filter_map(find).collect())
    }

    /// Writes the formats that go out page by page, and returns the items of the others.
    fn write_page(
        &self,
        items: Vec<T>,
        columns: &[&Column<'a, T>],
        is_first: bool,
    ) -> Result<Vec<T>, CliError> {
        match self.output.format {
            Format::Jsonl => self.output.json_lines(&items)?,
            Format::Csv | Format::Xlsx => {
                let table = table(&items, columns);
                if is_first {
                    self.output.export_header(&table)?;
                }
                self.output.export_rows(&table, self.raw)?;
            }
            Format::Table | Format::Json | Format::Yaml => return Ok(items),
        }
        Ok(Vec::new())
    }

    /// Writes the formats that need all items at once.
    fn write_kept(&self, items: &[T], columns: &[&Column<'a, T>]) -> Result<(), CliError> {
        let body = || {
            let values: Result<Vec<_>, CliError> = items.iter().map(value_of).collect();
            Ok::<_, CliError>(Value::Object(vec![(self.member.to_owned(), Value::Array(values?))]))
        };
        match self.output.format {
            Format::Table if items.is_empty() => {
                if self.output.stderr_is_terminal() && self.limit.max(Format::Table) > 0 {
                    self.output.status(&self.none);
                }
                Ok(())
            }
            Format::Table => self.output.rows(&table(items, columns)),
            Format::Json => self.output.json(&body()?),
            Format::Yaml => self.output.data(&yaml::yaml(&body()?)?),
            Format::Jsonl | Format::Csv | Format::Xlsx => Ok(()),
        }
    }
}

fn table<T>(items: &[T], columns: &[&Column<'_, T>]) -> Table {
    let row = |item| columns.iter().map(|column| (column.cell)(item)).collect();
    let headers = columns.iter().map(|column| column.name.clone()).collect();
    Table { headers, rows: items.iter().map(row).collect() }
}
