//! Tables of measurements next to their targets. Nothing is asserted; the reader judges the results.

use std::io::{self, Write};

/// A table of rows.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these column headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()] }
    }

    /// Adds a row, with one cell for each column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Prints the table: the first column left-aligned, the others right-aligned.
    pub(crate) fn print(&self) -> io::Result<()> {
        let columns = self.rows[0].len();
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = io::stdout().lock();
        for row in &self.rows {
            let first = format!("{:<width$}", row[0], width = widths[0]);
            let rest = row.iter().zip(&widths).skip(1).map(|(cell, width)| format!("  {cell:>width$}"));
            writeln!(out, "{first}{}", rest.collect::<String>())?;
        }
        Ok(())
    }
}

/// Prints a progress message to stderr.
pub(crate) fn report_progress(text: &str) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{text}")
}
