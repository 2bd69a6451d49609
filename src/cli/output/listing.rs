//! Lists in every format: page by page where a program reads, the first fifty where a person does.

use serde::Serialize;

use crate::cli::output::columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::yaml;
use crate::cli::output::{Format, Output, json_line, value_of};
use crate::client::{MAX_PAGE, Pages};
use crate::domain::json::Value;

/// Rows that a table has unless more are asked for.
const FEW: usize = 50;

/// How many items were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    All,
    AtMost(usize),
    /// A table shows the first fifty and says that there are more.
    Usual,
}

impl Want {
    /// What `--limit` and `--all` come to.
    pub fn of(limit: Option<usize>, all: bool) -> Self {
        match limit {
            Some(limit) => Self::AtMost(limit),
            None if all => Self::All,
            None => Self::Usual,
        }
    }

    /// How many items are shown at most.
    pub fn most(self, format: Format) -> usize {
        match (self, format) {
            (Self::AtMost(limit), _) => limit,
            (Self::Usual, Format::Table) => FEW,
            (Self::Usual | Self::All, _) => usize::MAX,
        }
    }

    /// Whether the list may end before all that was asked for is shown, so that it is to be said how much there is.
    pub fn may_be_cut(self, format: Format) -> bool {
        self == Self::Usual && format == Format::Table
    }

    /// How large pages are best.
    pub fn page(self, format: Format) -> usize {
        self.most(format).clamp(1, MAX_PAGE)
    }
}

/// How a list is shown.
pub struct Listing<'a, T> {
    pub output: &'a Output,
    pub want: Want,
    /// Leave formulas in CSV as they are.
    pub raw: bool,
    pub headers: Vec<String>,
    /// A column that a terminal shows only where a row has something in it.
    pub optional: &'static str,
    /// What a person reads where there is nothing.
    pub none: String,
    pub row: &'a dyn Fn(&T) -> Vec<Cell>,
    /// The API's body around all items.
    pub body: &'a dyn Fn(Vec<Value>) -> Value,
}

impl<T: Serialize> Listing<'_, T> {
    /// Shows the list. Gives the number of rows shown if there are more that nobody asked to leave out.
    pub async fn show(&self, pages: &mut Pages<'_, T>) -> Result<Option<usize>, CliError> {
        let wanted = columns::find(&self.output.columns, &self.headers)?;
        let mut left = self.want.most(self.output.format);
        let mut taken: Vec<T> = Vec::new();
        let mut cut = false;
        if self.output.format == Format::Csv {
            self.output.data(&self.table(&[], &wanted).csv(self.raw))?;
        }
        // Also where none is wanted: what is wrong with the question is told.
        while let Some(mut page) = pages.next().await? {
            cut = page.len() > left || (page.len() == left && pages.has_more());
            page.truncate(left);
            left -= page.len();
            match self.output.format {
                Format::Jsonl => self.lines(&page)?,
                Format::Csv => self.output.data(&self.table(&page, &wanted).csv_rows(self.raw))?,
                Format::Table | Format::Json | Format::Yaml => taken.extend(page),
            }
            if left == 0 {
                break;
            }
        }
        self.whole(&taken, &wanted)?;
        Ok((cut && self.want == Want::Usual).then_some(taken.len()))
    }

    fn lines(&self, page: &[T]) -> Result<(), CliError> {
        let lines: Result<String, CliError> = page.iter().map(json_line).collect();
        self.output.data(&lines?)
    }

    /// The formats that need all items before the first can be written.
    fn whole(&self, items: &[T], wanted: &[String]) -> Result<(), CliError> {
        let body = || {
            let values: Result<Vec<_>, _> = items.iter().map(value_of).collect();
            values.map(self.body)
        };
        match self.output.format {
            Format::Table if items.is_empty() => {
                if self.output.talk_is_terminal() && self.want != Want::AtMost(0) {
                    self.output.say(&self.none);
                }
                Ok(())
            }
            Format::Table => {
                let table = self.table(items, wanted);
                let hides_unused = wanted.is_empty() && self.output.cuts_rows();
                self.output.table(&if hides_unused { table.without_unused(self.optional) } else { table })
            }
            Format::Json => self.output.json(&body()?),
            Format::Yaml => self.output.data(&yaml::yaml(&body()?)?),
            Format::Jsonl | Format::Csv => Ok(()),
        }
    }

    fn table(&self, items: &[T], wanted: &[String]) -> Table {
        let table = Table { headers: self.headers.clone(), rows: items.iter().map(self.row).collect() };
        table.only(wanted)
    }
}
