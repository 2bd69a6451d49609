//! `forms schema`: the JSON Schema of form files, or of the answers to a form.

use clap::Args;

use crate::api::schema::form_file;
use crate::cli::commands::{CliError, Columns, Run, Session};

/// Print a JSON Schema: of form files, or of the answers to a form
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without FORM: the schema of form files (draft-07), with which an editor checks,
completes and explains what you write. `forms init FILE` saves it beside the
file, whose first line names it for VS Code (with Red Hat's extension YAML) and
Helix, as both use yaml-language-server:

  # yaml-language-server: $schema=.form.schema.json

A server has it at /schema/form.json.

With FORM: the schema of its answers (2020-12), as the API returns it.

Examples:
  forms schema > .form.schema.json
  forms schema frm_7k2m9q4x1abz | jq .properties")]
pub struct Schema {
    /// Form, by id or slug
    form: Option<String>,
}

impl Run for Schema {
    const COLUMNS: Columns = Columns::Dynamic;

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let schema = match self.form {
            None => form_file(),
            Some(form) => {
                let received = session.client().await?.get_schema(&form).await?;
                serde_json::Value::clone(&received)
            }
        };
        session.output.object(&schema, || format!("{schema:#}\n"))
    }
}
