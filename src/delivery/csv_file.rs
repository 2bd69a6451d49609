//! CSV files as views of the store: written whole to a temporary file beside them, then renamed.
//!
//! The content of a file depends only on the store, so it follows edits, deletions and new questions, and whatever else writes
//! to it is overwritten.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, fsync, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::attempt::BatchOutcome;
use super::render::Versions;
use super::{DeliveryService, report};
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::form::Version;
use crate::domain::integration::Integration;
use crate::domain::integration::csv_file::{CsvFile, CsvRows, csv_record};
use crate::domain::integration::row::{FIRST_COLUMNS, column_name};
use crate::domain::submission::Submission;
use crate::domain::submission::filter::{Order, SubmissionFilter};
use crate::id::{FormId, SubmissionId};
use crate::store::{AttemptEnd, ClaimedBatch, FinishedAttempt, Result, StoreError};

/// How many times as long as a file took to write nothing is written to it.
const REST: u32 = 20;

/// Submissions read at once.
const PAGE: usize = 1_000;

impl DeliveryService {
    /// Writes the file of a batch, and finishes the deliveries that it shows.
    pub(super) async fn write_file(&self, batch: &ClaimedBatch) -> Result<BatchOutcome> {
        let (started_at, started) = (self.clock.now(), Instant::now());
        if self.settings.policy.forbids_files {
            let finished = self.sent_all(batch.deliveries.clone(), started_at, &report::no_files().into());
            return Ok(BatchOutcome { finished, ..BatchOutcome::default() });
        }
        let rows = match self.write_rows(batch).await? {
            Ok(Some(rows)) => rows,
            Ok(None) => {
                let wait = |delivery| FinishedAttempt { delivery, result: AttemptEnd::NotSent };
                let finished = batch.deliveries.iter().cloned().map(wait).collect();
                return Ok(BatchOutcome { finished, ..BatchOutcome::default() });
            }
            Err(error) => {
                let report = SendReport::new(report::file_error(&error), report::millis(started));
                let finished = self.sent_all(batch.deliveries.clone(), started_at, &report);
                return Ok(BatchOutcome { finished, written: None, hold_ms: RETRY_MILLIS });
            }
        };
        let is_shown =
            |delivery: &Delivery| delivery.submission.is_some_and(|submission| rows.contains(&submission));
        let (shown, others) = batch.deliveries.iter().cloned().partition(is_shown);
        let report = SendReport::new(Outcome::Delivered, report::millis(started));
        let mut finished = self.sent_all(shown, started_at, &report);
        let others = ClaimedBatch { deliveries: others, ..batch.clone() };
        for (delivery, rendered) in self.render_batch(&others).await? {
            // What has a body was restored since.
            let result = rendered.err().unwrap_or(AttemptEnd::NotSent);
            finished.push(FinishedAttempt { delivery, result });
        }
        let hold_ms = i64::try_from((started.elapsed() * REST).as_millis()).unwrap_or(i64::MAX);
        Ok(BatchOutcome { finished, written: batch.changes, hold_ms })
    }

    /// Writes the rows of all submissions. Returns those of the batch that are among them; `None` if the form is in the trash by
    /// now.
    async fn write_rows(&self, batch: &ClaimedBatch) -> Result<io::Result<Option<HashSet<SubmissionId>>>> {
        let (form, integration) = (&batch.form, &batch.integration);
        let Some(settings) = integration.csv_file() else {
            return Ok(Err(io::ErrorKind::InvalidInput.into()));
        };
        let selection = integration.fields.as_ref();
        let columns = self.versions.columns(form.reference(), Order::OldestFirst, selection).await?;
        let target = CsvTarget { exports: self.settings.exports.clone(), form: form.id, settings };
        let mut file = match on_disk(move || CsvWriter::create(target, columns)).await? {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        let claimed = batch.deliveries.iter().filter_map(|delivery| delivery.submission).collect();
        let (claimed, filter) = (Arc::new(claimed), SubmissionFilter::default());
        let (mut shown, mut after) = (HashSet::new(), None);
        loop {
            let page = self
                .store
                .list_submissions(form.reference(), &filter, Order::OldestFirst, after, PAGE)
                .await?;
            let Some(page) = page else { return Ok(Ok(None)) };
            after = page.next;
            let versions = self.versions_of(form, page.rows.iter().map(|row| row.form_version)).await?;
            let (integration, claimed) = (Arc::clone(integration), Arc::clone(&claimed));
            let written = on_disk(move || {
                let found = file.write(&integration, &page.rows, &versions, &claimed)?;
                Ok((file, found))
            });
            match written.await? {
                Ok((written, found)) => {
                    file = written;
                    shown.extend(found);
                }
                Err(error) => return Ok(Err(error)),
            }
            if after.is_none() {
                return Ok(on_disk(move || file.finish()).await?.map(|()| Some(shown)));
            }
        }
    }
}

impl DeliveryService {
    /// Removes the files of forms that were erased. A failure is logged, and tried again at the next maintenance.
    pub async fn remove_erased_files(&self) {
        let exports = self.settings.exports.clone();
        let folders =
            spawn_blocking(move || std::fs::read_dir(exports).map(Iterator::collect::<Vec<_>>)).await;
        for folder in folders.ok().and_then(io::Result::ok).into_iter().flatten().flatten() {
            let form = folder.file_name().to_str().and_then(|name| name.parse::<FormId>().ok());
            let Some(form) = form else { continue };
            if !matches!(self.store.find_form_workspace(form).await, Ok(None)) {
                continue;
            }
            if let Ok(Err(error)) = spawn_blocking(move || std::fs::remove_dir_all(folder.path())).await {
                tracing::warn!(%form, %error, "the files of an erased form cannot be removed");
            }
        }
    }
}

/// Wait after a file could not be written, in milliseconds.
const RETRY_MILLIS: i64 = 5_000;

/// Runs `work` on a blocking thread.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<io::Result<T>> {
    spawn_blocking(work).await.map_err(|panicked| StoreError::Panicked(panicked.to_string()))
}

