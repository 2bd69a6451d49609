//! `forms whoami`.

use crate::api::Whoami as WhoamiResponse;
use crate::cli::commands::Run;
use crate::cli::connection::session::Session;
use crate::cli::connection::target::{Key, Target, display_url};
use crate::cli::output::columns::Columns;
use crate::cli::output::exit::CliError;
use crate::cli::output::visible;
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
    fn columns(&self) -> Columns {
        Columns::Fixed(&["url", "data", "key", "workspace"])
    }

    /// Asks the server for the key's owner, and prints it with the origin of address and key, which are known even without
    /// a response.
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let asked = async { Ok::<_, CliError>(session.client().await?.whoami().await?) }.await;
        let target = session.target()?;
        let answer = asked.as_ref().ok();
        let view = view(target, answer);
        let text = text(&view, target);
        match asked {
            Ok(_) => session.output.object(&view, || text),
            Err(_) => session.output.partial_result(view, || text),
        }?;
        asked.map(drop)
    }
}

fn view(target: &Target, answer: Option<&WhoamiResponse>) -> Value {
    let key = |source: Value| {
        json!({
            "id": answer.map(|answer| &answer.key.id),
            "name": answer.map(|answer| &answer.key.name),
            "scopes": answer.map(|answer| &answer.key.scopes),
            "source": source,
        })
    };
    let workspace = answer.map(|answer| &answer.workspace);
    match target {
        Target::Server { url, context, key: found } => {
            let key =
                found.as_ref().map(|found| with_context(key(json!(found.source)), found.context.as_deref()));
            let url = json!({"value": display_url(&url.value), "source": url.source});
            let url = with_context(url, context.as_deref());
            json!({"url": url, "key": key, "workspace": workspace})
        }
        Target::Data(data) => {
            let key = answer.map(|_| key(json!("data")));
            json!({"data": data, "key": key, "workspace": workspace})
        }
    }
}

/// Adds the name of the context that a value came from.
fn with_context(mut value: Value, context: Option<&str>) -> Value {
    if let Some(name) = context {
        value["context"] = json!(name);
    }
    value
}

/// Returns the view as lines.
fn text(view: &Value, target: &Target) -> String {
    let words = |value: &Value, names: &[&str]| {
        names.iter().filter_map(|name| value[*name].as_str()).map(visible).collect::<Vec<_>>().join(" ")
    };
    let source = |value: &Value| format!("({})", words(value, &["source", "context"]));
    let name = if view["data"].is_null() { "url" } else { "data" };
    let (key, workspace) = (&view["key"], &view["workspace"]);
    let stored = if let Target::Server { key, .. } = target { key.as_ref().map(Key::redacted) } else { None };
    let key = match (key["id"].as_str(), stored) {
        (Some(id), _) => {
            let scopes = key["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let scopes = visible(&scopes.collect::<Vec<_>>().join(", "));
            format!("{id} \"{}\" {scopes}  {}", words(key, &["name"]), source(key))
        }
        (None, Some(stored)) => format!("{stored}  {}", source(key)),
        (None, None) => "none".to_owned(),
    };
    let workspace = match workspace["id"].as_str() {
        Some(id) => format!("{id} \"{}\"", words(workspace, &["name"])),
        None => "unknown".to_owned(),
    };
    let place = words(&view[name], &["value"]);
    format!("{name:<10} {place}  {}\nkey        {key}\nworkspace  {workspace}\n", source(&view[name]))
}
