//! Markdown of authors as HTML that can do no harm: text, emphasis, lists, code and links.

use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd, html};
use url::Url;

use crate::domain::html::escape;

/// Converts `text`. HTML in it is shown as it is written, images are their descriptions, headings are bold, and links lead
/// elsewhere in a new tab, if it is safe to follow them.
pub(crate) fn to_html(text: &str) -> String {
    let mut open_links = Vec::new();
    let events = Parser::new(text).filter_map(|event| harmless(event, &mut open_links));
    let mut written = String::with_capacity(text.len() * 2);
    html::push_html(&mut written, events);
    written
}

/// Converts `text` without the paragraph around it, if it is a single one.
pub(crate) fn to_inline_html(text: &str) -> String {
    let written = to_html(text);
    let inner = written.trim_end().strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    match inner {
        Some(inner) if !inner.contains("<p>") => inner.to_owned(),
        Some(_) | None => escape(text),
    }
}

/// Replaces what authors may not write; `open_links` has an entry for each open link: whether it is written.
fn harmless<'a>(event: Event<'a>, open_links: &mut Vec<bool>) -> Option<Event<'a>> {
    let raw = |html: &'static str| Some(Event::InlineHtml(CowStr::Borrowed(html)));
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Start(Tag::Heading { .. }) => raw("<p><strong>"),
        Event::End(TagEnd::Heading(_)) => raw("</strong></p>"),
        Event::Start(Tag::Link { dest_url, .. }) => {
            open_links.push(is_safe(&dest_url));
            let address = escape(&dest_url);
            let link = format!("<a href=\"{address}\" target=\"_blank\" rel=\"noopener\">");
            is_safe(&dest_url).then(|| Event::InlineHtml(link.into()))
        }
        Event::End(TagEnd::Link) => open_links.pop().unwrap_or(false).then_some(Event::End(TagEnd::Link)),
        other => Some(other),
    }
}

/// Whether a link may lead to `address`: an absolute URL of the web, a mail address or a telephone number.
fn is_safe(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "mailto" | "tel"))
}
