//! `forms whoami`.

use crate::api::Whoami as WhoamiResponse;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::connection::target::{Target, display_url};
use crate::cli::output::visible;
use crate::client::redacted;
use clap::Args;
use serde_json::{Value, json};

/// Show server, key and workspace, and where each was found
#[derive(Debug, Args)]
#[command(after_long_help = "\
If the server does not respond, still shows what was found, and exits with 7.

Examples:
  forms whoami
  forms whoami -o json | jq -r .url.source")]
pub struct Whoami {}

impl Run for Whoami {
    const COLUMNS: Columns = Columns::Fixed(&["url", "data", "key", "workspace"]);

    /// Asks the server for the key's owner, and prints it with the origin of address and key, which are known even without
    /// a response.
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let asked = async { Ok::<_, CliError>(session.client().await?.whoami().await?) }.await;
        let target = session.target()?;
        let view = view(target, asked.as_ref().ok());
        let text = text(&view, target);
        match asked {
            Ok(_) => session.output.object(&view, || text),
            Err(error) => session.output.partial_result(view, || text).and(Err(error)),
        }
    }
}

fn view(target: &Target, answer: Option<&WhoamiResponse>) -> Value {
    let key = |source: Value| {
        let key = answer.map(|answer| &answer.key);
        let (id, name, scopes) =
            (key.map(|key| &key.id), key.map(|key| &key.name), key.map(|key| &key.scopes));
        json!({"id": id, "name": name, "scopes": scopes, "source": source})
    };
    let workspace = answer.map(|answer| &answer.workspace);
    match target {
        Target::Server { url, context, key: found } => {
            let key = found.as_ref().map(|found| with_context(key(json!(found.source)), &found.context));
            let url = json!({"value": display_url(&url.value), "source": url.source});
            json!({"url": with_context(url, context), "key": key, "workspace": workspace})
        }
        Target::Data(data) => {
            json!({"data": data, "key": answer.map(|_| key(json!("data"))), "workspace": workspace})
        }
    }
}

/// Adds the name of the context that a value came from.
fn with_context(mut value: Value, context: &Option<String>) -> Value {
    if let Some(name) = context {
        value["context"] = json!(name);
    }
    value
}

/// Returns the view as lines. Of a key whose owner is unknown, the end is shown.
fn text(view: &Value, target: &Target) -> String {
    let word = |value: &Value| value.as_str().map(visible).unwrap_or_default();
    let source = |value: &Value| match value["context"].is_null() {
        true => format!("({})", word(&value["source"])),
        false => format!("({} {})", word(&value["source"]), word(&value["context"])),
    };
    let named = |value: &Value| format!("{} \"{}\"", word(&value["id"]), word(&value["name"]));
    let (key, workspace) = (&view["key"], &view["workspace"]);
    let scopes =
        key["scopes"].as_array().map(|scopes| scopes.iter().map(word).collect::<Vec<_>>().join(", "));
    let key = match (scopes, target) {
        (Some(scopes), _) => format!("{} {scopes}  {}", named(key), source(key)),
        (None, Target::Server { key: Some(stored), .. }) => {
            format!("{}  {}", redacted(stored.text.reveal()), source(key))
        }
        (None, _) => "none".to_owned(),
    };
    let workspace = if workspace.is_null() { "unknown".to_owned() } else { named(workspace) };
    let name = if matches!(target, Target::Data(_)) { "data" } else { "url" };
    let (place, origin) = (word(&view[name]["value"]), source(&view[name]));
    format!("{name:<10} {place}  {origin}\nkey        {key}\nworkspace  {workspace}\n")
}
