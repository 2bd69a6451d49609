//! CSV files on the server, with one row for each submission.

mod definition;
mod kind;
pub mod row;

pub use kind::CsvRows;

use serde::{Deserialize, Serialize};

pub use kind::CsvExport;

const DELIMITER: &str = "delimiter";

/// A CSV file on the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvFile {
    /// Relative to the form's folder below `exports/` of the data directory, which is named by its id; ends in `.csv`.
    pub path: String,
    /// One ASCII character.
    pub delimiter: char,
}
