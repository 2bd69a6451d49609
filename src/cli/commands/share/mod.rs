//! `forms share`: the address of a form's page, and what to put into other pages.

mod snippets;

use clap::Args;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use serde::Serialize;

use crate::api::PageLinks;
use crate::cli::commands::page_links::{explain, is_open, page_links};
use crate::cli::commands::share::snippets::Snippets;
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::output::{visible, visible_lines};

/// Maximum width of a QR code in columns, so that it can be seen whole beside other windows.
const MAX_QR_WIDTH: usize = 40;

/// Columns of the empty border on both sides of a QR code, without which it cannot be read.
const QR_BORDER: usize = 8;

/// Print a form's link, QR code, and HTML to embed it
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the address of the form's page, on a terminal also as a QR code; an
iframe for other pages, as it is and with a script that fits its height; and a
plain HTML form with up to 10 of the questions. Sites that post such a form must
be in `settings.origins`. Of a form that is a draft or not public, prints the
preview.

Examples:
  forms share frm_7k2m9q4x1abz
  forms share customer-feedback -o json | jq -r .html_form")]
pub struct Share {
    /// Form, by id or slug
    form: String,
}

/// The result in JSON.
#[derive(Serialize)]
struct Shared {
    #[serde(flatten)]
    links: PageLinks,
    #[serde(flatten)]
    snippets: Snippets,
}

impl Run for Share {
    const COLUMNS: Columns = Columns::Fixed(&[
        "url",
        "public",
        "preview_url",
        "preview_expires_at",
        "iframe",
        "fitted_iframe",
        "html_form",
    ]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let links = page_links(session, &client, &self.form).await?;
        let shared = Shared { snippets: Snippets::new(&form, &links), links };
        session.output.object(&shared, || match is_open(&form) {
            true => shared.to_text(shows_blocks(session)),
            false => format!("{}\n", visible(&shared.links.preview_url)),
        })?;
        explain(session, &form, &shared.links);
        Ok(())
    }
}

impl Shared {
    /// Formats what people need of an open page, with a QR code if it `shows_blocks`.
    fn to_text(&self, shows_blocks: bool) -> String {
        let code = if shows_blocks { qr_code(&self.links.url) } else { None };
        let code = code.map(|code| format!("\n{code}\n")).unwrap_or_default();
        let Snippets { iframe, fitted_iframe, html_form } = &self.snippets;
        let text = format!(
            "{url}\n{code}\nTo embed it:\n\n{iframe}\n\nTo embed it as high as the form is:\n\n{fitted_iframe}\n\n\
             For a page of your own, whose site is in `settings.origins`:\n\n{html_form}\n",
            url = self.links.url
        );
        visible_lines(&text)
    }
}

/// Whether stdout is a terminal that shows block characters.
fn shows_blocks(session: &Session) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| session.environment.get(name));
    let is_utf8 = |locale: &str| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    session.output.stdout_is_terminal() && locale.is_some_and(is_utf8)
}

/// Draws `url` as a QR code for light text on a dark ground, in lines of half blocks; `None` if it is too wide.
fn qr_code(url: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(url, EcLevel::L).ok()?;
    let is_narrow = code.width() + QR_BORDER <= MAX_QR_WIDTH;
    is_narrow.then(|| code.render().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}
