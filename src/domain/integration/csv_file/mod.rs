//! CSV files on the server, to which each submission is appended.

mod definition;
mod kind;
pub mod row;

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

/// The acknowledged end of a file. Stored in the same write as the deliveries that it covers, so that rows after `length` are
/// known to be unacknowledged and are cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvPosition {
    /// The settings with which it was written: with others, another file is begun.
    pub settings: CsvFile,
    /// Number of the file: 1, then one more whenever a column is added.
    pub number: u32,
    /// Columns after `id` and `submitted_at`: question ids.
    pub columns: Vec<String>,
    /// Bytes of the file that are acknowledged.
    pub length: u64,
}
