//! `forms import`: converts forms of other tools to form files.

mod draft;
mod expression;
mod github;
mod logic;
mod surveyjs;
mod typeform;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::input::document;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::humanize::count_noun;
use crate::cli::output::{Format, yaml};
use crate::domain::json::Value;

/// Convert a form of another tool to a form file
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints a form file that `forms create` takes; nothing is sent. What a form here
cannot have is named on stderr, one line each: where it was, and what became of
it. Only what concerns looks, such as columns and buttons, is left out silently.

FILE is the JSON of a Typeform (GET /forms/ID) or of a SurveyJS survey, or the
YAML of a GitHub issue form. Conditions become `show_if` where that says the
same; the jumps of Typeform are left out.

Examples:
  forms import survey.json > survey.yaml
  forms import .github/ISSUE_TEMPLATE/bug.yml --from github > bug.yaml
  forms import typeform.json -o json | jq .questions")]
pub struct Import {
    /// File to convert; - for standard input
    file: PathBuf,
    /// typeform, github, surveyjs; default: by content
    #[arg(long, value_name = "TOOL", hide_possible_values = true)]
    from: Option<Tool>,
}

/// A tool whose forms can be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    Typeform,
    Github,
    Surveyjs,
}

impl Run for Import {
    const COLUMNS: Columns = Columns::Fixed(&["title", "description", "questions", "settings"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        session.announce_stdin(&self.file);
        let file = self.file.display().to_string();
        let (form, losses) = read_input(move || convert(&self.file, self.from)).await?;
        let text = yaml::yaml(&form)?;
        if text.len() as u64 > document::MAX_FILE {
            return Err(rejected(
                &file,
                "file_too_large",
                "the form file would be larger than 1 MiB".to_owned(),
            ));
        }
        match session.output.format {
            Format::Table | Format::Yaml => session.output.data(&text)?,
            Format::Json | Format::Jsonl | Format::Csv | Format::Xlsx => {
                session.output.object(&form, String::new)?
            }
        }
        losses.iter().for_each(|loss| session.output.warn(loss));
        let questions = form.get("questions").and_then(Value::as_array).unwrap_or_default().len();
        let lost = match losses.len() {
            0 => "nothing was lost".to_owned(),
            count => format!("see {} above", count_noun(count, "warning")),
        };
        session.output.success(&format!("converted {}; {lost}", count_noun(questions, "question")));
        Ok(())
    }
}

/// Converts the file at `path`; returns the form and the losses.
pub fn convert(path: &Path, tool: Option<Tool>) -> Result<(Value, Vec<String>), CliError> {
    let file = path.display().to_string();
    let name =
        path.file_stem().map(|stem| stem.to_string_lossy().replace(['-', '_'], " ")).unwrap_or_default();
    let name = if name.trim().is_empty() { "Form" } else { &name };
    let form = document::entry(path)?.value;
    let draft = match tool.or_else(|| guess(&form)) {
        Some(Tool::Typeform) => typeform::convert(&form, name),
        Some(Tool::Github) => github::convert(&form, name),
        Some(Tool::Surveyjs) => surveyjs::convert(&form, name),
        None => {
            let message =
                "the tool that this form comes from cannot be told by its content; name it with --from";
            return Err(rejected(&file, "malformed_file", message.to_owned()));
        }
    };
    draft.finish(&file)
}

fn rejected(file: &str, code: &str, message: String) -> CliError {
    Report::of_file(file, vec![Diagnostic::new(code, message)]).into()
}

fn guess(form: &Value) -> Option<Tool> {
    let has_list = |name| form.get(name).and_then(Value::as_array).is_some();
    [
        (has_list("fields"), Tool::Typeform),
        (has_list("body"), Tool::Github),
        (has_list("pages") || has_list("elements"), Tool::Surveyjs),
    ]
    .into_iter()
    .find_map(|(is_it, tool)| is_it.then_some(tool))
}
