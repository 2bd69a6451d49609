//! XLSX workbooks (ECMA-376), written row by row: memory does not grow with the number of rows.

mod xml;

use std::io::{self, Seek, SeekFrom, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::cli::output::table::Cell;

/// Maximum number of columns of a sheet.
pub const MAX_COLUMNS: usize = 16_384;

/// Maximum number of rows of a sheet, with the header.
const MAX_ROWS: u32 = 1_048_576;

/// Maximum size of the XML of a sheet. Excel wants to repair archives in the ZIP64 format, which begins at 4 GiB.
const MAX_SHEET_BYTES: u64 = 4_000_000_000;

/// Level at which a larger one makes the file 8 % smaller, and takes twice the time.
const COMPRESSION_LEVEL: i64 = 3;

/// A workbook with one table. What does not fit on a sheet continues on the next, under the same header.
#[derive(Debug)]
pub struct Workbook<W: Write + Seek> {
    archive: ZipWriter<ArchiveWriter<W>>,
    /// The names of the columns: A, B, C.
    columns: Vec<String>,
    headers: Vec<Cell>,
    sheets: u32,
    /// Rows of the current sheet.
    rows: u32,
    /// Bytes of the current sheet, uncompressed.
    bytes: u64,
    max_rows: u32,
    /// Cells whose text was cut.
    cut: u64,
}

impl<W: Write + Seek> Workbook<W> {
    /// Creates a workbook in `writer`, which is empty.
    pub fn new(writer: W) -> io::Result<Self> {
        let archive = ZipWriter::new(ArchiveWriter { writer, has_failed: false });
        let mut workbook = Self {
            archive,
            columns: Vec::new(),
            headers: Vec::new(),
            sheets: 0,
            rows: 0,
            bytes: 0,
            max_rows: MAX_ROWS,
            cut: 0,
        };
        // Programs that detect file types look at the first parts.
        workbook.part("_rels/.rels", xml::PACKAGE_RELATIONSHIPS)?;
        workbook.part("xl/styles.xml", xml::STYLES)?;
        Ok(workbook)
    }

    /// Begins the table with its header, at most [`MAX_COLUMNS`] wide.
    pub fn begin(&mut self, headers: Vec<Cell>) -> io::Result<()> {
        self.columns = (0..headers.len()).map(xml::column_name).collect();
        self.headers = headers;
        self.begin_sheet()
    }

    /// Appends a row. Text that a spreadsheet would run as a formula gets a leading `'`, unless `raw`.
    pub fn append(&mut self, cells: &[Cell], raw: bool) -> io::Result<()> {
        let (mut row, cut) = xml::row(&self.columns, self.rows + 1, cells, raw);
        if self.rows == self.max_rows || self.bytes + row.len() as u64 > MAX_SHEET_BYTES {
            self.end_sheet()?;
            self.begin_sheet()?;
            (row, _) = xml::row(&self.columns, self.rows + 1, cells, raw);
        }
        self.cut += cut;
        self.rows += 1;
        self.write(&row)
    }

    /// Completes the workbook. Returns its writer, and the number of cells whose text was cut.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.end_sheet()?;
        self.part("xl/workbook.xml", &xml::workbook(self.sheets))?;
        self.part("xl/_rels/workbook.xml.rels", &xml::workbook_relationships(self.sheets))?;
        self.part("[Content_Types].xml", &xml::content_types(self.sheets))?;
        Ok((self.archive.finish()?.writer, self.cut))
    }

    fn begin_sheet(&mut self) -> io::Result<()> {
        self.sheets += 1;
        self.bytes = 0;
        self.begin_part(&xml::sheet_name(self.sheets))?;
        self.write(xml::SHEET_BEGIN)?;
        let (header, _) = xml::row(&self.columns, 1, &self.headers, false);
        self.rows = 1;
        self.write(&header)
    }

    fn end_sheet(&mut self) -> io::Result<()> {
        self.write(xml::SHEET_END)
    }

    fn part(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.begin_part(name)?;
        self.write(text)
    }

    fn begin_part(&mut self, name: &str) -> io::Result<()> {
        let options = SimpleFileOptions::default().compression_level(Some(COMPRESSION_LEVEL));
        Ok(self.archive.start_file(name, options)?)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len() as u64;
        self.archive.write_all(text.as_bytes())
    }
}

/// The writer of the archive. After its first failure it discards what it gets: `ZipWriter` completes the archive when it is
/// dropped, and would print the next failure to stderr.
#[derive(Debug)]
struct ArchiveWriter<W> {
    writer: W,
    has_failed: bool,
}

impl<W> ArchiveWriter<W> {
    /// Returns the result of `operation`; `discarded` after a failure.
    fn attempt<T>(&mut self, discarded: T, operation: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.has_failed {
            return Ok(discarded);
        }
        operation(&mut self.writer).inspect_err(|_| self.has_failed = true)
    }
}

impl<W: Write> Write for ArchiveWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(bytes.len(), |writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), W::flush)
    }
}

impl<W: Seek> Seek for ArchiveWriter<W> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.attempt(0, |writer| writer.seek(position))
    }
}
