//! Rows of tables: CSV and XLSX.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::os::unix::fs::FileExt;
use std::panic::catch_unwind;
use std::path::Path;

use calamine::{Data, Range, Reader, Xls, XlsError, Xlsx, XlsxError, open_workbook};
use csv::{ErrorKind, ReaderBuilder};

use super::{Columns, RowProblem, Rows, open, unreadable};
use crate::cli::output::exit::CliError;

/// Opens a CSV file whose columns are separated by what its first line has most of: commas, semicolons or tabs.
fn open_csv(path: &Path) -> Result<csv::Reader<File>, CliError> {
    let mut file = BufReader::new(open(path)?);
    let mut first = Vec::new();
    let read = file.read_until(b'\n', &mut first).and_then(|_| file.rewind());
    read.map_err(|error| unreadable(path, error))?;
    let count = |separator: &u8| first.iter().filter(|byte| *byte == separator).count();
    // Of several with the same count, the last: a comma.
    let separator = *b"\t;,".iter().max_by_key(|separator| count(separator)).unwrap_or(&b',');
    Ok(ReaderBuilder::new().has_headers(false).delimiter(separator).from_reader(file.into_inner()))
}

/// The records of a table with their numbers, the header first; or what is wrong with one.
type Records = Box<dyn Iterator<Item = Result<(usize, Result<Vec<String>, RowProblem>), CliError>>>;

pub(super) fn header(path: &Path, mut records: Records) -> Result<Vec<String>, CliError> {
    let (_, header) = records.next().transpose()?.unwrap_or((1, Ok(Vec::new())));
    let header = header.map_err(|(_, problem)| malformed(path, &problem))?;
    let header: Vec<_> = header.iter().map(|name| name.trim().to_owned()).collect();
    match header.iter().all(String::is_empty) {
        true => Err(CliError::usage(format!("{} has no header", path.display()))),
        false => Ok(header),
    }
}

/// Converts the records after the header; blank records are skipped.
pub(super) fn rows<'a>(records: Records, columns: &'a Columns<'a>) -> Rows<'a> {
    Box::new(records.skip(1).filter_map(move |record| match record {
        Ok((number, Ok(cells))) => Some(Ok((number, columns.row_of_cells(&cells)?))),
        Ok((number, Err(problem))) => Some(Ok((number, Err(vec![problem])))),
        Err(error) => Some(Err(error)),
    }))
}

fn malformed(path: &Path, error: &impl std::fmt::Display) -> CliError {
    CliError::usage(format!("cannot read {}: {error}", path.display()))
}

pub(super) fn csv(path: &Path) -> Result<Records, CliError> {
    let (name, reader, file) = (path.to_owned(), open_csv(path)?, open(path)?);
    let records = reader.into_records().map(move |record| match record {
        Ok(record) => {
            let line = record.position().map_or(0, |position| line_of(&file, position));
            Ok((line, Ok(record.iter().map(str::to_owned).collect())))
        }
        Err(error) => match explain(&file, &error) {
            Some((line, problem)) => Ok((line, Err(problem))),
            None => Err(malformed(&name, &error)),
        },
    });
    Ok(Box::new(records))
}

/// The line of a record that cannot be read, and why; `None` if no others can be read.
fn explain(file: &File, error: &csv::Error) -> Option<(usize, RowProblem)> {
    let (position, message) = match error.kind() {
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            (pos, format!("it has {len} cells, the header has {expected_len}"))
        }
        ErrorKind::Utf8 { pos, .. } => (pos, "not valid UTF-8".to_owned()),
        _ => return None,
    };
    let line = position.as_ref().map_or(0, |position| line_of(file, position));
    Some((line, ("malformed_file", message)))
}

/// The line of the record at `position`, which may be before the end of the line before, and before blank lines.
fn line_of(file: &File, position: &csv::Position) -> usize {
    let (mut line, mut at, mut byte) = (position.line(), position.byte(), [0]);
    while matches!(file.read_at(&mut byte, at), Ok(1)) && matches!(byte, [b'\r' | b'\n']) {
        (line, at) = (line + u64::from(byte == [b'\n']), at + 1);
    }
    usize::try_from(line).unwrap_or(usize::MAX)
}

