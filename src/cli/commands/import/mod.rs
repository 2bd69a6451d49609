//! `forms import`: converts forms of other tools to form files.

mod draft;
mod expression;
mod github;
mod google;
mod logic;
mod surveyjs;
mod typeform;
mod xlsform;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::input::document;
use crate::cli::input::rows::sheets;
use crate::cli::output::humanize::count_noun;
use crate::cli::output::{Format, yaml};
use crate::domain::json::Value;

/// Convert a form of another tool to a form file
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints a form file; nothing is sent. What a form here cannot have is named on
stderr, one line each. Only looks are left out silently.

FILE is the JSON of a Typeform (GET /forms/ID), of a Google form (forms.get), or
of a SurveyJS survey, the YAML of a GitHub issue form, or the XLSX or XLS of an
XLSForm. Conditions and jumps become `show_if` where that says the same.

Examples:
  forms import survey.json > survey.yaml
  forms import .github/ISSUE_TEMPLATE/bug.yml --from github > bug.yaml
  forms import household.xlsx -o json | jq .questions")]
pub struct Import {
    /// File to convert; - for standard input
    file: PathBuf,
    /// typeform, github, surveyjs, xlsform, google; default: by content
    #[arg(long, value_name = "TOOL", hide_possible_values = true)]
    from: Option<Tool>,
}

/// A tool whose forms can be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    Typeform,
    Github,
    Surveyjs,
    Xlsform,
    Google,
}

impl Run for Import {
    const COLUMNS: Columns = Columns::Fixed(&["title", "description", "questions", "settings"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        session.announce_stdin(&self.file);
        let (form, losses) = read_input(move || convert(&self.file, self.from)).await?;
        match session.output.format {
            Format::Table | Format::Yaml => session.output.data(&yaml::yaml(&form)?)?,
            _ => session.output.object(&form, String::new)?,
        }
        losses.iter().for_each(|loss| session.output.warn(loss));
        session.output.success(&format!("converted, with {}", count_noun(losses.len(), "warning")));
        Ok(())
    }
}

/// Converts the file at `path`; returns the form and the losses.
pub fn convert(path: &Path, tool: Option<Tool>) -> Result<(Value, Vec<String>), CliError> {
    let file = path.display().to_string();
    let name = path.file_stem().unwrap_or_default().to_string_lossy().replace(['-', '_'], " ");
    let name = if name.trim().is_empty() { "Form" } else { &name };
    let is_workbook = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("xlsx") || end.eq_ignore_ascii_case("xls"));
    if is_workbook || tool == Some(Tool::Xlsform) {
        return xlsform::convert(&sheets(path)?, name).finish(&file);
    }
    let form = document::entry(path)?.value;
    let unknown =
        || CliError::usage_with_help(format!("{file} could be from any tool"), "name the tool with --from");
    let draft = match tool.or_else(|| guess(&form)).ok_or_else(unknown)? {
        Tool::Typeform => typeform::convert(&form, name),
        Tool::Github => github::convert(&form, name),
        Tool::Surveyjs => surveyjs::convert(&form, name),
        Tool::Google => google::convert(&form, name),
        Tool::Xlsform => xlsform::convert(&sheets(path)?, name),
    };
    draft.finish(&file)
}

fn guess(form: &Value) -> Option<Tool> {
    let has_list = |name| form.get(name).and_then(Value::as_array).is_some();
    Some(match form {
        _ if has_list("fields") => Tool::Typeform,
        _ if has_list("body") => Tool::Github,
        _ if has_list("items") && form.get("info").is_some() => Tool::Google,
        _ if has_list("pages") || has_list("elements") => Tool::Surveyjs,
        _ => return None,
    })
}
