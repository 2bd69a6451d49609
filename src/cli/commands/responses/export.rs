//! `forms responses export`: all answers to forms, in files.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use serde_json::json;

use crate::api::SubmissionDetail;
use crate::cli::commands::batch::for_each;
use crate::cli::commands::responses::export_table::{ExportTable, TableOptions};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::destination::OutputFile;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::json::json_line;
use crate::cli::output::table::{Cell, csv_line};
use crate::cli::output::workbook::{Workbook, check_width};
use crate::client::{Client, FormQuery, MAX_PAGE, ReceivedBody};
use crate::domain::form::slug::is_slug;

/// Export all answers to forms, one file each
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each file is called by the form's slug, or by its id if it has none, and
replaces an older one of that name once all of it has arrived. Columns are id,
submitted_at and one for each question; those of removed questions are at the
end. Several options are joined with \"; \". jsonl has each submission as the
API shows it, with its metadata. Prints the file and its number of rows.

With --split-choices, a column colours/red has 1 if the answer to colours has
red, 0 if not, and nothing if there is no answer; colours/other has the text.

Examples:
  forms responses export lunch --to exports
  forms responses export --all --to exports --format jsonl
  forms responses export lunch --to . --format xlsx --labels --split-choices")]
pub(super) struct Export {
    /// Forms, by id or slug
    #[arg(value_name = "FORM", required_unless_present = "all", conflicts_with = "all")]
    forms: Vec<String>,
    /// All forms
    #[arg(long)]
    all: bool,
    /// Folder for the files, created if it is missing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    to: PathBuf,
    /// Format of the files
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "csv")]
    format: FileFormat,
    #[command(flatten)]
    options: TableOptions,
    /// In CSV: do not escape text that a spreadsheet would run as a formula
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    /// Comma-separated values with a header
    Csv,
    /// One JSON object a line
    Jsonl,
    /// An Excel workbook
    Xlsx,
}

impl Run for Export {
    const COLUMNS: Columns = Columns::Fixed(&["form", "file", "rows"]);

    async fn run(mut self, session: &Session) -> Result<(), CliError> {
        if self.format == FileFormat::Jsonl && self.options != TableOptions::default() {
            let message = "--labels and --split-choices cannot be used with --format jsonl";
            return Err(CliError::usage_with_help(message, "use --format csv or xlsx"));
        }
        fs::create_dir_all(&self.to)
            .map_err(|error| self.unwritable(&self.to.display().to_string(), error))?;
        let client = session.client().await?;
        if self.all {
            let mut pages = client.list_forms(&FormQuery::default(), MAX_PAGE);
            while let Some(page) = pages.next().await? {
                self.forms.extend(page.iter().map(|form| form.id.to_string()));
            }
        }
        for_each(session, &self.forms, async |form| self.export(session, &client, form).await).await
    }
}

impl Export {
    async fn export(&self, session: &Session, client: &Client, form: &str) -> Result<(), CliError> {
        let form = client.get_form(form).await?;
        let id = form.id.to_string();
        let name = form.slug.as_deref().filter(|slug| is_slug(slug)).unwrap_or(&id);
        let path = self.to.join(format!("{name}.{}", self.extension()));
        let shown = path.display().to_string();
        let unwritable = |error| self.unwritable(&shown, error);
        let mut file = ExportFile::create(self, client, &id, OutputFile::create(&path)?).await?;
        let mut submissions = client.stream_submissions(&id).await?;
        let total = usize::try_from(form.response_count).unwrap_or(usize::MAX);
        let (progress, mut rows) = (session.output.progress_of(total, "responses"), 0_u64);
        while let Some(submission) = submissions.next().await? {
            rows += u64::from(file.write(&submission).map_err(unwritable)?);
            progress.inc(1);
        }
        progress.finish_and_clear();
        session.output.warn_of_cut(file.save().map_err(unwritable)?, "--format csv");
        let exported = json!({"form": id, "file": shown, "rows": rows});
        session.output.object(&exported, || format!("{shown}\t{rows}\n"))?;
        session.output.success(&format!("exported \"{}\": {}", form.title, count_noun(rows, "row")));
        Ok(())
    }

    fn extension(&self) -> &'static str {
        match self.format {
            FileFormat::Csv => "csv",
            FileFormat::Jsonl => "jsonl",
            FileFormat::Xlsx => "xlsx",
        }
    }

    fn unwritable(&self, name: &str, error: io::Error) -> CliError {
        CliError::io(format!("cannot write {name}"), error)
    }
}

/// A file that is being written.
struct ExportFile {
    file: OutputFile,
    /// The columns; `None` for JSON lines.
    table: Option<ExportTable>,
    workbook: Option<Workbook>,
    raw: bool,
}

impl ExportFile {
    async fn create(
        command: &Export,
        client: &Client,
        form: &str,
        mut file: OutputFile,
    ) -> Result<Self, CliError> {
        let &Export { format, options, raw, .. } = command;
        if format == FileFormat::Jsonl {
            return Ok(Self { file, table: None, workbook: None, raw });
        }
        let table = ExportTable::read(client.list_versions(form)?, options).await?;
        let headers = table.headers();
        let cannot_begin = |error| command.unwritable(&command.to.display().to_string(), error);
        let workbook = match format {
            FileFormat::Xlsx => {
                check_width(headers.len(), "use --format csv")?;
                Some(Workbook::new(file.folder(), headers).map_err(cannot_begin)?)
            }
            FileFormat::Csv | FileFormat::Jsonl => {
                let header: Vec<_> = headers.into_iter().map(Cell::text).collect();
                file.write_all(csv_line(&header, raw).as_bytes()).map_err(cannot_begin)?;
                None
            }
        };
        Ok(Self { file, table: Some(table), workbook, raw })
    }

    /// Writes a submission; returns false if it has no row.
    fn write(&mut self, submission: &ReceivedBody<SubmissionDetail>) -> io::Result<bool> {
        let Some(table) = &self.table else {
            let line = json_line(submission).map_err(|_invalid| io::ErrorKind::InvalidData)?;
            return self.file.write_all(line.as_bytes()).map(|()| true);
        };
        let Some(row) = table.row(submission) else { return Ok(false) };
        match &mut self.workbook {
            Some(workbook) => workbook.append(&row)?,
            None => self.file.write_all(csv_line(&row, self.raw).as_bytes())?,
        }
        Ok(true)
    }

    /// Gives the file its name. Returns the number of cells whose text was cut.
    fn save(mut self) -> io::Result<u64> {
        let cut = self.workbook.map(|workbook| workbook.save(&mut self.file)).transpose()?;
        self.file.save()?;
        Ok(cut.unwrap_or_default())
    }
}
