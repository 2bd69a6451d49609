//! Appends rows to CSV files so that each row is written exactly once.
//!
//! How much of a file is acknowledged is stored in the same write as the deliveries it covers. What follows in the file was
//! written by an attempt whose outcome was not recorded: it is cut off, and its rows are written again.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fdatasync, fsync, mkdirat, open, openat, statat};
use rustix::io::Errno;

use crate::domain::integration::csv_file::{CsvFile, CsvPosition};
use crate::domain::integration::outbound::CsvRow;
use crate::domain::integration::row::{FIRST_COLUMNS, column_name};
use crate::id::FormId;

/// A file below the folder of exports.
pub(super) struct CsvTarget<'a> {
    /// The folder of exports, which is created if it is missing.
    pub(super) exports: &'a Path,
    /// The form, whose files are in a folder of their own: two forms never write to the same file.
    pub(super) form: FormId,
    pub(super) settings: &'a CsvFile,
}

/// Returns the position at which `rows` can be written. If it is not `current`, it has to be stored before [`append`]: a file
/// that is begun or begun again must be known to be ours.
pub(super) fn prepare(
    target: &CsvTarget<'_>,
    current: Option<&CsvPosition>,
    rows: &[CsvRow],
) -> io::Result<CsvPosition> {
    let current = current.filter(|position| position.settings == *target.settings);
    let mut columns = current.map(|position| position.columns.clone()).unwrap_or_default();
    let is_wider = add_columns(&mut columns, rows);
    let mut number = match current {
        Some(current) if is_wider => current.number + 1,
        Some(current) if exists(target, current.number)? => return Ok(current.clone()),
        // Moved away: the next one begins with a header.
        Some(current) => current.number,
        None => 1,
    };
    // A file with anything in it is of another integration, or not ours.
    while !create(target, number)? {
        number += 1;
    }
    Ok(CsvPosition { settings: target.settings.clone(), number, columns, length: 0 })
}

/// Appends `rows` at `position`, with a header at the beginning of a file. Returns the position behind them, once they are
/// durable.
pub(super) fn append(
    target: &CsvTarget<'_>,
    position: &CsvPosition,
    rows: &[CsvRow],
) -> io::Result<CsvPosition> {
    let (folder, name) = open_folder(target, position.number)?;
    let mut file = open_file(&folder, &name)?;
    let length = file.metadata()?.len();
    if length < position.length {
        let why = format!("`{name}` is shorter than what was written to it; restore it, or move it away");
        return Err(io::Error::other(why));
    }
    if length > position.length {
        file.set_len(position.length)?;
    }
    file.seek(SeekFrom::Start(position.length))?;
    let text = render(&position.columns, rows, target.settings.delimiter, position.length == 0);
    file.write_all(text.as_bytes())?;
    fdatasync(&file)?;
    if position.length == 0 {
        fsync(&folder)?;
    }
    Ok(CsvPosition { length: position.length + text.len() as u64, ..position.clone() })
}

/// Checks that the file can be written, without changing it.
pub(super) fn check(target: &CsvTarget<'_>) -> io::Result<()> {
    let (folder, name) = open_folder(target, 1)?;
    match openat(&folder, name, OFlags::WRONLY | FILE_FLAGS, Mode::empty()) {
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Adds the columns that are missing for `rows`; returns whether there are any.
fn add_columns(columns: &mut Vec<String>, rows: &[CsvRow]) -> bool {
    let before = columns.len();
    for (question, _) in rows.iter().flat_map(|row| &row.cells) {
        if !columns.contains(question) {
            columns.push(question.clone());
        }
    }
    columns.len() > before
}

/// Whether the numbered file exists.
fn exists(target: &CsvTarget<'_>, number: u32) -> io::Result<bool> {
    let (folder, name) = open_folder(target, number)?;
    match openat(&folder, name, OFlags::RDONLY | FILE_FLAGS, Mode::empty()) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Creates the numbered file, or takes an empty one: the server may have ended just after creating it. Returns `false` if it
/// is taken. No two settings name the same numbered file.
fn create(target: &CsvTarget<'_>, number: u32) -> io::Result<bool> {
    let (folder, name) = open_folder(target, number)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | FILE_FLAGS;
    match openat(&folder, &*name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(true),
        Err(Errno::EXIST) => is_empty(&folder, &name),
        Err(error) => Err(error.into()),
    }
}

/// Whether `name` is an empty regular file.
fn is_empty(folder: &OwnedFd, name: &str) -> io::Result<bool> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode).is_file() && found.st_size == 0)
}