/// Maximum number of columns of a sheet: one far cell must not take the memory of a million.
const MAX_COLUMNS: u32 = 1_000;

/// A sheet: its name, and its rows that are not empty, with their numbers.
pub type Sheet = (String, Vec<(usize, Vec<String>)>);

/// Reads the sheets of the workbook at `path`, which is XLS if its name says so, else XLSX.
pub fn sheets(path: &Path) -> Result<Vec<Sheet>, CliError> {
    let is_xls = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("xls"));
    if is_xls { xls_sheets(path) } else { xlsx_sheets(path) }
}

fn xls_sheets(path: &Path) -> Result<Vec<Sheet>, CliError> {
    open(path)?;
    let sheet = |(name, range): (String, Range<Data>)| {
        let first = range.start().map_or(1, |(row, _)| row as usize + 1);
        let cells = |row: &[Data]| row.iter().map(text_of).collect();
        (name, (first..).zip(range.rows().map(cells)).collect())
    };
    let read = || {
        let mut workbook: Xls<_> = open_workbook(path).map_err(|error: XlsError| malformed(path, &error))?;
        Ok(workbook.worksheets().into_iter().map(sheet).collect())
    };
    // The reader of this old format panics on some damaged files.
    catch_unwind(read).unwrap_or_else(|_panic| Err(malformed(path, &"the workbook is damaged")))
}

fn xlsx_sheets(path: &Path) -> Result<Vec<Sheet>, CliError> {
    open(path)?;
    let failed = |error: XlsxError| malformed(path, &error);
    let mut workbook: Xlsx<_> = open_workbook(path).map_err(failed)?;
    let mut sheets = Vec::new();
    for name in workbook.sheet_names() {
        let mut sheet: Vec<(usize, Vec<String>)> = Vec::new();
        let mut cells = workbook.worksheet_cells_reader(&name).map_err(failed)?;
        while let Some(cell) = cells.next_cell().map_err(failed)? {
            let (row, column) = cell.get_position();
            if column >= MAX_COLUMNS {
                let message = format!("{} has more than {MAX_COLUMNS} columns", path.display());
                return Err(CliError::usage_with_help(message, "delete what is right of the answers"));
            }
            let (number, column) = (row as usize + 1, column as usize);
            if sheet.last().is_none_or(|(last, _)| *last != number) {
                sheet.push((number, Vec::new()));
            }
            let (_, record) = sheet.last_mut().expect("it was just added");
            record.resize(record.len().max(column + 1), String::new());
            record[column] = text_of(&cell.get_value().clone().into());
        }
        sheets.push((name, sheet));
    }
    Ok(sheets)
}

/// Reads the first sheet of a workbook, and those with the same header, on which an export continues.
pub(super) fn xlsx(path: &Path) -> Result<Records, CliError> {
    let mut records: Vec<(usize, Vec<String>)> = Vec::new();
    for (_, sheet) in xlsx_sheets(path)? {
        let is_same = match (records.first(), sheet.first()) {
            (Some((_, header)), Some((_, other))) => header == other,
            (header, _) => header.is_none(),
        };
        if is_same {
            // Skips the header of each further sheet.
            let skipped = usize::from(!records.is_empty());
            records.extend(sheet.into_iter().skip(skipped));
        }
    }
    Ok(Box::new(records.into_iter().map(|(number, cells)| Ok((number, Ok(cells))))))
}

/// The text of a cell as a person would type it.
fn text_of(cell: &Data) -> String {
    match cell {
        Data::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        Data::DateTime(moment) => {
            let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
            let (date, time) =
                (format!("{year:04}-{month:02}-{day:02}"), format!("{hour:02}:{minute:02}:{second:02}"));
            match moment.as_f64() {
                below if below < 1.0 => time,
                whole if whole.fract() == 0.0 => date,
                _ => format!("{date}T{time}Z"),
            }
        }
        other => other.to_string(),
    }
}
