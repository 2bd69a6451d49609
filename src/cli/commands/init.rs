//! `forms init`: writes a form file to begin with.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::api::schema::form_file;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::document;
use crate::cli::output::Format;
use crate::cli::output::destination::OutputFile;
use crate::cli::output::io_error::reason;
use crate::cli::output::shell_quote::shell_quote;
use crate::domain::form::slug::is_slug;

/// The file with the schema, which editors find by the first line of the form file; hidden, so it is not taken for a form.
const SCHEMA: &str = ".form.schema.json";

/// Write a form file to begin with
#[derive(Debug, Args)]
#[command(after_long_help = "\
Writes FILE and, beside it, .form.schema.json, with which editors check and
complete it (see `forms schema`). FILE must not exist. Its slug is the name of
the file. Without FILE, the form file is printed. With -o json, the form.

Examples:
  forms init lunch.yaml
  forms init feedback.yaml --template feedback
  forms init --template bug-report -o json | jq .questions")]
pub struct Init {
    /// File to write
    file: Option<PathBuf>,
    /// minimal, feedback, registration, bug-report
    #[arg(long, value_name = "NAME", default_value = "minimal", hide_possible_values = true)]
    #[arg(value_parser = TEMPLATES.map(|(name, _)| name))]
    template: String,
}

/// The templates by name.
const TEMPLATES: [(&str, &str); 4] = [
    ("minimal", include_str!("../../../examples/lunch-order.yaml")),
    ("feedback", include_str!("../../../examples/course-feedback.yaml")),
    ("registration", include_str!("../../../examples/workshop-sign-up.yaml")),
    ("bug-report", include_str!("../../../examples/bug-report.yaml")),
];

impl Run for Init {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let stem = self.file.as_deref().and_then(|file| file.file_stem()?.to_str());
        let slug = stem.filter(|stem| is_slug(stem)).unwrap_or(&self.template);
        let template = TEMPLATES.iter().find(|(name, _)| *name == self.template).unwrap_or(&TEMPLATES[0]);
        let form = template.1.replacen("\ntitle:", &format!("\nslug: {slug}\ntitle:"), 1);
        let text = format!("# yaml-language-server: $schema={SCHEMA}\n{form}");
        let Some(file) = &self.file else {
            return match session.output.format {
                Format::Table | Format::Yaml => session.output.data(&text),
                _ => session.output.object(&document::read_value(&text), String::new),
            };
        };
        let shown = file.display().to_string();
        let unwritable =
            |error: std::io::Error| CliError::usage(format!("cannot write {shown}: {}", reason(&error)));
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.map_or(Ok(()), std::fs::create_dir_all).map_err(unwritable)?;
        let written = OpenOptions::new().write(true).create_new(true).open(file);
        let written = written.and_then(|mut written| written.write_all(text.as_bytes()));
        written.map_err(unwritable)?;
        let schema = file.with_file_name(SCHEMA);
        let mut saved = OutputFile::create(&schema)?;
        let saved = saved.write_all(format!("{:#}\n", form_file()).as_bytes()).and_then(|()| saved.save());
        saved.map_err(|error| CliError::io(format!("cannot write {}", schema.display()), error))?;
        session.output.object(&json!({"file": shown, "slug": slug}), || format!("{shown}\n"))?;
        session.output.success(&format!("wrote it; to try it: forms dev {}", shell_quote(&shown)));
        Ok(())
    }
}
