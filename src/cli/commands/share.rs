//! `forms share`: the address of a form's page, and HTML for other pages.

use clap::Args;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use serde::Serialize;

use crate::api::{FormDetail, PageLinks};
use crate::cli::commands::page_links::{explain, is_open, page_links};
use crate::cli::commands::{CliError, Columns, Run, Session};
use crate::cli::input::answers::{known_questions, parse_questions};
use crate::cli::output::{visible, visible_lines};
use crate::domain::html::escape;
use crate::domain::question::Question;
use crate::domain::question::control::{Control, LineKind};

/// Maximum modules in a row of a QR code: with its border of 4 on each side it has at most 40 columns.
const MAX_QR_WIDTH: usize = 32;

/// Maximum number of questions in an HTML form.
const MAX_QUESTIONS: usize = 10;

/// Print a form's link, QR code, and HTML to embed it
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the address of the form's page, on a terminal also as a QR code; an
iframe for other pages, with a script that fits its height; and an HTML form
with up to 10 of the questions, whose site must be in `settings.origins`. Of a
form that is a draft or not public, prints the preview.

Examples:
  forms share frm_7k2m9q4x1abz
  forms share customer-feedback -o json | jq -r .html_form")]
pub struct Share {
    /// Form, by id or slug
    form: String,
}

#[derive(Serialize)]
struct Shared {
    #[serde(flatten)]
    links: PageLinks,
    iframe: String,
    /// Fits the height of the frame.
    script: String,
    html_form: String,
}

impl Run for Share {
    const COLUMNS: Columns = Columns::Fixed(&[
        "url",
        "public",
        "preview_url",
        "preview_expires_at",
        "iframe",
        "script",
        "html_form",
    ]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let client = session.client().await?;
        let form = client.get_form(&self.form).await?;
        let shared = Shared::new(&form, page_links(session, &client, &self.form).await?);
        session.output.object(&shared, || match is_open(&form) {
            true => shared.to_text(shows_blocks(session)),
            false => format!("{}\n", visible(&shared.links.preview_url)),
        })?;
        explain(session, &form, &shared.links);
        Ok(())
    }
}

impl Shared {
    fn new(form: &FormDetail, links: PageLinks) -> Self {
        let (url, title) = (escape(&links.url), escape(&form.title));
        let base = url.rsplit_once("/f/").map_or("", |(base, _)| base);
        let questions = known_questions(&parse_questions(&form.questions));
        let fields: Vec<_> =
            questions.iter().filter_map(|question| Some((question, field(question)?))).collect();
        let (required, optional): (Vec<_>, _) = fields.iter().partition(|(question, _)| question.required);
        let shown = required.iter().chain(&optional).take(MAX_QUESTIONS);
        let fields: String = shown.map(|(_, field)| field.as_str()).collect();
        let is_left_out = |question: &&Question| question.required && field(question).is_none();
        let missing: String = questions.iter().filter(is_left_out).map(missing).collect();
        Self {
            iframe: format!(
                "<iframe src=\"{url}?_embed\" title=\"{title}\" width=\"100%\" height=\"600\"></iframe>"
            ),
            script: format!("<script src=\"{base}/embed.js\" async></script>"),
            html_form: format!(
                "<form method=\"post\" action=\"{url}\">\n{fields}{missing}  <button>Send</button>\n</form>"
            ),
            links,
        }
    }

    /// Formats what people need of an open page, with a QR code if it `shows_blocks`.
    fn to_text(&self, shows_blocks: bool) -> String {
        let Self { links: PageLinks { url, .. }, iframe, script, html_form } = self;
        let code = if shows_blocks { qr_code(url) } else { None };
        let code = code.map(|code| format!("\n{code}\n")).unwrap_or_default();
        visible_lines(&format!(
            "{url}\n{code}\nTo embed it; the script fits the height of the frame:\n\n{iframe}\n{script}\n\n\
             For a page of a site that `settings.origins` lists, without which its answers are not taken:\n\n{html_form}\n"
        ))
    }
}

/// Whether stdout is a terminal that shows block characters.
fn shows_blocks(session: &Session) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| session.environment.get(name));
    let is_utf8 = |locale: &str| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    session.output.stdout_is_terminal() && locale.is_some_and(is_utf8)
}

/// Draws `url` as a QR code for light text on a dark ground; `None` if it is too wide.
fn qr_code(url: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(url, EcLevel::L).ok()?;
    let draw = || code.render().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    (code.width() <= MAX_QR_WIDTH).then(draw)
}

/// Returns the comment for a required question that has no line in an HTML form.
fn missing(question: &Question) -> String {
    let (id, kind) = (question.id.as_deref().unwrap_or_default(), question.kind.name());
    format!("  <!-- {id} ({kind}) is required: add it here -->\n")
}

/// Returns the line of a question in an HTML form; `None` if it is not always asked, or needs more than one control.
fn field(question: &Question) -> Option<String> {
    let id = question.id.as_deref().filter(|_| question.show_if.is_none())?;
    let attributes = format!("name=\"{}\"{}", escape(id), if question.required { " required" } else { "" });
    let control = match question.kind.rules().control() {
        Control::Line(line) => format!("<input {attributes}{}>", input_type(line.kind)),
        Control::Lines { .. } => format!("<textarea {attributes}></textarea>"),
        Control::Scale { values, .. } => {
            let (min, max) = (values.start(), values.end());
            format!("<input {attributes} type=\"number\" min=\"{min}\" max=\"{max}\">")
        }
        Control::One { options, .. } => {
            let options = options.labelled().map(|(value, label)| [value, label].map(escape));
            let options = options.map(|[value, label]| format!("<option value=\"{value}\">{label}</option>"));
            format!(
                "<select {attributes}><option value=\"\"></option>{}</select>",
                options.collect::<String>()
            )
        }
        _ => return None,
    };
    Some(format!("  <label>{} {control}</label>\n", escape(&question.title)))
}

fn input_type(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Text => "",
        LineKind::Email => " type=\"email\"",
        LineKind::Url => " type=\"url\"",
        LineKind::Phone => " type=\"tel\"",
        LineKind::Number => " type=\"number\" step=\"any\"",
        LineKind::WholeNumber => " type=\"number\"",
        LineKind::Date => " type=\"date\"",
        LineKind::Time => " type=\"time\"",
        LineKind::DateTime => " type=\"datetime-local\"",
    }
}
