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
        let (view, text) = (view(target, answer), || text(target, answer));
        match asked {
            Ok(_) => session.output.object(&view, text),
            Err(_) => session.output.partial_result(view, text),
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
            let origin = found.as_ref().map(|found| &found.origin);
            let key = origin.map(|origin| with_context(key(json!(origin.source())), origin.context()));
            let url = json!({"value": display_url(&url.value), "source": url.source});
            let url = with_context(url, context.as_ref().map(|context| &*context.name));
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

fn text(target: &Target, answer: Option<&WhoamiResponse>) -> String {
    let view = view(target, answer);
    let source = |name: &str| match (view[name]["source"].as_str(), view[name]["context"].as_str()) {
        (Some(source), Some(context)) => format!("{source} {}", visible(context)),
        (source, _) => source.unwrap_or_default().to_owned(),
    };
    let (name, place, key) = match target {
        Target::Server { url, key, .. } => ("url", display_url(&url.value), key.as_ref()),
        Target::Data(data) => ("data", data.value.display().to_string(), None),
    };
    let (key, workspace) = match answer {
        Some(WhoamiResponse { key, workspace, .. }) => {
            let scopes: Vec<_> = key.scopes.iter().map(ToString::to_string).collect();
            let key = format!(
                "{} \"{}\" {}  ({})",
                key.id,
                visible(&key.name),
                visible(&scopes.join(", ")),
                source("key")
            );
            (key, format!("{} \"{}\"", workspace.id, visible(&workspace.name)))
        }
        None => {
            let key = key.map(|key| format!("{}  ({})", Key::redacted(key), source("key")));
            (key.unwrap_or_else(|| "none".to_owned()), "unknown".to_owned())
        }
    };
    format!("{name:<10} {}  ({})\nkey        {key}\nworkspace  {workspace}\n", visible(&place), source(name))
}
