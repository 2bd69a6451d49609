//! `forms open`: a form's page in the browser.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use crate::cli::commands::page_links::{explain, is_open, page_links};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::io_error::reason;
use crate::cli::output::visible;

/// Open a form's page in the browser
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the address, too. Of a form that is a draft or not public it is the
preview, which works for a day, checks answers and stores none. In a pipe, over
SSH and without a display, the address is only printed.

Examples:
  forms open frm_7k2m9q4x1abz
  forms open customer-feedback --print")]
pub struct Open {
    /// Form, by id or slug
    form: String,
    /// Only print the address
    #[arg(long)]
    print: bool,
}

impl Run for Open {
    const COLUMNS: Columns = Columns::Fixed(&["url", "preview"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let links = page_links(session, &client, &self.form).await?;
        let url = if is_open(&form) { &links.url } else { &links.preview_url };
        let opened = json!({"url": url, "preview": !is_open(&form)});
        session.output.object(&opened, || format!("{}\n", visible(url)))?;
        explain(session, &form, &links);
        if !self.print {
            start_browser(session, url);
        }
        Ok(())
    }
}

/// Starts the browser if the user would see it, and does not wait for it. A server may have any text as its address: only a web
/// address is opened.
fn start_browser(session: &Session, url: &str) {
    let is_set = |name| session.environment.get(name).is_some();
    let has_display = cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    let is_visible = has_display && !is_set("SSH_CONNECTION") && session.output.stderr_is_terminal();
    if !is_visible || !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    // In a process group of its own, it survives a terminal that is closed with this command.
    command.arg(url).process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        session
            .output
            .warn(&format!("cannot start {program}: {}; open the address yourself", reason(&error)));
    }
}
