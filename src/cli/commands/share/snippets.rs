//! HTML for other pages: frames with a form's page, and a form of their own.

use serde::Serialize;

use crate::api::{FormDetail, PageLinks};
use crate::cli::input::answers::{known_questions, parse_questions};
use crate::domain::html::escape;
use crate::domain::question::Question;
use crate::domain::question::control::{Control, LineKind};

/// Maximum number of questions in a plain form.
const MAX_QUESTIONS: usize = 10;

/// HTML that people copy.
#[derive(Debug, Serialize)]
pub(super) struct Snippets {
    /// A frame of fixed height.
    pub(super) iframe: String,
    /// A frame, and the script that fits its height.
    pub(super) fitted_iframe: String,
    /// A form with the first questions.
    pub(super) html_form: String,
}

impl Snippets {
    pub(super) fn new(form: &FormDetail, links: &PageLinks) -> Self {
        let (url, title) = (escape(&links.url), escape(&form.title));
        let base = url.rsplit_once("/f/").map_or("", |(base, _)| base);
        let frame = |fit| {
            format!(r#"<iframe src="{url}?_embed"{fit} title="{title}" width="100%" height="600"></iframe>"#)
        };
        let script = format!(r#"<script src="{base}/embed.js" async></script>"#);
        let questions = known_questions(&parse_questions(&form.questions));
        let fields: String = questions.iter().filter_map(field).take(MAX_QUESTIONS).collect();
        Self {
            iframe: frame(""),
            fitted_iframe: format!("{}\n{script}", frame(" data-form")),
            html_form: format!(
                "<form method=\"post\" action=\"{url}\">\n{fields}  <button>Send</button>\n</form>"
            ),
        }
    }
}

/// Returns the line of a question that is always asked; `None` if it needs more than one simple control.
fn field(question: &Question) -> Option<String> {
    let id = question.id.as_deref().filter(|_| question.show_if.is_none())?;
    let attributes = format!(r#"name="{}"{}"#, escape(id), if question.required { " required" } else { "" });
    let control = match question.kind.rules().control() {
        Control::Line(line) => format!("<input {attributes}{}>", input_type(line.kind)),
        Control::Lines { .. } => format!("<textarea {attributes}></textarea>"),
        Control::Scale { values, .. } => {
            format!(r#"<input {attributes} type="number" min="{}" max="{}">"#, values.start(), values.end())
        }
        Control::One { options, .. } => {
            let option = |(value, label): (&str, &str)| {
                format!(r#"<option value="{}">{}</option>"#, escape(value), escape(label))
            };
            let options: String = options.labelled().map(option).collect();
            format!(r#"<select {attributes}><option value=""></option>{options}</select>"#)
        }
        _ => return None,
    };
    Some(format!("  <label>{} {control}</label>\n", escape(&question.title)))
}

fn input_type(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Text => "",
        LineKind::Email => r#" type="email""#,
        LineKind::Url => r#" type="url""#,
        LineKind::Phone => r#" type="tel""#,
        LineKind::Number => r#" type="number" step="any""#,
        LineKind::WholeNumber => r#" type="number""#,
        LineKind::Date => r#" type="date""#,
        LineKind::Time => r#" type="time""#,
        LineKind::DateTime => r#" type="datetime-local""#,
    }
}
