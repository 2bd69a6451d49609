//! The addresses of a form's page, for the commands that print them.

use crate::api::{FormDetail, PageLinks};
use crate::cli::commands::{CliError, Session};
use crate::cli::connection::target::{Target, display_url};
use crate::client::Client;
use crate::domain::form::FormStatus;
use crate::domain::open_enum::OpenEnum;

/// Returns the addresses of the page of `form`. Paths, of a server that does not know its own address, are completed by the
/// address that this command uses; without a server they remain paths.
pub(super) async fn page_links(
    session: &Session,
    client: &Client,
    form: &str,
) -> Result<PageLinks, CliError> {
    let mut links = PageLinks::clone(&*client.get(&["forms", form, "page"]).await?);
    if let Target::Server { url, .. } = session.target()? {
        let base = display_url(&url.value);
        for link in [&mut links.url, &mut links.preview_url] {
            if is_path(link) {
                link.insert_str(0, &base);
            }
        }
    }
    Ok(links)
}

/// Whether anybody can open the page of `form`.
pub(super) fn is_open(form: &FormDetail) -> bool {
    form.settings.is_public() && form.status == OpenEnum::Known(FormStatus::Published)
}

/// Whether the link has no address of a server.
pub(super) fn is_path(link: &str) -> bool {
    link.starts_with('/')
}

/// Says what the printed address needs: a server, if `links` are paths, and until when a preview works.
pub(super) fn explain(session: &Session, form: &FormDetail, links: &PageLinks) {
    if is_path(&links.url) {
        session.output.status("pages need a server: forms serve --data DIR");
    }
    if is_open(form) {
        return;
    }
    let state = if form.settings.is_public() { "a draft" } else { "not public" };
    let publish = format!("{} publish {} --public", session.command_prefix(), form.id);
    session.output.status(&format!("\"{}\" is {state}; to open its page: {publish}", form.title));
    let end = links.preview_expires_at;
    session.output.status(&format!("this is its preview, until {end}: it checks answers and stores none"));
}
