//! `forms responses edit`: changes answers of one submission.

use std::path::PathBuf;

use clap::Args;

use crate::api::{FormDetail, SubmissionDetail, VersionView};
use crate::cli::commands::submit::read_sources;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answer_args::ArgValue;
use crate::cli::input::answers;
use crate::cli::output::columns::SUBMISSION;
use crate::domain::json::Value;

/// Change the answers of a submission
#[derive(Debug, Args)]
#[command(after_long_help = "\
Answers are given as for `forms submit`: those that are not named stay, and KEY=
removes one. They must be valid for the version of the form that the submission
was sent to. The replaced state is kept: `forms responses history` shows it.
Prints the submission's id.

Examples:
  forms responses edit lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc score=4
  forms responses edit lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc email=
  forms responses edit lunch sub_01k3v8m2f4q6s8t0w2y4z6a8bc -f answers.json")]
pub(super) struct Edit {
    /// Form, by id or slug
    form: String,
    /// Submission id
    submission: String,
    /// Answers
    #[arg(value_name = "KEY=VALUE", required_unless_present = "file")]
    answers: Vec<String>,
    /// Answers in JSON or YAML, - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Run for Edit {
    const COLUMNS: Columns = SUBMISSION;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let mut sources = read_sources(session, self.file.as_deref(), &self.answers).await?;
        for arg in sources.args.iter_mut().filter(|arg| arg.value == ArgValue::Text(String::new())) {
            arg.value = ArgValue::Json(Value::Null);
        }
        let client = session.client().await?;
        let path = ["forms", &self.form, "submissions", &self.submission];
        let (submission, revision) = client.get_revision::<SubmissionDetail>(&path).await?;
        let mut form = FormDetail::clone(&*client.get_form(&self.form).await?);
        if form.version != submission.form_version {
            let version = submission.form_version.to_string();
            let version = client.get::<VersionView>(&["forms", &self.form, "versions", &version]).await?;
            form.questions.clone_from(&version.questions);
        }
        let questions = answers::known_questions(&answers::parse_questions(&form.questions));
        let patch = sources.record.body(sources.answers(&questions)?);
        let edited = client.edit_submission(&self.form, &self.submission, &patch, &revision).await;
        let edited = edited
            .map_err(|error| answers::explain_refusal(&form, &sources, error, &session.command_prefix()))?;
        session.output.object(&edited, || format!("{}\n", edited.id))?;
        match edited.updated_at == submission.updated_at {
            true => session.output.status("no change"),
            false => session.output.success(&format!("Edited {}", edited.id)),
        }
        Ok(())
    }
}
