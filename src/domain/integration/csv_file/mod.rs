//! CSV files on the server, with one row for each submission.

mod definition;
mod kind;
pub mod row;

pub use kind::CsvRows;

use serde::{Deserialize, Serialize};

use super::kind::kind;

pub(super) const PATH: &str = "path";
const DELIMITER: &str = "delimiter";

kind! {
    /// A CSV file with a row for each submission.
    CsvExport
}

/// A CSV file on the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvFile {
    /// Relative to the form's folder below `exports/` of the data directory, which is named by its id; ends in `.csv`.
    pub path: String,
    /// One ASCII character.
    pub delimiter: char,
}
