//! XLSX workbooks, written row by row: memory does not grow with the number of rows.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use rust_xlsxwriter::{Format, XlsxError};

use crate::cli::output::io_panic::catch_io_panic;
use crate::cli::output::table::Cell;
use crate::cli::output::workbook_cell::Content;

/// Maximum number of columns of a sheet.
pub const MAX_COLUMNS: usize = 16_384;

/// Maximum number of rows of a sheet, with the header.
const MAX_ROWS: u32 = 1_048_576;

/// Maximum size of the XML of a sheet. Excel wants to repair archives in the ZIP64 format, which begins at 4 GiB.
const MAX_SHEET_BYTES: usize = 4_000_000_000;

/// Maximum size of the XML around the cells of a row.
const MAX_ROW_TAG_BYTES: usize = 100;

/// Of 50,000 rows, level 1 makes the file 37 % larger for 7 % less time, and level 6 makes it 15 % smaller for 70 % more time
/// (debug build).
const COMPRESSION_LEVEL: u8 = 2;

/// A workbook with one table. What does not fit on a sheet continues on the next, under the same header.
pub struct Workbook<W> {
    writer: W,
    book: rust_xlsxwriter::Workbook,
    headers: Vec<Content>,
    sheets: usize,
    /// Rows of the current sheet.
    rows: u32,
    /// Upper bound of the size of the XML of the current sheet.
    size: usize,
    /// Cells whose text was cut.
    cut: u64,
}

impl<W: Write + Send> Workbook<W> {
    /// Creates a workbook with at most [`MAX_COLUMNS`] headers. It is written to `writer` at the end; until then, its rows
    /// are in files in `folder` that have no name.
    pub fn new(writer: W, folder: &Path, headers: &[Cell]) -> io::Result<Self> {
        let mut book = rust_xlsxwriter::Workbook::new();
        book.set_zip_compression_level(COMPRESSION_LEVEL);
        book.set_tempdir(folder).map_err(io_error)?;
        let headers = headers.iter().map(|cell| Content::new(cell, false)).collect();
        let mut workbook = Self { writer, book, headers, sheets: 0, rows: 0, size: 0, cut: 0 };
        catch_io_panic(|| workbook.begin_sheet().map_err(io_error))?;
        Ok(workbook)
    }

    /// Appends a row. Text that a spreadsheet would run as a formula gets a leading `'`, unless `raw`.
    pub fn append(&mut self, cells: &[Cell], raw: bool) -> io::Result<()> {
        let row: Vec<_> = cells.iter().map(|cell| Content::new(cell, raw)).collect();
        let cut = row.iter().filter(|content| content.is_cut()).count() as u64;
        catch_io_panic(|| self.append_row(&row).map_err(io_error))?;
        self.cut += cut;
        Ok(())
    }

    /// Completes the workbook. Returns its writer, and the number of cells whose text was cut.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        let mut archive = ArchiveWriter { writer: &mut self.writer, length: 0, error: None };
        let saved = catch_io_panic(|| self.book.save_to_writer(&mut archive).map_err(io_error));
        archive.error.map_or(saved, Err)?;
        Ok((self.writer, self.cut))
    }

    /// Begins a sheet with its header: bold, and visible while the rows scroll.
    fn begin_sheet(&mut self) -> Result<(), XlsxError> {
        let sheet = self.book.add_worksheet_with_constant_memory()?;
        sheet.set_freeze_panes(1, 0)?.set_row_format(0, &Format::new().set_bold())?;
        (0..).zip(&self.headers).try_for_each(|(column, header)| header.write(sheet, 0, column))?;
        self.sheets += 1;
        self.rows = 1;
        self.size = max_xml_bytes(&self.headers);
        Ok(())
    }

    /// Appends a row to the current sheet, or to the next if it does not fit.
    fn append_row(&mut self, row: &[Content]) -> Result<(), XlsxError> {
        let size = max_xml_bytes(row);
        if self.rows == MAX_ROWS || self.size + size > MAX_SHEET_BYTES {
            self.begin_sheet()?;
        }
        let sheet = self.book.worksheet_from_index(self.sheets - 1)?;
        (0..).zip(row).try_for_each(|(column, content)| content.write(sheet, self.rows, column))?;
        self.rows += 1;
        self.size += size;
        Ok(())
    }
}

impl<W> fmt::Debug for Workbook<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Workbook");
        fields.field("sheets", &self.sheets).field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The writer of the archive. It keeps its first error and discards what comes after: the crate `zip` would try to complete
/// the archive, and print to stderr that it cannot.
struct ArchiveWriter<'a, W> {
    writer: &'a mut W,
    length: u64,
    error: Option<io::Error>,
}

impl<W: Write> Write for ArchiveWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        if self.error.is_none() {
            // Beyond, the archive would be in the ZIP64 format.
            self.error = match u32::try_from(self.length) {
                Ok(_) => self.writer.write_all(bytes).err(),
                Err(error) => Some(io::Error::new(io::ErrorKind::FileTooLarge, error)),
            };
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns an upper bound of the size of the XML of a row.
fn max_xml_bytes(row: &[Content]) -> usize {
    MAX_ROW_TAG_BYTES + row.iter().map(Content::max_xml_bytes).sum::<usize>()
}

fn io_error(error: XlsxError) -> io::Error {
    match error {
        XlsxError::IoError(error) | XlsxError::TempFileError(_, error) => error,
        XlsxError::ZipError(error) => error.into(),
        error => io::Error::other(error),
    }
}