const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

fn open_file(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let file = File::from(openat(folder, name, OFlags::RDWR | FILE_FLAGS, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("`{name}` is not a regular file")));
    }
    Ok(file)
}

/// Opens the folder of the numbered file, and returns it with the file's name. Folders that are missing are created durably.
/// Each is opened relative to the one above and without following symbolic links, so that nothing outside of the folder of
/// exports can be reached.
fn open_folder(target: &CsvTarget<'_>, number: u32) -> io::Result<(OwnedFd, String)> {
    let mut names = Vec::new();
    for component in Path::new(&target.settings.path).components() {
        match component {
            Component::Normal(name) => names.push(name.to_str().ok_or(io::ErrorKind::InvalidFilename)?),
            _ => return Err(io::ErrorKind::InvalidFilename.into()),
        }
    }
    let file = names.pop().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut folder = open_or_create(&open_exports(target.exports)?, &target.form.to_string())?;
    for name in names {
        folder = open_or_create(&folder, name)?;
    }
    Ok((folder, numbered(file, number)))
}

const FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open_exports(exports: &Path) -> io::Result<OwnedFd> {
    let parent = exports.parent().ok_or(io::ErrorKind::InvalidFilename)?;
    let name = exports.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidFilename)?;
    open_or_create(&open(parent, FOLDER_FLAGS, Mode::empty())?, name)
}

fn open_or_create(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = FOLDER_FLAGS | OFlags::NOFOLLOW;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Err(io::Error::other(format!("`{name}` is not a folder, or it is a symbolic link")));
        }
        opened => return Ok(opened?),
    }
    match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => fsync(parent)?,
        Err(error) => return Err(error.into()),
    }
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// `leads.csv`, `leads.2.csv`, `leads.3.csv`: settings cannot name the later ones.
fn numbered(file: &str, number: u32) -> String {
    match (number, file.rsplit_once('.')) {
        (1, _) => file.to_owned(),
        (_, Some((stem, extension))) => format!("{stem}.{number}.{extension}"),
        (_, None) => format!("{file}.{number}"),
    }
}

/// Renders rows as RFC 4180, preceded by a header if `has_header`.
fn render(columns: &[String], rows: &[CsvRow], delimiter: char, has_header: bool) -> String {
    let mut text = String::new();
    if has_header {
        let names: Vec<_> = columns.iter().map(|column| column_name(column)).collect();
        let header = FIRST_COLUMNS.into_iter().chain(names.iter().map(AsRef::as_ref));
        write_record(&mut text, header, delimiter);
    }
    for row in rows {
        let cell = |column: &String| {
            let cell = row.cells.iter().find(|(question, _)| question == column);
            cell.map_or("", |(_, text)| text.as_str())
        };
        let cells = row.head.iter().map(String::as_str).chain(columns.iter().map(cell));
        write_record(&mut text, cells, delimiter);
    }
    text
}

fn write_record<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>, delimiter: char) {
    for (place, cell) in cells.enumerate() {
        if place > 0 {
            text.push(delimiter);
        }
        if cell.contains([delimiter, '"', '\r', '\n']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
    }
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::{CsvFile, CsvRow, numbered, render};

    #[test]
    fn later_files_have_a_number_in_their_names() {
        let names =
            [("a.csv", 1), ("a.csv", 2), ("a.b.csv", 12)].map(|(file, number)| numbered(file, number));
        assert_eq!(names, ["a.csv", "a.2.csv", "a.b.12.csv"]);
    }

    #[test]
    fn cells_are_quoted_where_they_have_to_be() {
        let cells =
            [("q2", "a;b"), ("q1", "say \"x\"\r\n")].map(|(id, cell)| (id.to_owned(), cell.to_owned()));
        let row = CsvRow {
            file: CsvFile { path: "a.csv".to_owned(), delimiter: ';' },
            head: ["sub_1".to_owned(), "t".to_owned()],
            cells: cells.to_vec(),
        };
        let columns = ["q1", "q2", "id"].map(str::to_owned);
        let text = render(&columns, &[row], ';', true);
        let expected = "id;submitted_at;q1;q2;answers.id\r\nsub_1;t;\"say \"\"x\"\"\r\n\";\"a;b\";\r\n";
        assert_eq!(text, expected);
    }
}
