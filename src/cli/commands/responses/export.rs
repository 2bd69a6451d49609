//! `forms responses export`: all answers to forms, in files.

use std::fs;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use serde_json::json;

use crate::cli::commands::batch::for_each;
use crate::cli::commands::responses::export_table::{ExportTable, TableOptions};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::Format;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::table::Table;
use crate::client::{Client, FormQuery, MAX_PAGE};
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
    #[arg(long, value_name = "FORMAT", value_parser = file_format(), default_value = "csv")]
    format: Format,
    #[command(flatten)]
    options: TableOptions,
    /// In CSV: do not escape text that a spreadsheet would run as a formula
    #[arg(long)]
    raw: bool,
}

/// Parses the format of a file.
fn file_format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["csv", "jsonl", "xlsx"]).try_map(|name| Format::from_str(&name, false))
}

impl Run for Export {
    const COLUMNS: Columns = Columns::Fixed(&["form", "file", "rows"]);

    async fn run(mut self, session: &Session) -> Result<(), CliError> {
        if self.format == Format::Jsonl && self.options != TableOptions::default() {
            let message = "--labels and --split-choices cannot be used with --format jsonl";
            return Err(CliError::usage_with_help(message, "use --format csv or xlsx"));
        }
        let unwritable = |error| CliError::io(format!("cannot write {}", self.to.display()), error);
        fs::create_dir_all(&self.to).map_err(unwritable)?;
        let client = session.client().await?;
        if self.all {
            let forms = client.list_forms(&FormQuery::default(), MAX_PAGE).all().await?;
            self.forms = forms.iter().map(|form| form.id.to_string()).collect();
        }
        for_each(session, &self.forms, async |form| self.export(session, &client, form).await).await
    }
}

impl Export {
    async fn export(&self, session: &Session, client: &Client, form: &str) -> Result<(), CliError> {
        let form = client.get_form(form).await?;
        let id = form.id.to_string();
        let name = form.slug.as_deref().filter(|slug| is_slug(slug)).unwrap_or(&id);
        let extension = self.format.to_possible_value().expect("every format has a name");
        let path = self.to.join(format!("{name}.{}", extension.get_name()));
        let shown = path.display().to_string();
        let file = session.output.file(&path, self.format)?;
        let table = match self.format {
            Format::Jsonl => None,
            _ => Some(ExportTable::read(client.list_versions(&id)?, self.options).await?),
        };
        if let Some(table) = &table {
            file.export_header(&Table { headers: table.headers(), rows: Vec::new() })?;
        }
        let mut submissions = client.stream_submissions(&id).await?;
        let total = usize::try_from(form.response_count).unwrap_or(usize::MAX);
        let (progress, mut rows) = (session.output.progress_of(total, "responses"), 0_u64);
        while let Some(submission) = submissions.next().await? {
            progress.inc(1);
            rows += 1;
            match &table {
                None => file.json_lines(&[submission])?,
                Some(table) => match table.row(&submission) {
                    Some(row) => {
                        file.export_rows(&Table { headers: Vec::new(), rows: vec![row] }, self.raw)?
                    }
                    None => rows -= 1,
                },
            }
        }
        progress.finish_and_clear();
        file.save()?;
        file.flush_warnings();
        let exported = json!({"form": id, "file": shown, "rows": rows});
        session.output.object(&exported, || format!("{shown}\t{rows}\n"))?;
        session.output.success(&format!("exported \"{}\": {}", form.title, count_noun(rows, "row")));
        Ok(())
    }
}
