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
    let Target::Server { url, .. } = session.target()? else { return Ok(links) };
    for link in [&mut links.url, &mut links.preview_url].into_iter().filter(|link| link.starts_with('/')) {
        link.insert_str(0, &display_url(&url.value));
    }
    Ok(links)
}

/// Whether anybody can open the page of `form`.
pub(super) fn is_open(form: &FormDetail) -> bool {
    form.settings.is_public() && form.status == OpenEnum::Known(FormStatus::Published)
}

/// Reports what the printed address needs: a server, and if it is that of the preview, when it ends and how to open the page.
pub(super) fn explain(session: &Session, form: &FormDetail, links: &PageLinks) {
    let (output, id, title) = (&session.output, form.id, &form.title);
    if links.url.starts_with('/') {
        output.status("pages need a server: forms serve --data DIR");
    }
    if !is_open(form) {
        let state = if form.settings.is_public() { "a draft" } else { "not public" };
        let (prefix, end) = (session.command_prefix(), links.preview_expires_at);
        output.status(&format!("\"{title}\" is {state}; to open its page: {prefix} publish {id} --public"));
        output.status(&format!("this is its preview, until {end}: it checks answers and stores none"));
    }
}
