//! What a kind of integration wants sent: data for the module that opens sockets and files.

use std::fmt;

use url::Url;

use super::csv_file::CsvFile;
use crate::domain::delivery::classify::Classify;
use crate::secret::Secret;

/// An outbound effect.
#[derive(Debug, Clone)]
pub enum Outbound {
    Http(HttpRequest),
    /// Rows to append to a CSV file.
    Csv(CsvRow),
}

/// A request over HTTP. Header values are secret: some are; the URL may be.
#[derive(Clone)]
pub struct HttpRequest {
    pub method: &'static str,
    pub url: Url,
    pub headers: Vec<(String, Secret<String>)>,
    pub body: Vec<u8>,
    /// What must not be shown if the receiver sends it back.
    pub secrets: Vec<Secret<String>>,
    /// How the answer is understood.
    pub classify: Classify,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("host", &host)
            .finish_non_exhaustive()
    }
}

/// A row of a CSV file, by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRow {
    pub file: CsvFile,
    /// `id` and `submitted_at`.
    pub head: [String; 2],
    /// Question ids with their cells.
    pub cells: Vec<(String, String)>,
}
