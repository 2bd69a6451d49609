//! Rows of tables: CSV and XLSX.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

use calamine::{Data, Range, Reader, Xlsx, open_workbook};
use csv::{ErrorKind, ReaderBuilder};

use super::{Columns, NumberedRow, RowProblem, Rows, open, unreadable};
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
    Ok(ReaderBuilder::new().delimiter(separator).from_reader(file.into_inner()))
}

pub(super) fn csv_header(path: &Path) -> Result<Vec<String>, CliError> {
    let mut reader = open_csv(path)?;
    let header = reader.headers().map_err(|error| malformed(path, &error))?;
    let header: Vec<_> = header.iter().map(|name| name.trim().to_owned()).collect();
    not_empty(path, header)
}

fn not_empty(path: &Path, header: Vec<String>) -> Result<Vec<String>, CliError> {
    match header.iter().all(String::is_empty) {
        true => Err(CliError::usage(format!("{} has no header", path.display()))),
        false => Ok(header),
    }
}

fn malformed(path: &Path, error: &impl std::fmt::Display) -> CliError {
    CliError::usage(format!("cannot read {}: {error}", path.display()))
}

pub(super) fn csv_rows<'a>(path: &Path, columns: &'a Columns<'a>) -> Result<Rows<'a>, CliError> {
    let (name, reader) = (path.to_owned(), open_csv(path)?);
    let rows = reader.into_records().filter_map(move |record| match record {
        Ok(record) => {
            let line = record.position().map_or(0, csv::Position::line);
            Some(Ok((number(line), columns.row_of_cells(record.iter())?)))
        }
        Err(error) => Some(match explain(&error) {
            Some((line, problem)) => Ok((line, Err(vec![problem]))),
            None => Err(malformed(&name, &error)),
        }),
    });
    Ok(Box::new(rows))
}

/// The line of a record that cannot be read, and why; `None` if no others can be read.
fn explain(error: &csv::Error) -> Option<(usize, RowProblem)> {
    let (position, message) = match error.kind() {
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            (pos, format!("it has {len} cells, the header has {expected_len}"))
        }
        ErrorKind::Utf8 { pos, .. } => (pos, "not valid UTF-8".to_owned()),
        _ => return None,
    };
    Some((
        position.as_ref().map_or(0, |position| number(position.line())),
        ("malformed_file".to_owned(), message),
    ))
}

fn number(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}

/// The sheets of a workbook: the first, and those with the same header, on which an export continues.
fn sheets(path: &Path) -> Result<Vec<Range<Data>>, CliError> {
    open(path)?;
    let mut workbook: Xlsx<_> =
        open_workbook(path).map_err(|error: calamine::XlsxError| malformed(path, &error))?;
    let mut sheets: Vec<Range<Data>> = Vec::new();
    for name in workbook.sheet_names() {
        let sheet = workbook.worksheet_range(&name).map_err(|error| malformed(path, &error))?;
        if sheets.first().is_none_or(|first| first.rows().next() == sheet.rows().next()) {
            sheets.push(sheet);
        }
    }
    Ok(sheets)
}

pub(super) fn xlsx_header(path: &Path) -> Result<Vec<String>, CliError> {
    let sheets = sheets(path)?;
    let first = sheets.first().and_then(|sheet| sheet.rows().next());
    not_empty(path, first.into_iter().flatten().map(|cell| text_of(cell).trim().to_owned()).collect())
}

pub(super) fn xlsx_rows<'a>(path: &Path, columns: &'a Columns<'a>) -> Result<Rows<'a>, CliError> {
    let row = |place: usize, cells: &[Data]| -> Option<NumberedRow> {
        let cells: Vec<_> = cells.iter().map(text_of).collect();
        Some((place, columns.row_of_cells(cells.iter().map(String::as_str))?))
    };
    let rows = sheets(path)?.into_iter().flat_map(move |sheet| {
        let first = sheet.start().map_or(0, |(row, _)| row as usize) + 1;
        let rows = sheet.rows().enumerate().skip(1);
        rows.filter_map(|(place, cells)| row(first + place, cells)).map(Ok).collect::<Vec<_>>()
    });
    Ok(Box::new(rows))
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
