//! XLSX workbooks (ECMA-376), written row by row: memory does not grow with the number of rows.

use std::io::{self, Seek, Write};

use crate::cli::output::table::Cell;
use crate::cli::output::workbook_xml as xml;
use crate::cli::output::zip_archive::{Archive, Part};

/// Maximum number of columns of a sheet.
pub const MAX_COLUMNS: usize = 16_384;

/// Maximum number of rows of a sheet, with the header.
const MAX_ROWS: u32 = 1_048_576;

/// Maximum size of the XML of a sheet. Excel wants to repair archives in the ZIP64 format, which begins at 4 GiB.
const MAX_SHEET_BYTES: u64 = 4_000_000_000;

/// A workbook with one table. What does not fit on a sheet continues on the next, under the same header.
#[derive(Debug)]
pub struct Workbook<W> {
    archive: Archive<W>,
    /// The names of the columns: A, B, C.
    columns: Vec<String>,
    headers: Vec<Cell>,
    /// The current sheet.
    sheet: Part,
    /// Rows of the current sheet.
    rows: u32,
    sheets: u32,
    /// Cells whose text was cut.
    cut: u64,
}

impl<W: Write + Seek> Workbook<W> {
    /// Creates a workbook in `writer`, which is empty, with at most [`MAX_COLUMNS`] headers.
    pub fn new(writer: W, headers: Vec<Cell>) -> io::Result<Self> {
        let columns: Vec<_> = (0..headers.len()).map(xml::column_name).collect();
        let mut archive = Archive::new(writer);
        // Programs that detect file types look at the first parts.
        archive.add("_rels/.rels", xml::PACKAGE_RELATIONSHIPS)?;
        archive.add("xl/styles.xml", xml::STYLES)?;
        let sheet = begin_sheet(&mut archive, 1, &columns, &headers)?;
        Ok(Self { archive, columns, headers, sheet, rows: 1, sheets: 1, cut: 0 })
    }

    /// Appends a row. Text that a spreadsheet would run as a formula gets a leading `'`, unless `raw`.
    pub fn append(&mut self, cells: &[Cell], raw: bool) -> io::Result<()> {
        let (mut row, cut) = xml::row(&self.columns, self.rows + 1, cells, raw);
        if self.rows == MAX_ROWS || self.sheet.size + row.len() as u64 > MAX_SHEET_BYTES {
            self.sheets += 1;
            self.rows = 1;
            self.archive.write(&mut self.sheet, xml::SHEET_END)?;
            self.archive.end(&mut self.sheet)?;
            self.sheet = begin_sheet(&mut self.archive, self.sheets, &self.columns, &self.headers)?;
            (row, _) = xml::row(&self.columns, self.rows + 1, cells, raw);
        }
        self.cut += cut;
        self.rows += 1;
        self.archive.write(&mut self.sheet, &row)
    }

    /// Completes the workbook. Returns its writer, and the number of cells whose text was cut.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.archive.write(&mut self.sheet, xml::SHEET_END)?;
        self.archive.end(&mut self.sheet)?;
        self.archive.add("xl/workbook.xml", &xml::workbook(self.sheets))?;
        self.archive.add("xl/_rels/workbook.xml.rels", &xml::workbook_relationships(self.sheets))?;
        self.archive.add("[Content_Types].xml", &xml::content_types(self.sheets))?;
        Ok((self.archive.finish()?, self.cut))
    }
}

/// Begins a sheet, the first being 1, with its header.
fn begin_sheet<W: Write + Seek>(
    archive: &mut Archive<W>,
    sheet: u32,
    columns: &[String],
    headers: &[Cell],
) -> io::Result<Part> {
    let mut part = archive.begin(&xml::sheet_name(sheet))?;
    let (header, _) = xml::row(columns, 1, headers, false);
    archive.write(&mut part, &(xml::SHEET_BEGIN.to_owned() + &header))?;
    Ok(part)
}