/// A file below the folder of exports.
pub(super) struct CsvTarget {
    /// The folder of exports, which is created if it is missing.
    pub(super) exports: PathBuf,
    /// The form, whose files are in a folder of their own: two forms never write to the same file.
    pub(super) form: FormId,
    pub(super) settings: CsvFile,
}

impl CsvTarget {
    /// Checks that the file can be written, without changing it.
    pub(super) fn check(&self) -> io::Result<()> {
        let (folder, name) = self.open_folder()?;
        match openat(&folder, name, OFlags::WRONLY | FILE_FLAGS, Mode::empty()) {
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the folder of the file, and returns it with the file's name. Folders that are missing are created durably. Each is
    /// opened relative to the one above and without following symbolic links, so that nothing outside of the folder of exports
    /// can be reached.
    fn open_folder(&self) -> io::Result<(OwnedFd, String)> {
        let mut names = Vec::new();
        for component in Path::new(&self.settings.path).components() {
            match component {
                Component::Normal(name) => names.push(name.to_str().ok_or(io::ErrorKind::InvalidFilename)?),
                _ => return Err(io::ErrorKind::InvalidFilename.into()),
            }
        }
        let file = names.pop().ok_or(io::ErrorKind::InvalidFilename)?;
        let mut folder = open_or_create(&open_exports(&self.exports)?, &self.form.to_string())?;
        for name in names {
            folder = open_or_create(&folder, name)?;
        }
        Ok((folder, file.to_owned()))
    }
}

const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

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

/// A file that is being written, under its temporary name.
struct CsvWriter {
    folder: OwnedFd,
    name: String,
    temporary: String,
    file: BufWriter<File>,
    columns: Vec<String>,
    delimiter: char,
}

impl CsvWriter {
    /// Creates the temporary file, in place of what an interrupted attempt has left, with the header.
    fn create(target: CsvTarget, columns: Vec<String>) -> io::Result<Self> {
        let (folder, name) = target.open_folder()?;
        let temporary = format!(".{name}.tmp");
        match unlinkat(&folder, &*temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | FILE_FLAGS;
        let file = File::from(openat(&folder, &*temporary, flags, Mode::RUSR | Mode::WUSR)?);
        let (file, delimiter) = (BufWriter::new(file), target.settings.delimiter);
        let mut writer = Self { folder, name, temporary, file, columns, delimiter };
        let names: Vec<_> = writer.columns.iter().map(|column| column_name(column)).collect();
        let header = FIRST_COLUMNS.into_iter().chain(names.iter().map(AsRef::as_ref));
        writer.file.write_all(csv_record(header, delimiter).as_bytes())?;
        Ok(writer)
    }

    /// Writes the rows of the submissions that the integration takes. Returns those of them that are `wanted`.
    fn write(
        &mut self,
        integration: &Integration,
        submissions: &[Submission],
        versions: &Versions,
        wanted: &HashSet<SubmissionId>,
    ) -> io::Result<Vec<SubmissionId>> {
        let (rows, mut found) = (CsvRows::new(integration), Vec::new());
        for submission in submissions {
            let version: Option<&Version> = versions.get(&submission.form_version).map(AsRef::as_ref);
            let Some(row) = version.and_then(|version| rows.row(submission, version)) else {
                continue;
            };
            let cell = |column: &String| {
                let cell = row.cells.iter().find(|(question, _)| question == column);
                cell.map_or("", |(_, text)| text.as_str())
            };
            let cells = [&*row.id, &*row.submitted_at].into_iter().chain(self.columns.iter().map(cell));
            self.file.write_all(csv_record(cells, self.delimiter).as_bytes())?;
            found.extend(Some(submission.id).filter(|id| wanted.contains(id)));
        }
        Ok(found)
    }

    /// Gives the file its name, durably.
    fn finish(self) -> io::Result<()> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        renameat(&self.folder, &*self.temporary, &self.folder, &*self.name)?;
        Ok(fsync(&self.folder)?)
    }
}
