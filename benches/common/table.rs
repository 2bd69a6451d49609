//! Figures in aligned columns, the targets beside them. Nothing is asserted: whoever reads decides.

use std::io::{self, Write};

/// A table that grows by rows and is printed once.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table under `heads`.
    pub(crate) fn new(heads: &[&str]) -> Self {
        Self { rows: vec![heads.iter().map(|&head| head.to_owned()).collect()] }
    }

    /// Adds a row, with as many cells as there are heads.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Prints the table: the first column to the left, figures to the right.
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

/// Tells how far a long benchmark has come.
pub(crate) fn say(text: &str) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{text}")
}
